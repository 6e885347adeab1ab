"""Two audited runs side by side: what a change of the code bought.

:func:`compare` makes a :class:`Comparison` of two records; ``text.py`` and ``json.py`` show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from devlint.record import Phase, Process, Record
from devlint.report.audit.code import Code
from devlint.report.audit.processes import peak, trainers
from devlint.report.audit.table import Cost, Row, Table, summed, table
from devlint.report.compare.caveats import caveats
from devlint.report.compare.matching import pairs
from devlint.report.wording import duration, number, size

_PHASES: tuple[Phase, ...] = ("train", "eval", "setup")


class Both(NamedTuple):
    """A figure before and after; ``None`` where it is not known, or where there was nothing of the kind."""

    before: float | None
    after: float | None

    def differ(self, timed: bool = False) -> bool:
        """Whether both are known and are not as good as the same, as times are that differ by a twentieth at most."""
        old, new = self
        return old is not None and new is not None and abs(new - old) > (max(old, new) / 20 if timed else 0)


class Figure(NamedTuple):
    """A figure of the run as a whole, and how it is written."""

    name: str
    values: Both
    show: Callable[[float], str]


class Spot(NamedTuple):
    """A line of code in one of the runs."""

    file: str
    line: int
    function: str
    code: str


class Flow(NamedTuple):
    """What went in one direction, before and after: in a line, or in all."""

    direction: str
    calls: Both
    bytes: Both
    seconds: Both


class Line(NamedTuple):
    """A line of code: where it was, where it is, and what it cost by direction."""

    before: Spot | None
    after: Spot | None
    flows: Sequence[Flow]

    @property
    def changed(self) -> bool:
        """Whether it costs another amount now."""
        return any(flow.calls.differ() or flow.bytes.differ() or flow.seconds.differ(timed=True) for flow in self.flows)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that can be said of two runs."""

    before: Record
    after: Record
    caveats: Sequence[str]
    """Why the runs are not comparable, in whole or in part; empty where they are."""
    phase: Phase
    per_step: bool
    figures: Sequence[Figure]
    totals: Sequence[Flow]
    lines: Sequence[Line]
    """Those whose cost has changed most come first."""
    gone: Sequence[dict[str, Any]]
    """Findings of the first run that the second one does not have; files are named as people call them."""
    new: Sequence[dict[str, Any]]
    remaining: int


def compare(before: Record, after: Record) -> Comparison:
    """Lay two judged runs side by side: the phase that both have, training if possible."""
    runs = (before, after)
    phase: Phase = next((phase for phase in _PHASES if all(_has(record, phase) for record in runs)), "setup")
    sides = [_Side(record, phase, timed=not any(each.simulated for each in runs)) for record in runs]
    tables = [side.table for side in sides]
    alike = bool(before.source) == bool(after.source)  # a trace lacks what many rules look at
    gone, new, remaining = _findings(*runs) if alike else ([], [], 0)
    return Comparison(
        before=before,
        after=after,
        caveats=caveats(before, after),
        phase=phase,
        per_step=all(found.per_step for found in tables),
        figures=_figures(*sides),
        totals=_flows(sides[0].totals(), sides[1].totals()),
        lines=_lines(*sides),
        gone=gone,
        new=new,
        remaining=remaining,
    )


def _has(record: Record, phase: Phase) -> bool:
    steps = [process.steps for process in trainers(record)]
    return phase == "setup" or any(each.of(phase) for each in steps)


Costs = dict[str, Cost]
"""By direction; of several processes the greatest figure."""


class _Side:
    """One of the two runs: its lines and sums in one phase."""

    def __init__(self, record: Record, phase: Phase, timed: bool) -> None:
        self.timed = timed
        self.processes: Sequence[Process] = trainers(record)
        self.table: Table = table(self.processes, phase)
        self._code = Code(record)

    def totals(self) -> Costs:
        return {row.kind.direction: self._most(row.costs) for row in self.table.totals}

    def lines(self) -> list[tuple[Spot, Costs]]:
        costs = []
        for group in self.table.groups:
            rows: dict[str, list[Row]] = {}
            for row in group.rows:
                rows.setdefault(row.kind.direction, []).append(row)
            frame = group.frame
            spot = Spot(
                self._code.name(group.line.file) if group.line.file else "",
                group.line.row,
                frame.function if frame else "",
                self._code.line(frame) if frame else "",
            )
            costs.append((spot, {direction: self._most(summed(found)) for direction, found in rows.items()}))
        return sorted(costs, key=lambda line: (line[0].file, line[0].line))

    def greatest(self, values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return max(known, default=None) if self.timed else None

    def _most(self, costs: Sequence[Cost]) -> Cost:
        seconds = self.greatest(cost.seconds for cost in costs)
        return Cost(max(cost.calls for cost in costs), max(cost.bytes for cost in costs), seconds)


def _figures(before: _Side, after: _Side) -> list[Figure]:
    found = [
        Figure(name, Both(*(of(side) for side in (before, after))), show)
        for name, show, of in (
            ("step time", duration, lambda side: side.greatest(each.steps.step_seconds for each in side.processes)),
            (
                "waiting for the loader",
                duration,
                lambda side: side.greatest(each.steps.loader_seconds for each in side.processes),
            ),
            ("host blocked", duration, lambda side: side.greatest(side.table.blocked() if side.table.timed else ())),
            ("host waits", number, lambda side: max(side.table.waits(), default=0)),
            ("peak memory", size, lambda side: max(map(peak, side.processes), default=0) or None),
        )
    ]
    return [figure for figure in found if any(figure.values)]


def _flows(before: Costs, after: Costs) -> list[Flow]:
    found = []
    for name in dict.fromkeys([*before, *after]):
        sides = before.get(name), after.get(name)
        # what did not happen in a run happened no times, took no bytes and no time
        nothing = Cost(0, 0, 0.0 if any(cost and cost.seconds is not None for cost in sides) else None)
        figures = ((cost.calls, cost.bytes, cost.seconds) for cost in (cost or nothing for cost in sides))
        found.append(Flow(name, *map(Both, *figures)))
    return found


def _lines(before: _Side, after: _Side) -> list[Line]:
    matched = pairs(before.lines(), after.lines(), *_KEYS, similar=lambda line: (line[0].code, line[0].file))
    weighed = []
    for old, new in matched:
        weights = [sum(cost.weight() for cost in side[1].values()) if side else 0.0 for side in (old, new)]
        flows = _flows(old[1] if old else {}, new[1] if new else {})
        line = Line(old[0] if old else None, new[0] if new else None, flows)
        weighed.append(((abs(weights[1] - weights[0]), max(weights)), line))
    weighed.sort(key=lambda pair: pair[0], reverse=True)
    return [line for _, line in weighed]


_KEYS: tuple[Callable[[tuple[Spot, Costs]], object], ...] = (
    lambda line: (line[0].file, line[0].function, line[0].code, "" if line[0].code else line[0].line),
    lambda line: (line[0].file, line[0].code) if line[0].code else None,
    lambda line: line[0].code or None,
)
"""What makes two lines the same one, from the surest: as it was, in another function, in another file."""


def _findings(before: Record, after: Record) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    sides = [_named(record) for record in (before, after)]
    matched = pairs(sides[0], sides[1], *_FINDING_KEYS)
    gone = [old[0] for old, new in matched if old and not new]
    new_ = [new[0] for old, new in matched if new and not old]
    return gone, new_, sum(bool(old and new) for old, new in matched)


def _named(record: Record) -> list[tuple[dict[str, Any], str]]:
    """Each finding and its line of code."""
    code, found = Code(record), []
    for finding in record.findings or ():
        lines, row = code.lines(str(finding["filename"])), finding["location"]["row"]
        text = (lines[row - 1] or "").strip() if 0 < row <= len(lines) else ""
        found.append(({**finding, "filename": code.name(str(finding["filename"]))}, text))
    return found


_FINDING_KEYS: tuple[Callable[[tuple[dict[str, Any], str]], object], ...] = (
    lambda pair: (pair[0]["code"], pair[0]["filename"], pair[1], pair[0]["message"]),
    lambda pair: (pair[0]["code"], pair[0]["filename"], pair[1]) if pair[1] else None,
    lambda pair: (pair[0]["code"], pair[0]["filename"], pair[0]["message"]),
    lambda pair: (pair[0]["code"], pair[1]) if pair[1] else None,
)
"""The same of findings: as it was, said in other words, at a line that was edited, in another file."""
