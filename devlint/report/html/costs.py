"""What happened at each line of code, and the code itself, as data for the page's script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from devlint.record import Record
from devlint.report.audit.code import Code
from devlint.report.audit.layout import heading, quality
from devlint.report.audit.table import Cost, Group, Row, Table, summed, tables
from devlint.report.html.code import chunks

_LONGEST = 80
"""More characters of an expression are cut off: its line is shown, too."""

Figures = list[Any]
"""Calls, bytes and blocked seconds: a number each, or the least and the greatest of several processes."""


class Texts:
    """Texts that occur again and again, each of which is kept once: ``found`` has them by number."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._numbers: dict[str, int] = {}

    def of(self, *texts: str) -> list[int]:
        """The numbers of some texts."""
        return [self._of(text) for text in texts]

    def _of(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self.found))
        if number == len(self.found):
            self.found.append(text)
        return number


def costs(record: Record, code: Code, texts: Texts, more: Iterable[str]) -> dict[str, Any]:
    """Tables, their rows, the sums of each line, and the files; ``more`` names files that are shown besides.

    ======== =====================================================================================================
    tables   title, what the figures are, phase, whether there are times
    rows     table, file, line, direction, how, via, expression, calls, bytes, seconds
    lines    table, file, line, calls, bytes, seconds: the sum of a line's rows
    files    name, chunks of lines
    ======== =====================================================================================================

    The costliest come first.  A file or a table is its index, a file -1 for what no code asked for; ``how`` and ``via``
    are numbers in ``texts``.
    """
    shown = tables(record)
    builder = _Builder(code, texts)
    for index, found in enumerate(shown):
        builder.add(index, found)
    for name in more:
        builder.file_called(name)
    return {
        "tables": [[*heading(found), found.phase, found.timed] for found in shown],
        "rows": builder.rows,
        "lines": builder.lines,
        "files": [[name, chunks(code.lines_by_name(name))] for name in builder.files],
    }


class _Builder:
    """Collects rows, and numbers the files in which they are."""

    def __init__(self, code: Code, texts: Texts) -> None:
        self._code = code
        self._texts = texts
        self.files: dict[str, int] = {}
        self.rows: list[list[Any]] = []
        self.lines: list[list[Any]] = []

    def add(self, index: int, found: Table) -> None:
        """Take all rows of a table."""
        for group in found.groups:
            file = self.file_called(self._code.name(group.line.file)) if group.line.file else -1
            place = [index, file, group.line.row]
            self.lines.append([*place, *_figures(summed(group.rows))])
            self.rows += [[*place, *self._row(found, group, row)] for row in group.rows]

    def file_called(self, name: str) -> int:
        """The index of the file that people call so."""
        return self.files.setdefault(name, len(self.files))

    def _row(self, found: Table, group: Group, row: Row) -> list[Any]:
        via = self._code.place(row.via) if row.via else ""
        frame = row.frame or group.frame
        expression = (self._code.expression(frame) or self._code.line(frame)) if frame else ""
        if row.via:  # the project's line is the same for all that a library did
            expression = self._code.line(row.via) or expression
        if len(expression) > _LONGEST:
            expression = f"{expression[: _LONGEST - 3].rstrip()}..."
        words = self._texts.of(quality(found, row), via)
        return [row.kind.direction, *words, expression, *_figures(row.costs)]


def _figures(found: Sequence[Cost]) -> Figures:
    timed = [cost.seconds for cost in found if cost.seconds is not None]
    seconds = _range([cost.seconds or 0.0 for cost in found]) if timed else None
    return [_range([cost.calls for cost in found]), _range([cost.bytes for cost in found]), seconds]


def _range(values: Sequence[float]) -> float | list[float]:
    low, high = min(values), max(values)
    return _short(high) if low == high else [_short(low), _short(high)]


def _short(value: float) -> float:
    return int(value) if value == int(value) else value
