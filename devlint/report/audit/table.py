"""The events of a run, summed up by line of code: what happened there per step, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple

from devlint.record import Event, Frame, Phase, Process, Record
from devlint.report.audit.processes import groups
from devlint.report.terminal import one_line

_BANDWIDTH = 10e9
_LATENCY = 10e-6
"""Where no time was measured, lines are sorted as if a copy took so long and moved so many bytes in a second: about
what a PCIe 4.0 slot gives.  No such time is ever shown."""

_PHASES: tuple[Phase, ...] = ("train", "eval", "inference", "setup", "between", "teardown")
"""In the order in which they are shown."""
STEPPING: dict[Phase, str] = {"train": "a training step", "eval": "an evaluation step", "inference": "a forward pass"}
"""The phases that have steps, the one that counts most first, and what a step of each is called."""
WHOLE = "Recording"
"""What is called so that is all of a trace without steps."""
STAGED = "staged"
"""A copy that was to be asynchronous, out of pageable memory: the driver first copies that to a buffer of its own, for
which the host waits (CUDA Runtime API, "API synchronization behavior")."""
_PLAIN = ("copy_", "_copy_from", "_to_copy", "_pin_memory", "pin_memory")
"""Operations whose name says nothing that the direction does not."""


class Cost(NamedTuple):
    """What happened in a step, or in a phase; ``seconds`` is ``None`` where nothing was timed.

    ``copying`` is how long devices copied, ``None`` where that is not known.
    """

    calls: float = 0.0
    bytes: float = 0.0
    seconds: float | None = None
    copying: float | None = None

    def plus(self, other: Cost) -> Cost:
        """The sum."""
        calls, size = self.calls + other.calls, self.bytes + other.bytes
        return Cost(calls, size, _sum(self.seconds, other.seconds), _sum(self.copying, other.copying))

    def weight(self) -> float:
        """What lines are sorted by."""
        return self.bytes / _BANDWIDTH + (self.calls * _LATENCY if self.seconds is None else self.seconds)


def _sum(*seconds: float | None) -> float | None:
    """The sum of what is known, ``None`` where nothing is."""
    known = [each for each in seconds if each is not None]
    return sum(known) if known else None


class Line(NamedTuple):
    """A line of code: of the project, else of a library; both fields empty for what no code asked for."""

    file: str = ""
    row: int = 0

    @classmethod
    def of(cls, frame: Frame | None) -> Line:
        """The line of a frame."""
        return cls(frame.file, frame.line) if frame else cls()


class Kind(NamedTuple):
    """What makes a row of its own within a line of code."""

    direction: str
    how: str = ""
    via: Line = Line()
    """The line of a library in which the project's line ended up; empty where there is none."""
    start: int = -1
    """The column of the expression in the line; several expressions are several rows."""


@dataclass(slots=True)
class Row:
    """One kind of event at one line, with its cost in each process, in their order."""

    kind: Kind
    costs: list[Cost]
    frame: Frame | None = None
    via: Frame | None = None
    steps: int = 0
    """In how many steps it happened, in the process where it did most often."""
    calls: int = 0
    repeats: int = 0
    """How many of all calls copied what had been copied there before."""
    doubled: int = 0
    """How many copied what another line had copied before."""
    double: Frame | None = None
    waits: bool = False
    """Whether the host waits here."""

    def weight(self) -> float:
        """What rows are sorted by: the process where it cost most."""
        return max(cost.weight() for cost in self.costs)


def summed(rows: Sequence[Row]) -> list[Cost]:
    """What rows cost together in each process."""
    return [reduce(Cost.plus, costs) for costs in zip(*(row.costs for row in rows), strict=True)]


@dataclass(slots=True)
class Group:
    """All rows of one line."""

    line: Line
    frame: Frame | None
    rows: list[Row] = field(default_factory=list)

    def weight(self) -> float:
        """What lines are sorted by."""
        return sum(row.weight() for row in self.rows)


@dataclass(slots=True)
class Table:
    """A phase of the run: its lines, the costliest first, and the sums by direction."""

    phase: Phase
    per_step: bool
    steps: Sequence[int]
    """The steps of the phase in each process."""
    groups: list[Group]
    totals: list[Row]
    who: str = ""
    """Whose phase it is, where it is not that of the processes that trained."""
    title: str = ""
    """What it is called if not by the phase."""

    @property
    def timed(self) -> bool:
        """Whether there are times to show."""
        return any(cost.seconds for row in self.totals for cost in row.costs)

    def rare(self, row: Row) -> bool:
        """Whether it happened in fewer than half of the steps."""
        return self.per_step and 0 < row.steps * 2 < max(self.steps, default=0)

    def recurring(self) -> Table:
        """The same without what is rare; all of it where nothing else is there."""
        kept = [replace(group, rows=[row for row in group.rows if not self.rare(row)]) for group in self.groups]
        groups = [group for group in kept if group.rows]
        rows = [row for group in groups for row in group.rows]
        totals = [
            replace(total, costs=summed([row for row in rows if row.kind.direction == total.kind.direction]))
            for total in self.totals
            if any(row.kind.direction == total.kind.direction for row in rows)
        ]
        return replace(self, groups=groups, totals=totals) if groups else self

    def waits(self) -> list[float]:
        """How often the host stood still in each process: blocking copies, and waits without a copy."""
        rows = [row for group in self.groups for row in group.rows if row.waits]
        return [sum(row.costs[index].calls for row in rows) for index in range(len(self.steps))]

    def blocked(self) -> list[float]:
        """How many seconds the host stood still in each process."""
        return [sum(row.costs[index].seconds or 0.0 for row in self.totals) for index in range(len(self.steps))]


def tables(record: Record) -> list[Table]:
    """All tables of a run that have something to show, those of the processes that trained first."""
    title = "" if has_phases(record) else WHOLE
    return [
        replace(found, title=title)
        for who, processes in groups(record)
        for phase in _PHASES
        if (found := table(processes, phase, who)).groups
    ]


def has_phases(record: Record) -> bool:
    """Whether it is known what the run was doing when; of a trace without steps it is not."""
    return not record.source or any(process.steps.of(phase) for process in record.processes for phase in STEPPING)


def table(processes: Sequence[Process], phase: Phase, who: str = "") -> Table:
    """Sum up one phase of several processes; ``who`` they are, if that has to be said."""
    steps = [process.steps.of(phase) for process in processes]
    # Processes with a device each do the same, each with its own.
    several = any(len(set(_devices(process))) > 1 for process in processes)
    lines: dict[Line, Group] = {}
    rows: dict[tuple[Line, Kind], Row] = {}
    totals: dict[str, Row] = {}
    together: dict[tuple[Line, Kind], list[int]] = {}
    for index, process in enumerate(processes):
        together.clear()
        for number, event in enumerate(process.events):
            if event.phase != phase or event.kind == "move" or not event.calls:
                continue
            cost = cost_of(event, steps[index])
            start = event.frame.column if event.frame and event.frame.column is not None else -1
            line, via = Line.of(event.frame or event.via), event.via if event.frame else None
            kind = Kind(direction(event), how(event, several), Line.of(via), start)
            group = lines.setdefault(line, Group(line, event.frame or event.via))
            row = rows.get((line, kind))
            if row is None:
                row = rows[line, kind] = Row(
                    kind, [Cost()] * len(processes), event.frame, via if kind.via.file else None
                )
                group.rows.append(row)
            together.setdefault((line, kind), []).append(number)
            row.calls += event.calls
            row.repeats += event.repeats
            row.doubled += event.doubled
            row.double = event.double or row.double
            row.waits = row.waits or event.kind == "sync" or bool(event.blocking)
            total = totals.setdefault(kind.direction, Row(Kind(kind.direction), [Cost()] * len(processes)))
            for each in (row, total):
                each.costs[index] = each.costs[index].plus(cost)
        for key, numbers in together.items():
            rows[key].steps = max(rows[key].steps, _steps_of(process, phase, steps[index], numbers))
    for group in lines.values():
        group.rows.sort(key=lambda row: (-row.weight(), row.kind.direction, row.kind.how))
    ordered = sorted(lines.values(), key=lambda group: (-group.weight(), group.line))
    return Table(phase, any(steps), steps, ordered, [totals[name] for name in _ORDER if name in totals], who)


def _steps_of(process: Process, phase: Phase, steps: int, events: Sequence[int]) -> int:
    """In how many steps any of these events happened; of a long run, whose steps are not all kept, about so many."""
    counts = [process.events[number].steps for number in events]
    if len(counts) == 1:
        return counts[0]
    kept = [part for part in process.timeline if part.phase == phase and part.number is not None]
    found = sum(any(part.event in events for part in one.parts) for one in kept)
    return min(max(round(found * steps / max(len(kept), 1)), *counts), sum(counts))


_ORDER = ("H2D", "D2H", "D2D", "sync", "pin", "call")


def direction(event: Event) -> str:
    """``H2D``, ``D2H``, ``D2D``; for what is no copy, its kind."""
    if event.kind != "copy":
        return event.kind
    return f"{_side(event.source)}2{_side(event.target)}"


def _side(device: str) -> str:
    return "H" if device.startswith("cpu") or not device else "D"


def cost_of(event: Event, steps: int) -> Cost:
    """Of a training step the median; what is too rare for that, and other phases with steps, by the mean."""
    steady = event.steady
    if event.phase == "train" and steady is not None and steady.calls:
        return Cost(steady.calls, steady.bytes, steady.seconds, steady.copying)
    parts = max(steps, 1)
    seconds, copying = (None if each is None else each / parts for each in (event.seconds, event.copying))
    return Cost(event.calls / parts, event.bytes / parts, seconds, copying)


def how(event: Event, several_devices: bool = False) -> str:
    """``pinned, async``; ``item, blocking``; ``nonzero``; ``backward``."""
    return one_line(", ".join(_qualities(event, several_devices)))


def _qualities(event: Event, several_devices: bool) -> Iterator[str]:
    named = event.name and event.name not in _PLAIN
    if named:
        yield event.name
    # of what reads a value, as `item`, it says nothing that the name does not
    if event.kind == "copy" and event.pinned is not None and direction(event) in ("H2D", "" if named else "D2H"):
        yield "pinned" if event.pinned else "pageable"
    if event.kind == "copy" and event.blocking is not None:
        yield "blocking" if event.blocking else "async"
    elif event.kind == "copy" and event.non_blocking and event.pinned is False:
        yield STAGED
    if event.by and event.by != event.name:
        yield f"in {event.by}()"
    if event.temporary:
        yield "via a temporary"
    if event.backward:
        yield "backward"
    if event.kind == "copy" and direction(event) == "D2D":
        yield f"{event.source} to {event.target}"
    elif event.kind == "copy" and several_devices:
        yield f"from {event.source}" if _side(event.source) == "D" else f"to {event.target}"


def _devices(process: Process) -> Iterable[str]:
    for event in process.events:
        if event.kind == "copy":
            yield from (device for device in (event.source, event.target) if _side(device) == "D")
