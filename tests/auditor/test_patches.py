"""What replaces something can be pickled as that."""

from __future__ import annotations

import collections
import functools
import math
import pickle

from devlint.auditor.patches import Patches


def wrapped(original):
    @functools.wraps(original)
    def function(*args, **kwargs):
        return original(*args, **kwargs)

    return function


def test_a_function_of_c_keeps_being_found_by_its_name() -> None:
    hypot = math.hypot
    patches = Patches()
    try:
        patches.set(math, "hypot", wrapped(math.hypot))
        patches.set(collections.Counter, "elements", wrapped(collections.Counter.elements))
        patches.set(collections.Counter, "popitem", wrapped(dict.popitem))  # inherited from a class of C
        for function in (math.hypot, collections.Counter.elements, collections.Counter.popitem):
            assert function not in (hypot, dict.popitem)
            assert pickle.loads(pickle.dumps(function)) is function
    finally:
        patches.undo()
    assert math.hypot is hypot
    assert collections.Counter.popitem is dict.popitem
