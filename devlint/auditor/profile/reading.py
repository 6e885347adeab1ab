"""From a trace of torch.profiler to the record of a run: what was copied, who waited, in which step, by which line."""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from devlint._about import __version__
from devlint.auditor.frames import NOWHERE
from devlint.auditor.history import Pending, What, When
from devlint.auditor.ledger import Ledger
from devlint.auditor.profile.stacks import blamed, written
from devlint.auditor.profile.stream import Shown, Trace, TraceError
from devlint.auditor.profile.timeline import Span, Thread, Timeline
from devlint.record import FIRST_CALLS, WARM_UP, Device, Ending, Environment, Frame, Phase, Process, Record, Steps

_OPERATORS = frozenset({"cpu_op", "Operator", "user_annotation"})
_CALLS = frozenset({"cuda_runtime", "Runtime", "cuda_driver", "hip_runtime"})
_COPIES = frozenset({"gpu_memcpy", "Memcpy"})
_STEP = re.compile(r"ProfilerStep#(\d+)")
_COPYING = re.compile(r"(?:cuda|hip|cu)Memcpy")
_WAITING = re.compile(r"(?:cuda|hip|cu)(?:Stream|Device|Event|Ctx)Synchronize")
_DEVICE_WIDE = re.compile(r"(?:Device|Ctx)Synchronize")
_KIND = re.compile(r"Memcpy (?P<way>[HDP]to[HDP]) \((?P<source>\w+) -> (?P<target>\w+)\)")
_BY_NUMBER = {"1": "HtoD", "2": "DtoH", "3": "DtoD"}
"""``hipMemcpyKind``, of calls that no copy on the device is told of."""
_COPY, _ITEM = "aten::copy_", "aten::_local_scalar_dense"
_PROFILER = re.compile(r"(?:^|[/\\])torch[/\\](?:profiler|autograd)[/\\]profiler\.py\(")
"""Functions of the profiler itself, which waits for the device when it begins and ends."""
_TRAINS = ("autograd::engine::evaluate_function", "Optimizer.step#")
_MICROSECOND = 1e-6
_MOST = 10**18
"""No trace counts further than this, and no record may."""
_UNKNOWN = (
    "read from a trace of torch.profiler, which says neither whether a copy repeats what was copied before nor where a "
    "module keeps its tensors: the rules about these are silent"
)
OF_THE_DEF = (
    "the trace tells functions and not lines: a function stands at the line of its `def`, or, if it ran already when "
    "the recording began, at the line that it was at then"
)
_ONE_SIDE = (
    "the trace lacks the device's side, so which way its copies went is not known: only the waits in them are counted"
)
_WITHOUT_STACKS = (
    "the trace has no Python stacks, so operators stand in place of lines: profile with `with_stack=True` to see lines"
)
_WITHOUT_STEPS = (
    "the trace has no steps, so all of it is told in sum: call `profiler.step()` after each of them to have them apart"
)


class _Call(NamedTuple):
    """A call of the runtime that copies or waits."""

    thread: Thread
    start: float
    seconds: float
    name: str
    correlation: str
    given: dict[str, Any]


_Owner = tuple[Thread, float, float]
"""An operator that ran: its thread, its beginning and its end."""


class _Copy(NamedTuple):
    """What the device did for a call."""

    way: str = ""
    pinned: bool | None = None
    size: int = 0
    device: int = 0
    seconds: float = 0.0


class _Step(NamedTuple):
    """A step that the script told the profiler of."""

    number: int
    start: float
    end: float


class _Happened(NamedTuple):
    """An event of the record, and when it was."""

    what: What
    start: float
    seconds: float
    size: int
    copying: float


@dataclass(slots=True)
class _Seen:
    """What a trace holds, as far as it matters."""

    timeline: Timeline = field(default_factory=Timeline)
    calls: list[_Call] = field(default_factory=list)
    copies: dict[str, _Copy] = field(default_factory=dict)
    steps: list[_Step] = field(default_factory=list)
    work: array[float] = field(default_factory=lambda: array("d"))
    """When autograd or an optimizer worked."""
    processes: Counter[str] = field(default_factory=Counter)
    """How many operators each process ran, by its number."""
    stacks: bool = False
    entered: bool = False
    """Whether stacks are spans of functions, as they were entered."""
    latest: float = 0.0
    """When the last operator began."""
    first: float = float("inf")
    last: float = 0.0


def read(path: str, shown: Shown = lambda done, total: None) -> Record:
    """The record that a trace makes; raises :class:`TraceError` where it is none."""
    trace, seen = Trace(path, shown), _Seen()
    spans = 0
    for event in trace.events():
        if event.get("ph") == "X":
            spans += _take(seen, event)
    if not spans:
        raise TraceError("it holds no event of torch.profiler")
    return _Recording(seen, trace.facts, path).record()


def _take(seen: _Seen, event: dict[str, Any]) -> bool:
    """Keep what matters of a span; whether it is one that the profiler writes."""
    try:
        start, seconds = float(event["ts"]), max(float(event.get("dur", 0)), 0.0)
        name, category = str(event["name"]), str(event.get("cat", ""))
    except (KeyError, TypeError, ValueError):
        return False
    if not abs(start) + seconds <= _MOST:  # nor is it a time if it is no number
        return False
    thread, given = (str(event.get("pid")), str(event.get("tid"))), event.get("args")
    given = given if isinstance(given, dict) else {}
    end = start + seconds
    if category in _OPERATORS:
        if step := _STEP.match(name):
            seen.steps.append(_Step(int(step[1]), start, end))
        else:
            stack = str(given.get("Call stack") or "")
            seen.stacks = seen.stacks or bool(stack)
            seen.timeline.operator(thread, start, end, name, stack)
            if category != "user_annotation":
                seen.latest = max(seen.latest, start)
        if name.startswith(_TRAINS):
            seen.work.append(start)
        seen.processes[thread[0]] += 1
    elif category == "python_function":
        seen.stacks = seen.entered = True
        seen.timeline.function(thread, start, end, name)
    elif category in _CALLS:
        if _COPYING.match(name) or _WAITING.match(name):
            seen.calls.append(_Call(thread, start, seconds * _MICROSECOND, name, str(given.get("correlation")), given))
    elif category in _COPIES:
        seen.copies[str(given.get("correlation"))] = _copy(name, given, seconds * _MICROSECOND)
    else:
        return False
    seen.first, seen.last = min(seen.first, start), max(seen.last, end)
    return True


def _copy(name: str, given: dict[str, Any], seconds: float) -> _Copy:
    found = _KIND.match(name)
    if found is None:
        return _Copy()
    way = found["way"].replace("P", "H")
    host = found["source"] if way.startswith("H") else found["target"]
    pinned = {"Pinned": True, "Pageable": False}.get(host)
    return _Copy(way, pinned, _number(given.get("bytes")), _number(given.get("device")), seconds)


def _number(value: object) -> int:
    """A count, 0 of what is none."""
    try:
        number = int(str(value))
    except ValueError:
        return 0
    return number if 0 <= number <= _MOST else 0


class _Places:
    """Frames as the small numbers by which a ledger tells places apart."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Frame | None, Frame | None], int] = {(None, None): NOWHERE}
        self._places: list[tuple[Frame | None, Frame | None]] = [(None, None)]

    def number(self, place: tuple[Frame | None, Frame | None]) -> int:
        number = self._numbers.setdefault(place, len(self._places))
        if number == len(self._places):
            self._places.append(place)
        return number

    def resolve(self, number: int) -> tuple[Frame | None, Frame | None]:
        return self._places[number]

    def frame(self, number: int) -> Frame | None:
        project, via = self._places[number]
        return project or via


class _Recording:
    """What was seen, as a record."""

    def __init__(self, seen: _Seen, facts: dict[str, Any], path: str) -> None:
        self._seen = seen
        self._facts = facts
        self._path = path
        self._directory = os.getcwd()
        self._places = _Places()
        self._steps = sorted(seen.steps, key=lambda step: step.start)
        if self._steps and 0 < seen.latest < self._steps[-1].start:
            self._steps.pop()  # the recording ended as it began
        self._undirected = False
        """Whether there was a copy of which nothing says which way it went."""

    def record(self) -> Record:
        happened = sorted(self._happened(), key=lambda one: one.start)
        ledger, counts, seconds = self._booked(happened)
        targets = Counter(
            device for one in happened for device in (one.what.target, one.what.source) if device.startswith("cuda")
        )
        distributed = self._facts.get("distributedInfo")
        distributed = distributed if isinstance(distributed, dict) else {}
        world = _number(distributed.get("world_size"))
        notes = {
            OF_THE_DEF: self._seen.entered and bool(happened),
            _ONE_SIDE: self._undirected,
            _WITHOUT_STACKS: not self._seen.stacks,
            _WITHOUT_STEPS: not self._steps,
        }
        process = Process(
            pid=_number(self._seen.processes.most_common(1)[0][0]) if self._seen.processes else 0,
            role="rank" if world > 1 else "main",
            rank=_number(distributed.get("rank")) if world > 1 else None,
            world_size=world if world > 1 else None,
            device=targets.most_common(1)[0][0] if targets else "",
            backend="CUDA",
            ending=Ending(kind="finished"),
            seconds=(self._seen.last - self._seen.first) * _MICROSECOND,
            environment=Environment(devices=tuple(self._devices())),
            steps=Steps(train=counts["train"], eval=counts["eval"], step_seconds=seconds),
            events=ledger.events(),
            began=self._seen.first * _MICROSECOND,
            timeline=ledger.timeline(),
            notes=(_UNKNOWN, *(note for note, holds in notes.items() if holds)),
        )
        return Record(
            devlint=__version__,
            source="profiler",
            complete=True,
            # the traces of all ranks are of one run
            command=() if world > 1 else (os.path.basename(self._path),),
            directory=self._directory,
            processes=(process,),
        )

    def _devices(self) -> Iterator[Device]:
        properties = self._facts.get("deviceProperties")
        for each in properties if isinstance(properties, list) else ():
            if isinstance(each, dict):
                major, minor = _number(each.get("computeMajor")), _number(each.get("computeMinor"))
                yield Device(
                    name=f"cuda:{_number(each.get('id'))}",
                    model=str(each.get("name") or ""),
                    capability=(major, minor) if major else None,
                    memory=_number(each.get("totalGlobalMem")),
                )

    # what happened

    def _happened(self) -> Iterator[_Happened]:
        calls = sorted(self._seen.calls, key=lambda call: (str(call.thread), call.start))
        around = self._seen.timeline.around([(call.thread, call.start) for call in calls])
        owners = [
            _operator(call.thread, operators[-1]) if operators else None
            for call, (operators, _) in zip(calls, around, strict=True)
        ]
        waits: dict[_Owner, float] = {}
        """By operator, how long it waited for a stream."""
        for index, (call, owner) in enumerate(zip(calls, owners, strict=True)):
            if not _WAITING.match(call.name):
                continue
            if owner is None and self._belongs(call, calls[index - 1] if index else None, owners[index - 1]):
                owner = owners[index] = owners[index - 1] = _operator(call.thread, Span(call.start, call.start, ""))
            if owner is not None:
                waits[owner] = waits.get(owner, 0.0) + call.seconds
        told: set[_Owner] = set()
        """Operators whose waits are those of a copy."""
        for call, owner, (operators, functions) in zip(calls, owners, around, strict=True):
            if _COPYING.match(call.name):
                waited = waits.get(owner) if owner else None
                for one in self._copied(call, operators, functions, waited, owner in told):
                    yield one
                    if owner is not None and waited is not None:
                        told.add(owner)
        for call, owner, (operators, functions) in zip(calls, owners, around, strict=True):
            if _WAITING.match(call.name) and owner not in told:
                yield from self._waited(call, operators, functions)

    def _belongs(self, call: _Call, before: _Call | None, owner: _Owner | None) -> bool:
        """Whether a wait outside any operator is that of the copy before it, in a trace which holds no operators."""
        if self._seen.latest or before is None or owner is not None or before.thread != call.thread:
            return False
        return _COPYING.match(before.name) is not None and not _DEVICE_WIDE.search(call.name)

    def _copied(
        self, call: _Call, operators: list[Span], functions: list[Span], waited: float | None, told: bool
    ) -> Iterator[_Happened]:
        copy = self._seen.copies.get(call.correlation, _Copy())
        way = copy.way or _BY_NUMBER.get(str(call.given.get("kind")), "")
        inner = operators[-1].name if operators else ""
        # a call that is not asynchronous waits by itself
        waits = waited is not None or not call.name.endswith("Async")
        if inner == _ITEM and way == "DtoD" and waits:
            way = "DtoH"  # on ROCm the pinned memory that the value is read into passes for the device's
        if way not in ("HtoD", "DtoH"):
            self._undirected = self._undirected or not way
            return  # within a device, or between two: nothing crosses to the host
        device = f"cuda:{copy.device}"
        source, target = ("cpu", device) if way == "HtoD" else (device, "cpu")
        seconds = call.seconds + (0.0 if told else waited or 0.0)
        if inner not in (_COPY, _ITEM, "") and way == "DtoH":
            # the operator reads a number, to know the shape of its result
            if not told:
                name = inner.removeprefix("aten::")
                yield self._event(call, operators, functions, "sync", name, seconds, source=source)
            return
        size = copy.size or _number(call.given.get("size"))
        if inner == _ITEM:
            # pinned or not is torch's own memory there, and the value is always waited for
            yield self._event(
                call, operators, functions, "copy", "item", seconds, size, copy.seconds,
                source=source, target=target, blocking=True,
            )  # fmt: skip
            return
        # the call does not return before the last byte is in pageable memory
        blocking = waits or (way == "DtoH" and copy.pinned is False)
        yield self._event(
            call, operators, functions, "copy", "copy_", seconds, size, copy.seconds,
            source=source, target=target, pinned=copy.pinned, blocking=blocking if blocking or copy.pinned else None,
            non_blocking=not waits,
        )  # fmt: skip

    def _waited(self, call: _Call, operators: list[Span], functions: list[Span]) -> Iterator[_Happened]:
        if not operators and not functions and not self._within_steps(call.start):
            return  # the profiler's own, when it begins and ends
        if any(_PROFILER.search(span.name) for span in functions):
            return
        inner = operators[-1].name if operators else ""
        name = inner.removeprefix("aten::") if inner.startswith("aten::") else call.name
        yield self._event(call, operators, functions, "sync", name, call.seconds)

    def _event(
        self, call: _Call, operators: list[Span], functions: list[Span], kind: Any, name: str, seconds: float,
        size: int = 0, copying: float = 0.0, **fields: Any,
    ) -> _Happened:  # fmt: skip
        backward = any(span.name.startswith(_TRAINS[0]) for span in operators)
        parts = [span.name for span in reversed(functions)]
        if not parts:
            parts = next((written(span.stack) for span in reversed(operators) if span.stack), [])
        place = self._places.number(blamed(parts, self._directory))
        if place == NOWHERE and operators:
            name = _path(operators, name)
        what = What(kind, name, place, backward=backward, **({"blocking": True} if kind == "sync" else {}) | fields)
        return _Happened(what, call.start, seconds, size, copying)

    def _within_steps(self, moment: float) -> bool:
        return bool(self._steps) and self._steps[0].start <= moment < self._steps[-1].end

    # steps

    def _booked(self, happened: list[_Happened]) -> tuple[Ledger, Counter[str], float | None]:
        """All of it in the books, how many steps there were, and how long the median one took."""
        ledger = Ledger(self._places)  # type: ignore[arg-type]  # places are all that it asks for
        ledger.origin = self._seen.first * _MICROSECOND
        counts: Counter[str] = Counter()
        rest = iter(happened)
        one = next(rest, None)
        work = sorted(self._seen.work)
        took: dict[Phase, list[float]] = {"train": [], "eval": []}
        for step in self._steps:
            idle: Phase = "between" if counts else "setup"
            one = self._until(ledger, rest, one, step.start)
            if before := ledger.take():
                ledger.settle(before, idle, False)
            one = self._until(ledger, rest, one, step.end)
            phase: Phase = "train" if _any_within(work, step.start, step.end) else "eval"
            counts[phase] += 1
            took[phase].append((step.end - step.start) * _MICROSECOND)
            when = When(step.start * _MICROSECOND, took[phase][-1])
            ledger.settle(ledger.take(), phase, True, when)
        self._until(ledger, rest, one, float("inf"))
        after: Pending = ledger.take()
        if after:
            ledger.settle(after, "teardown" if self._steps else "setup", False)
        steps = took["train"] or took["eval"]
        return ledger, counts, median(steps[WARM_UP:] or steps) if steps else None

    def _until(self, ledger: Ledger, rest: Iterator[_Happened], one: _Happened | None, end: float) -> _Happened | None:
        """Take in what happened before ``end``; the result is the first that came later."""
        while one is not None and one.start < end:
            tally = ledger.tally(one.what)
            tally.calls += 1
            tally.bytes += one.size
            tally.seconds += one.seconds
            tally.copying += one.copying
            if len(tally.first) < FIRST_CALLS:
                tally.first.append((one.start * _MICROSECOND, one.seconds, one.size))
            one = next(rest, None)
        return one


def _operator(thread: Thread, span: Span) -> _Owner:
    return thread, span.start, span.end


def _path(operators: list[Span], name: str) -> str:
    """What stands for a line where there is none: the outermost operator, and what the script called it."""
    outer = next((span.name for span in operators if span.name.startswith("aten::")), "")
    notes = [span.name for span in operators if "::" not in span.name]
    what = outer.removeprefix("aten::") or name
    return f"{what} in {notes[-1].strip('# ')}" if notes else what


def _any_within(moments: list[float], start: float, end: float) -> bool:
    index = bisect_left(moments, start)
    return index < len(moments) and moments[index] < end
