"""What happened at each line of code, and the code itself, as data for the page's script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from devlint.record import Record
from devlint.report.audit.code import Code
from devlint.report.audit.layout import heading, quality
from devlint.report.audit.table import Cost, Group, Row, summed, tables
from devlint.report.html.code import chunks

_LONGEST = 80
"""More characters of an expression are cut off: its line is shown, too."""


class Texts:
    """Texts that occur again and again, each of which is kept once, under a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, *texts: str) -> list[int]:
        """The numbers of some texts."""
        return [self._numbers.setdefault(text, len(self._numbers)) for text in texts]

    def all(self) -> list[str]:
        """The texts in the order of their numbers."""
        return list(self._numbers)


def costs(record: Record, code: Code, texts: Texts, more: Iterable[str]) -> dict[str, Any]:
    """Tables, their rows, the sums of each line, and the files; ``more`` names files that are shown besides.

    ======== =====================================================================================================
    tables   title, what the figures are, phase, whether there are times
    rows     table, file, line, direction, how, via, expression, calls, bytes, seconds, copying
    lines    table, file, line, calls, bytes, seconds, copying: the sum of a line's rows
    files    name, chunks of lines
    ======== =====================================================================================================

    The costliest come first.  A file or a table is its index, a file -1 for what no code asked for; ``how`` and ``via``
    are numbers in ``texts``.
    """
    shown = tables(record)
    files: dict[str, int] = {}
    rows: list[list[Any]] = []
    lines: list[list[Any]] = []
    for index, found in enumerate(shown):
        for group in found.groups:
            file = group.line.file and code.name(group.line.file)
            place = [index, files.setdefault(file, len(files)) if file else -1, group.line.row]
            lines.append([*place, *_figures(summed(group.rows))])
            for row in group.rows:
                words = texts.of(quality(found, row), code.place(row.via) if row.via else "")
                spent = [row.kind.direction, *words, _expression(code, group, row), *_figures(row.costs)]
                rows.append([*place, *spent])
    return {
        "tables": [[*heading(found), found.phase, found.timed] for found in shown],
        "rows": rows,
        "lines": lines,
        "files": [[name, chunks(code.lines_by_name(name))] for name in dict.fromkeys([*files, *more])],
    }


def _expression(code: Code, group: Group, row: Row) -> str:
    """The code of a row: of what a library did its own line, since the project's is the same for all of that."""
    frame = row.frame or group.frame
    text = (code.expression(frame) or code.line(frame)) if frame else ""
    text = (code.line(row.via) or text) if row.via else text
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3].rstrip()}..."


def _figures(found: Sequence[Cost]) -> list[Any]:
    """The figures of rows: a number each, or the least and the greatest of several processes.

    The last are left out where they are not known.
    """
    timed = any(cost.seconds is not None for cost in found)
    seconds = _range([cost.seconds or 0.0 for cost in found]) if timed else None
    copying = [_range([cost.copying or 0.0 for cost in found])] if any(cost.copying for cost in found) else []
    return [_range([cost.calls for cost in found]), _range([cost.bytes for cost in found]), seconds, *copying]


def _range(values: Sequence[float]) -> float | list[float]:
    low, high = min(values), max(values)
    return _short(high) if low == high else [_short(low), _short(high)]


def _short(value: float) -> float:
    return int(value) if value == int(value) else value
