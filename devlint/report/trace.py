"""An audited run in the Trace Event Format, which Perfetto and chrome://tracing show.

The format is described at https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.

A process of the trace is a rank.  It has a track with its steps, tracks with the copies and waits (as many as it takes
for none to overlap), and a counter of bytes per step.  Times are microseconds.  In a simulated run there are no times:
everything takes a microsecond for each call, so that the trace shows the order alone, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from devlint._about import __version__
from devlint.record import Event, Part, Process, Record, Slice
from devlint.report.audit.code import Code
from devlint.report.audit.header import command
from devlint.report.audit.processes import title
from devlint.report.audit.table import direction, how
from devlint.report.html.history import flows

_Event = dict[str, Any]
"""An event of the trace: a span has ``ts``, when it began, and ``dur``, how long it took, in microseconds."""
_STEPS, _LANES = 0, 1
_MICROSECONDS = 1e6


class NoTimelineError(Exception):
    """The record has nothing to make a trace of; the text is the one line that the user sees."""


def trace(record: Record) -> bytes:
    """The trace of a record as JSON; raises :class:`NoTimelineError` where the record does not tell the steps."""
    events = (event for process in record.processes for event in process.events)
    if not any(process.timeline for process in record.processes) and any(event.kind != "move" for event in events):
        raise NoTimelineError("this record was made by an older devlint, which did not keep what happened when")
    began = min((process.began for process in record.processes if process.began is not None), default=0.0)
    code = Code(record)
    found = [
        event
        for process, number in zip(record.processes, _numbers(record), strict=True)
        for event in _Track(process, number, code, began, record.simulated).events()
    ]
    document = {
        "traceEvents": found,
        "displayTimeUnit": "ms",
        "otherData": {
            "command": command(record),
            "devlint": __version__,
            "clock": "order only: the device was simulated" if record.simulated else "seconds of the host",
        },
    }
    return json.dumps(document, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()


def _numbers(record: Record) -> list[int]:
    """The rank of each process; of what is no rank, or works for one, a number that no other process has."""
    free = count(max((process.rank or 0 for process in record.processes), default=0) + 1)
    numbers: list[int] = []
    for process in record.processes:
        numbers.append(next(free) if process.rank is None or process.rank in numbers else process.rank)
    return numbers


@dataclass(slots=True)
class _Track:
    """One process: its slices become spans, its spans events of the trace."""

    process: Process
    number: int
    code: Code
    began: float
    simulated: bool
    _clock: float = 0.0
    """The time of a simulated run: how many calls there were so far."""

    def events(self) -> Iterator[_Event]:
        """Yield the events of the trace."""
        steps: list[_Event] = []
        calls: list[_Event] = []
        counters: list[_Event] = []
        for each in self.process.timeline:
            before = self._clock
            calls += [span for part in each.parts for span in self._calls(each, part)]
            start, duration = self._extent(each, before)
            if each.number is not None and start is not None:
                said: dict[str, Any] = {"step": each.number, "phase": each.phase}
                if each.waited is not None:
                    said["waited for the loader (ms)"] = each.waited * 1e3
                steps.append(self._span(start, duration, f"{each.phase} step {each.number}", each.phase, said))
                if sums := {name: flow.bytes for name, flow in flows(each, self.process.events).items() if flow.bytes}:
                    counters.append({
                        "ph": "C", "pid": self.number, "tid": _STEPS, "ts": start, "name": "bytes per step",
                        "args": sums,
                    })  # fmt: skip
        lanes = _lanes(calls)
        yield from self._names(len(lanes))
        for track, spans in enumerate([steps, *lanes], _STEPS):
            yield from ({**span, "tid": track} for span in spans)
        yield from counters

    def _span(self, start: float, duration: float, name: str, category: str, arguments: dict[str, Any]) -> _Event:
        return {
            "ph": "X", "pid": self.number, "tid": _STEPS, "ts": start, "dur": duration,
            "name": name, "cat": category, "args": arguments,
        }  # fmt: skip

    def _names(self, lanes: int) -> Iterator[_Event]:
        name = title(self.process) + (f", {self.process.device}" if self.process.device else "")
        name += " (simulated: the order, no times)" if self.simulated else ""
        yield self._said("process_name", 0, name=name)
        yield self._said("process_sort_index", 0, sort_index=self.number)
        for track in range(lanes + 1):
            called = "steps" if track == _STEPS else f"copies and waits{f' ({track})' if track > _LANES else ''}"
            yield self._said("thread_name", track, name=called)
            yield self._said("thread_sort_index", track, sort_index=track)

    def _said(self, kind: str, track: int, /, **arguments: Any) -> _Event:
        return {"ph": "M", "pid": self.number, "tid": track, "name": kind, "args": arguments}

    def _extent(self, each: Slice, before: float) -> tuple[float | None, float]:
        if self.simulated:
            self._clock = max(self._clock, before + 1)
            return before, self._clock - before
        if each.start is None:
            return None, 0.0
        return self._at(each.start), _duration(each.seconds or 0.0)

    def _at(self, seconds: float) -> float:
        """A time of the process, counted from where the first process began."""
        return round(max((self.process.began or self.began) - self.began + seconds, 0.0) * _MICROSECONDS, 3)

    def _calls(self, each: Slice, part: Part) -> Iterator[_Event]:
        if not 0 <= part.event < len(self.process.events):  # a record may come from anywhere
            return
        event = self.process.events[part.event]
        kind, frame = direction(event), event.frame or event.via
        text = (self.code.expression(frame) or self.code.line(frame)) if frame else ""
        name, arguments = f"{kind} {text or event.name}", self._arguments(event, each, part)
        if self.simulated:
            yield self._span(self._clock, float(part.calls), name, kind, {**arguments, "bytes": part.bytes})
            self._clock += part.calls
            return
        for call in part.first:
            start, duration = self._at(call.start), _duration(call.seconds)
            yield self._span(start, duration, name, kind, {**arguments, "bytes": call.bytes})

    def _arguments(self, event: Event, each: Slice, part: Part) -> dict[str, Any]:
        found: dict[str, Any] = {"operation": event.name, "phase": each.phase}
        if each.number is not None:
            found["step"] = each.number
        if frame := event.frame or event.via:
            found |= {"line": self.code.place(frame), "function": frame.function, "code": self.code.line(frame)}
        if event.via and event.frame:
            found["via"] = self.code.place(event.via)
        found |= {"how": how(event), "from": event.source, "to": event.target, "calls in this step": part.calls}
        if len(part.first) < part.calls and not self.simulated:
            found["shown"] = f"the first {len(part.first)} of {part.calls} calls"
        return {key: value for key, value in found.items() if value not in ("", None)}


def _duration(seconds: float) -> float:
    return round(max(seconds, 0.0) * _MICROSECONDS, 3)


def _lanes(spans: list[_Event]) -> list[list[_Event]]:
    """Spans on as many tracks as it takes for none to overlap: what several threads did happened at once."""
    lanes: list[list[_Event]] = [[]]
    for span in sorted(spans, key=lambda span: float(span["ts"])):
        ends = (lane[-1]["ts"] + lane[-1]["dur"] if lane else 0.0 for lane in lanes)
        free = next((lane for lane, end in zip(lanes, ends, strict=True) if span["ts"] >= end), None)
        if free is None:
            lanes.append([span])
        else:
            free.append(span)
    return lanes
