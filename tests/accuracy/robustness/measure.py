"""What a text costs: processor time and memory, in a process that can do no harm."""

from __future__ import annotations

import math
import os
import pickle
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.accuracy.robustness.trial import analysed

LONGEST = 1_200
"""Seconds of processor time after which a measurement is given up."""
TOO_SOON = 0.5
"""Seconds below which the growth of time is noise."""
_MEMORY = 12 << 30


@dataclass(frozen=True)
class Cost:
    """What one check came to; ``failure`` says what went wrong instead.

    ``before_mib`` is what the process had before, which is a copy of one that may have done much else.
    """

    size: int
    lines: int = 0
    seconds: float = 0.0
    peak_mib: int = 0
    findings: int = 0
    failure: str = ""
    before_mib: int = 0


def steepness(costs: Sequence[Cost]) -> float:
    """The power of the size with which time grows, 1 where it is too short to be told."""
    small, large = costs[0], costs[-1]
    if large.seconds < TOO_SOON or large.size == small.size:
        return 1.0
    return math.log(large.seconds / max(small.seconds, 0.001)) / math.log(large.size / small.size)


def cost(make: Callable[[int], str], size: int) -> Cost:
    """Check a text of a size in a process of its own."""
    # what is loaded and compiled once is no part of the cost
    analysed("import torch\ntorch.zeros(3).cuda()\n")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _measure(make, size, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    if answer:
        found = pickle.loads(answer)
        assert isinstance(found, Cost)
        return found
    return Cost(size, failure=f"died ({signal.Signals(status & 127).name})" if status & 127 else "died")


def _measure(make: Callable[[int], str], size: int, writer: int) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST + 10, LONGEST + 10))
        text = make(size)
        before = _peak_mib()
        begin = time.process_time()
        try:
            found, failure = analysed(text), ""
        except BaseException as error:  # whatever it is, it is what this looks for
            found, failure = 0, f"{type(error).__name__}: {error}"
        seconds = time.process_time() - begin
        spent = Cost(size, text.count("\n"), seconds, _peak_mib(), found, failure, before)
        os.write(writer, pickle.dumps(spent))
    finally:
        os._exit(0)


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
