"""What a trace holds, as far as it matters, found in two readings of its file.

Kineto writes operators and Python functions first and the calls of the runtime after them, so that it is known late
around which moments they matter.  The first reading finds the calls which copy or wait, and the steps; the second one
the operators and functions around those.  What is kept grows with copies, waits and steps, and not with the trace.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from devlint.auditor.profile.calls import MOST, Call, Calls
from devlint.auditor.profile.stream import Shown, Trace, TraceError
from devlint.auditor.profile.timeline import Span, Thread, Timeline

AUTOGRAD = "autograd::engine::evaluate_function"
_TRAINS = (AUTOGRAD, "Optimizer.step#")
_OPERATORS = frozenset({"cpu_op", "Operator", "user_annotation"})
_CALLS = frozenset({"cuda_runtime", "Runtime", "cuda_driver", "hip_runtime"})
_COPIES = frozenset({"gpu_memcpy", "Memcpy"})
_FUNCTIONS = "python_function"
_AROUND = _OPERATORS | {_FUNCTIONS}
_ALL = _AROUND | _CALLS | _COPIES
_STEP = re.compile(r"ProfilerStep#\d+")


@dataclass(slots=True)
class Step:
    """A step that the script told the profiler of."""

    start: float
    end: float
    trains: bool = False
    """Whether autograd or an optimizer worked in it."""


class _Event(NamedTuple):
    """A span of time as the profiler writes it."""

    thread: Thread
    start: float
    microseconds: float
    name: str
    category: str
    given: dict[str, Any]

    @property
    def end(self) -> float:
        return self.start + self.microseconds


@dataclass(slots=True)
class Seen:
    """What was seen; times are the trace's own, microseconds."""

    calls: Calls = field(default_factory=Calls)
    steps: list[Step] = field(default_factory=list)
    """In order of time, without one that only began."""
    timeline: Timeline = field(default_factory=lambda: Timeline({}))
    facts: dict[str, Any] = field(default_factory=dict)
    """What stands beside the events."""
    processes: Counter[str] = field(default_factory=Counter)
    """How many operators each process ran, by its number."""
    stacks: bool = False
    entered: bool = False
    """Whether stacks are spans of functions, as they were entered."""
    latest: float = 0.0
    """When the last operator began."""
    first: float = float("inf")
    last: float = float("-inf")

    def around(self, thread: Thread) -> Iterator[tuple[Call, list[Span], list[Span]]]:
        """Yield the calls of a thread in order of time, each with the operators and functions around it.

        They come the outermost first, and there are none around what does not matter.
        """
        found = self.timeline.around(thread)
        for call in map(self.calls.__getitem__, self.calls.of(thread)):
            yield (call, *(next(found) if call.matters else ([], [])))


def look(path: str, shown: Shown = lambda done, total: None) -> Seen:
    """Read a trace twice; raises :class:`TraceError` where it is none."""
    trace, seen = Trace(path), Seen()
    for read in trace.events(lambda done, total: shown(done // 2, total)):
        if event := _event(read, _ALL):
            _collect(seen, event)
    if seen.first > seen.last:
        raise TraceError("it holds no event of torch.profiler")
    seen.facts = trace.facts
    seen.steps.sort(key=lambda step: step.start)
    if seen.steps and 0 < seen.latest < seen.steps[-1].start:
        seen.steps.pop()  # the recording ended as it began
    moments = {thread: _moments(seen.calls, thread) for thread in seen.calls.threads()}
    seen.timeline = Timeline(moments)
    starts = [step.start for step in seen.steps]
    for read in trace.events(lambda done, total: shown(total // 2 + done - done // 2, total)):
        if event := _event(read, _AROUND):
            _surround(seen, starts, event)
    return seen


def _moments(calls: Calls, thread: Thread) -> array[float]:
    return array("d", (call.start for call in map(calls.__getitem__, calls.of(thread)) if call.matters))


def _event(event: dict[str, Any], categories: frozenset[str]) -> _Event | None:
    """An event of the trace, if it is a span of one of these categories."""
    category = event.get("cat")
    if not isinstance(category, str) or category not in categories or event.get("ph") != "X":
        return None
    try:
        start, microseconds = float(event["ts"]), max(float(event.get("dur", 0)), 0.0)
        name = str(event["name"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    if not abs(start) + microseconds <= MOST:  # nor is it a time if it is no number
        return None
    given = event.get("args")
    thread = str(event.get("pid")), str(event.get("tid"))
    return _Event(thread, start, microseconds, name, category, given if isinstance(given, dict) else {})


def _collect(seen: Seen, event: _Event) -> None:
    """What the first reading keeps."""
    thread, start, microseconds, name, category, given = event
    if category in _OPERATORS:
        if _STEP.match(name):
            seen.steps.append(Step(start, event.end))
        else:
            seen.stacks = seen.stacks or bool(given.get("Call stack"))
            if category != "user_annotation":
                seen.latest = max(seen.latest, start)
        seen.processes[thread[0]] += 1
    elif category == _FUNCTIONS:
        seen.stacks = seen.entered = True
    elif category in _CALLS:
        seen.calls.add(thread, start, microseconds, name, given)
    else:
        seen.calls.copied(name, microseconds, given)
    seen.first, seen.last = min(seen.first, start), max(seen.last, event.end)


def _surround(seen: Seen, starts: list[float], event: _Event) -> None:
    """What the second reading keeps; ``starts`` are the beginnings of the steps."""
    thread, start, _, name, category, given = event
    if category == _FUNCTIONS:
        seen.timeline.function(thread, start, event.end, name)
    elif category in _OPERATORS and not _STEP.match(name):
        seen.timeline.operator(thread, start, event.end, name, str(given.get("Call stack") or ""))
        if name.startswith(_TRAINS):
            index = bisect_right(starts, start) - 1
            if index >= 0 and start < seen.steps[index].end:  # steps do not overlap
                seen.steps[index].trains = True
