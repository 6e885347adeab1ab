"""Sums of what happened, and the steps of a run one by one: all, or as many of a long run as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from devlint.auditor.frames import NOWHERE
from devlint.record import FIRST_CALLS, Call, Part, Phase, Slice


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
    by: str = ""
    detached: bool = False
    """Whether autograd was off: what recurs with autograd and without are two things."""


@dataclass(slots=True)
class Tally:
    """The sum of one :class:`What` since the last step ended."""

    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0
    copying: float = 0.0
    repeats: int = 0
    doubled: int = 0
    double: int = NOWHERE
    """The place that had copied the same before, of the latest of those that are ``doubled``."""
    unwaited: int = 0
    example: str = ""
    threads: set[str] = field(default_factory=set)
    first: list[tuple[float, float, int]] = field(default_factory=list)
    """The first calls one by one: when each began, how long the host was blocked, and its bytes."""

    def take(self, tally: Tally) -> None:
        """Add another sum to this one."""
        self.calls += tally.calls
        self.bytes += tally.bytes
        self.seconds += tally.seconds
        self.copying += tally.copying
        self.repeats += tally.repeats
        self.doubled += tally.doubled
        self.double = tally.double or self.double
        self.unwaited += tally.unwaited
        self.example = self.example or tally.example
        self.threads |= tally.threads
        if len(self.first) < FIRST_CALLS:
            self.first = [*self.first, *tally.first][:FIRST_CALLS]


Pending = dict[What, Tally]
"""Sums that are not yet known to belong to a phase."""


def merged(parts: Iterable[Pending]) -> Pending:
    """The sum of several parts, none of which is changed."""
    whole: Pending = {}
    for part in parts:
        for what, tally in list(part.items()):  # a list, as another thread may add to the part
            whole.setdefault(what, Tally()).take(tally)
    return whole


def split(part: Pending, condition: Callable[[What], bool]) -> tuple[Pending, Pending]:
    """What fulfils a condition, and the rest."""
    if not part:
        return {}, {}
    chosen = {what: tally for what, tally in list(part.items()) if condition(what)}
    return chosen, {what: tally for what, tally in list(part.items()) if what not in chosen}


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

    def told(self, index: Mapping[tuple[Phase, What], int], origin: float | None) -> Slice:
        """The same as a part of the record."""
        parts = tuple(
            Part(
                event=index[self.phase, what],
                calls=tally.calls,
                bytes=tally.bytes,
                seconds=None if origin is None else tally.seconds,
                first=()
                if origin is None
                else tuple(Call(start=s - origin, seconds=t, bytes=b) for s, t, b in tally.first),
            )
            for what, tally in list(self.pending.items())  # a list, as another thread may add to it
            if (self.phase, what) in index and what.kind != "move"
        )
        told = Slice(phase=self.phase, number=None if self.number is None else self.number + 1, parts=parts)
        if self.when is None or origin is None:
            return told
        start, seconds, waited = self.when
        return replace(told, start=start - origin, seconds=seconds, waited=waited)


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
        return tuple(entry.told(index, origin) for entry in self._entries)

    def _thin_out(self) -> None:
        self._stride *= 2
        self._entries = [entry for entry in self._entries if entry.number is None or entry.number % self._stride == 0]
        kept = [entry for entry in self._entries if entry.number is not None]
        self._steps, self._parts = len(kept), sum(entry.size() for entry in kept)
