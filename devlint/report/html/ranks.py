"""The ranks of a distributed run side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from devlint.record import Process, Record
from devlint.report.audit.header import called
from devlint.report.audit.processes import peak, ranks, title, trainers
from devlint.report.audit.table import table
from devlint.report.html.summary import ENDINGS
from devlint.report.wording import duration, number, size

_MANY = 1.2
"""A figure that is so much greater than the least one is marked."""


class Cell(NamedTuple):
    """A figure of one rank; ``share`` is the part of the greatest one of the row, ``None`` for words."""

    text: str
    share: float | None = None
    worst: bool = False


class Figures(NamedTuple):
    """One figure of all ranks."""

    title: str
    cells: Sequence[Cell]


class Ranks(NamedTuple):
    """All of them: their names, and the rows."""

    names: Sequence[str]
    rows: Sequence[Figures]


def side_by_side(record: Record) -> Ranks | None:
    """The ranks that took part, ``None`` if there was one process only."""
    found = ranks(record)
    if not found:
        return None
    trained = trainers(record)
    rows = _rows(found, any(process in trained and process.steps.train for process in found))
    return Ranks([title(process) for process in found], [row for row in rows if row.cells])


def _rows(found: Sequence[Process], trained: bool) -> Iterator[Figures]:
    if any(process.environment.host for process in found):
        yield Figures("machine", [Cell(process.environment.host) for process in found])
    yield Figures("device", [Cell(_device(process)) for process in found])
    yield Figures("ended", [Cell(ENDINGS[process.ending.kind]) for process in found])
    yield _figures("training steps", [process.steps.train for process in found], number)
    yield _figures("step time", [process.steps.step_seconds or 0.0 for process in found], duration)
    yield _figures("waiting for the loader", [process.steps.loader_seconds or 0.0 for process in found], duration)
    each = "per step" if trained else "before the first step"
    phase = table(found, "train" if trained else "setup")
    yield _figures(f"host waits {each}", phase.waits(), number)
    for row in phase.totals:
        name = row.kind.direction
        yield _figures(f"{name}: calls {each}", [cost.calls for cost in row.costs], number)
        yield _figures(f"{name}: bytes {each}", [cost.bytes for cost in row.costs], size)
        yield _figures(f"{name}: blocked {each}", [cost.seconds or 0.0 for cost in row.costs], duration)
    yield _figures("peak memory", [peak(process) for process in found], size)


def _figures(name: str, values: Sequence[float], show: Callable[[float], str]) -> Figures:
    """A row of figures, without any cell where all are nothing."""
    most, least = max(values), min(values)
    if not most:
        return Figures(name, ())
    uneven = most > least * _MANY
    return Figures(name, [Cell(show(value), value / most, uneven and value == most) for value in values])


def _device(process: Process) -> str:
    known = next((device for device in process.environment.devices if device.name == process.device), None)
    return called(known) if known else process.device
