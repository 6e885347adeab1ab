"""Room for code that nests deeper than Python's usual recursion limit."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_STACK = 256 * 1024 * 1024
_LIMIT = 30_000


def with_deep_stack(function: Callable[[], T]) -> T:
    """Call a function where it may recurse thirty times as deep as usual; its exceptions are the caller's."""
    results: list[T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK)
    sys.setrecursionlimit(max(limit, _LIMIT))
    try:
        # A daemon, so that Ctrl-C need not wait for it.
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if errors:
        raise errors[0]
    return results[0]


def recursing(function: Callable[[], T]) -> T:
    """Call a function, and once more with a deep stack if it recurses too deep: only who needs a thread pays for it."""
    try:
        return function()
    except RecursionError:
        return with_deep_stack(function)
