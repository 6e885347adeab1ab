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


def test_a_function_looks_like_what_it_replaces() -> None:
    def doubled(value: float) -> float:
        return 2 * value

    patches = Patches()
    try:
        patches.set(math, "sqrt", doubled)
        patches.set(math, "unheard_of", lambda: None)
        assert (doubled.__name__, doubled.__doc__) == ("sqrt", doubled.__wrapped__.__doc__)
        assert pickle.loads(pickle.dumps(math.sqrt)) is doubled
        assert math.unheard_of.__name__ == "unheard_of"
    finally:
        patches.undo()
    assert not hasattr(math, "unheard_of")


def test_a_function_that_has_a_name_of_its_own_keeps_it() -> None:
    patches = Patches()
    try:
        patches.set(math, "fsum", wrapped)
        assert wrapped.__name__ == "wrapped"
        assert not hasattr(wrapped, "__wrapped__")
    finally:
        patches.undo()
