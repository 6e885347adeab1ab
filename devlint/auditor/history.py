"""The steps of a run one by one: all of them, or as many of a long run as there is room for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from devlint.auditor.tally import Pending, What
from devlint.record import Call, Part, Phase, Slice

MOST_STEPS = 1_000
"""Of more steps than this every second one is kept, then every fourth, and so on."""
_MOST_PARTS = 10_000
"""The same for what happened in them, calls that are told one by one counted, too."""
_MOST_OTHERS = 200
"""So many stretches that were no steps are kept: the first ones."""


class When(NamedTuple):
    """When a step was, on the clock of whoever tells the steps, and how much of it the loop waited for its loader."""

    start: float
    seconds: float
    waited: float = 0.0


class _Entry(NamedTuple):
    """What was settled at once; ``number`` counts the steps of the phase from 0, ``None`` for what was no step."""

    phase: Phase
    number: int | None
    when: When | None
    pending: Pending

    def size(self) -> int:
        """How many sums and single calls it has."""
        return len(self.pending) + sum(len(tally.first) for tally in list(self.pending.values()))


@dataclass(slots=True)
class History:
    """What was settled, in its order, in memory that does not grow with the run."""

    _entries: list[_Entry] = field(default_factory=list)
    _steps: int = 0
    _others: int = 0
    _parts: int = 0
    _stride: int = 1

    def add(self, pending: Pending, phase: Phase, number: int | None, when: When | None) -> None:
        """Take what was settled; what ``pending`` holds must not change any more."""
        if number is None:
            if pending and self._others < _MOST_OTHERS:
                self._others += 1
                self._entries.append(_Entry(phase, None, None, pending))
            return
        if number % self._stride:
            return
        entry = _Entry(phase, number, when, pending)
        self._entries.append(entry)
        self._steps += 1
        self._parts += entry.size()
        while self._steps >= 2 * MOST_STEPS or (self._parts > _MOST_PARTS and self._steps > 2):
            self._thin_out()

    def copy(self) -> History:
        """Another history, equal so far."""
        return History(self._entries[:], self._steps, self._others, self._parts, self._stride)

    def slices(self, index: Mapping[tuple[Phase, What], int], origin: float | None) -> tuple[Slice, ...]:
        """What is kept; ``index`` numbers the events, ``origin`` is where times count from, ``None`` without times."""
        return tuple(_slice(entry, index, origin) for entry in self._entries)

    def _thin_out(self) -> None:
        self._stride *= 2
        self._entries = [entry for entry in self._entries if entry.number is None or entry.number % self._stride == 0]
        kept = [entry for entry in self._entries if entry.number is not None]
        self._steps, self._parts = len(kept), sum(entry.size() for entry in kept)


def _slice(entry: _Entry, index: Mapping[tuple[Phase, What], int], origin: float | None) -> Slice:
    timed = origin is not None
    origin = origin or 0.0
    parts = [
        Part(
            event=index[entry.phase, what],
            calls=tally.calls,
            bytes=tally.bytes,
            seconds=tally.seconds if timed else None,
            first=tuple(
                Call(start=start - origin, seconds=seconds, bytes=size)
                for start, seconds, size in (tally.first if timed else ())
            ),
        )
        for what, tally in list(entry.pending.items())  # a list, as another thread may add to it
        if (entry.phase, what) in index and what.kind != "move"
    ]
    number = None if entry.number is None else entry.number + 1
    if entry.when is None or not timed:
        return Slice(phase=entry.phase, number=number, parts=tuple(parts))
    start, seconds, waited = entry.when
    return Slice(
        phase=entry.phase, number=number, start=start - origin, seconds=seconds, waited=waited, parts=tuple(parts)
    )
