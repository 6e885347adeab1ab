"""What happened, added up: by place, kind and phase, in memory that does not grow with the run."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from devlint.auditor.frames import NOWHERE, Frames
from devlint.record import PHASES, WARM_UP, Event, Phase, Steady

_SAMPLES = 1_000
"""Times are kept one by one up to this many steps."""


class What(NamedTuple):
    """What is counted together; the fields are those of :class:`devlint.record.Event`."""

    kind: Literal["copy", "sync", "pin", "move", "call"]
    name: str
    place: int = NOWHERE
    source: str = ""
    target: str = ""
    subject: Literal["", "tensor", "module"] = ""
    backward: bool = False
    pinned: bool | None = None
    blocking: bool | None = None
    non_blocking: bool = False
    temporary: bool = False
    loader: int | None = None


@dataclass(slots=True)
class Tally:
    """The sum of one :class:`What` since the last step ended."""

    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0
    repeats: int = 0
    unwaited: int = 0
    example: str = ""
    threads: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Total(Tally):
    """The sum over a phase, and how it is spread over the steps; ``late`` counts the steps after the warm-up."""

    steps: int = 0
    late: int = 0
    late_calls: Counter[int] = field(default_factory=Counter)
    late_bytes: Counter[int] = field(default_factory=Counter)
    late_seconds: list[float] = field(default_factory=list)
    early: list[Tally] = field(default_factory=list)

    def take(self, tally: Tally) -> None:
        self.calls += tally.calls
        self.bytes += tally.bytes
        self.seconds += tally.seconds
        self.repeats += tally.repeats
        self.unwaited += tally.unwaited
        self.example = self.example or tally.example
        self.threads |= tally.threads

    def spread(self, tally: Tally, number: int) -> None:
        if number < WARM_UP:
            self.early.append(tally)
            return
        self.late += 1
        self.late_calls[tally.calls] += 1
        self.late_bytes[tally.bytes] += 1
        if len(self.late_seconds) < _SAMPLES:
            self.late_seconds.append(tally.seconds)


class Ledger:
    """Takes events in as they happen; whoever knows the steps closes them.

    Events since the last :meth:`close` are pending: which phase they belong to is known only when it ends.  ``timed``
    is false where times mean nothing, as on a simulated device.
    """

    def __init__(self, frames: Frames, timed: bool = True) -> None:
        self.frames = frames
        self.timed = timed
        self.pending: dict[What, Tally] = {}
        self.steps: Counter[Phase] = Counter()
        self._totals: dict[tuple[Phase, What], _Total] = {}

    def tally(self, what: What) -> Tally:
        """The pending sum of ``what``, to be added to."""
        tally = self.pending.get(what)
        if tally is None:
            # setdefault, as another thread may have come first
            tally = self.pending.setdefault(what, Tally())
        return tally

    def add(self, what: What, bytes_: int = 0, seconds: float = 0.0) -> Tally:
        """Count one event."""
        tally = self.tally(what)
        tally.calls += 1
        tally.bytes += bytes_
        tally.seconds += seconds
        return tally

    def close(self, phase: Phase, step: bool = True) -> None:
        """What is pending belongs to ``phase``; ``step`` says that it was a step of it."""
        pending, self.pending = self.pending, {}
        self.settle(pending, phase, step)

    def settle(self, pending: dict[What, Tally], phase: Phase, step: bool = True) -> None:
        """Add a step's events, which need not be the last one's, to a phase."""
        number = self.steps[phase]
        if step:
            self.steps[phase] += 1
        for what, tally in pending.items():
            total = self._totals.setdefault((phase, what), _Total())
            total.take(tally)
            total.steps += 1
            if step and phase == "train":
                total.spread(tally, number)

    def events(self) -> tuple[Event, ...]:
        """Everything that was closed, in the order of the phases and then of bytes and calls."""
        found = [self._event(phase, what, total) for (phase, what), total in self._totals.items()]
        found.sort(key=lambda event: (PHASES.index(event.phase), -event.bytes, -event.calls))
        return tuple(found)

    def _event(self, phase: Phase, what: What, total: _Total) -> Event:
        frame, via = self.frames.resolve(what.place)
        return Event(
            kind=what.kind,
            name=what.name,
            phase=phase,
            frame=frame,
            via=via,
            source=what.source,
            target=what.target,
            subject=what.subject,
            backward=what.backward,
            pinned=what.pinned,
            blocking=what.blocking,
            non_blocking=what.non_blocking,
            temporary=what.temporary,
            loader=what.loader,
            example=total.example,
            calls=total.calls,
            bytes=total.bytes,
            seconds=total.seconds if self.timed else None,
            steps=total.steps,
            repeats=total.repeats,
            unwaited=total.unwaited,
            threads=tuple(sorted(total.threads)),
            steady=self._steady(total) if phase == "train" else None,
        )

    def _steady(self, total: _Total) -> Steady:
        steps = self.steps["train"]
        late = steps - WARM_UP
        if late > 0:
            calls, size = Counter(total.late_calls), Counter(total.late_bytes)
            seconds = list(total.late_seconds)
            missing = late - total.late
        else:
            calls = Counter(tally.calls for tally in total.early)
            size = Counter(tally.bytes for tally in total.early)
            seconds = [tally.seconds for tally in total.early]
            missing = steps - len(total.early)
        # a step in which it did not happen is a zero
        calls[0] += missing
        size[0] += missing
        seconds += [0.0] * min(missing, _SAMPLES)
        return Steady(
            calls=_median(calls),
            bytes=_median(size),
            seconds=statistics.median(seconds) if self.timed and seconds else None,
        )


def _median(values: Counter[int]) -> float:
    """The median of a multiset that may be far larger than it has values."""
    total = values.total()
    if total == 0:
        return 0
    middles = {(total - 1) // 2, total // 2}
    found: list[int] = []
    seen = 0
    for value in sorted(values):
        seen += values[value]
        found += [value for middle in sorted(middles) if seen - values[value] <= middle < seen]
    return sum(found) / len(found)
