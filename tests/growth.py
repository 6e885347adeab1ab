"""How the cost of work grows with its size, measured in one run, so that a slow or busy machine changes nothing.

Costs are numbers of function calls, which are the same each time, where the work is Python's; what one call of C does
more of, such as copying a long line, is seen by the processor time alone, of which only ratios are compared.
"""

from __future__ import annotations

import cProfile
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from devlint._about import is_compiled

Work = Callable[[], object]
QUADRATIC = 1.5
"""Halfway from work that is linear to work that is quadratic."""
HANG = 300.0
"""Seconds after which something hangs: on no machine, however slow and busy, the tests that say so need as many."""
_TRIES, _ROUNDS = 3, 3


def calls(work: Work) -> int:
    """How many functions are called, those written in C among them."""
    if is_compiled():
        pytest.skip("compiled modules call each other without a place where somebody could count")
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


def growth(make: Callable[[int], Work], small: int, large: int) -> float:
    """The power of the size with which the number of calls grows: 1 if it is linear, 2 if it is quadratic."""
    make(small)()  # what is loaded, compiled or kept at the first time is no part of it
    return _power(calls(make(small)), calls(make(large)), large / small)


def growth_of_time(make: Callable[[int], Work], small: int, large: int) -> float:
    """The power of the size with which processor time grows: the least of a few measurements, since noise adds."""
    make(small)()
    found = math.inf
    for _ in range(_TRIES):
        times = [(_seconds(make(small)), _seconds(make(large))) for _ in range(_ROUNDS)]
        found = min(found, _power(*(min(each) for each in zip(*times, strict=True)), large / small))
        if found < QUADRATIC:
            break
    return found


@contextmanager
def hang_guard() -> Iterator[None]:
    """Fail, rather than wait for ever, what takes longer than :data:`HANG`."""

    def ring(*_: object) -> None:
        pytest.fail("it does not end")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _power(small: float, large: float, times: float) -> float:
    return math.log(large / small) / math.log(times)


def _seconds(work: Work) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin
