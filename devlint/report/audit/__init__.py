"""The report of an audited run: a record in, text out.  It needs neither torch nor the code that ran."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.record import Process, Record
from devlint.report.audit.code import Code
from devlint.report.audit.findings import counted, fatal, told
from devlint.report.audit.header import header
from devlint.report.audit.layout import lay_out, legend
from devlint.report.audit.processes import title
from devlint.report.audit.table import tables
from devlint.report.excerpt import diagnostic
from devlint.report.terminal import BOLD, Paint, one_line

_WIDEST = 140
"""On a wider terminal the lines stay so long: numbers and code should be seen at one glance."""
_NARROWEST = 72


def render(record: Record, color: bool = False, width: int = 100, quiet: bool = False) -> Iterator[str]:
    """Yield the report piece by piece; a piece is one or more lines, without the last line end.

    ``width`` is that of the terminal.  ``quiet`` leaves all out but what was found.
    """
    width = min(max(width, _NARROWEST), _WIDEST)
    paint, code = Paint(color, width), Code(record)
    died_of = fatal(record)
    if not quiet:
        yield from _section(header(record, code, paint))
    for finding, below in told(record, died_of, code):
        yield from _section(diagnostic(finding, code.lines_by_name, paint, below))
    if quiet:
        return
    closing = counted(record, died_of)
    if closing:
        yield from _section([closing])
    if shown := tables(record):
        yield from _section(lay_out(shown, code, paint, width))
        yield from _section(legend(shown, paint))
    yield from _section(_list("Advice", record.advice or (), paint))
    yield from _section(_list("Notes", notes(record), paint))


def notes(record: Record) -> Iterator[str]:
    """Yield what every process has to say of how it was observed; what all say, once."""
    said: dict[str, list[Process]] = {}
    for process in record.processes:
        own = list(process.notes)
        if process.failure:
            own.append(f"devlint failed and switched the audit off, so figures are missing: {process.failure}")
        for note in own:
            said.setdefault(note, []).append(process)
    for note, who in said.items():
        everybody = len(who) == len(record.processes)
        yield note if everybody else f"{', '.join(dict.fromkeys(map(title, who)))}: {note}"


def _list(heading: str, items: Iterator[str] | tuple[str, ...], paint: Paint) -> Iterator[str]:
    for index, item in enumerate(items):
        if index == 0:
            yield paint(BOLD, heading)
        yield from paint.hanging(one_line(item), "  - ", "    ", 5)


def _section(lines: Iterator[str] | list[str]) -> Iterator[str]:
    """The lines and an empty one; nothing where there are none."""
    text = "\n".join(lines)
    if text:
        yield text + "\n"
