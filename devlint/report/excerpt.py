"""Excerpts: a finding above the code that it speaks of, with the places that explain it underlined, and notes below."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from devlint.finding import Finding, Severity, Span
from devlint.report.evidence import said
from devlint.report.terminal import BLUE, BOLD, NARROWEST, Paint, cells, one_line, shown

_COLORS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.INFO: "1;36"}
_WIDTH = 140
"""Longer lines are cut around what is underlined."""
_NEAR = 2
"""So many unmarked lines between two marked ones are shown rather than elided."""


class Mark(NamedTuple):
    """What is to be underlined in one row: columns count from 0, the end is exclusive."""

    row: int
    start: int
    end: int
    label: str
    primary: bool


def diagnostic(
    finding: Finding,
    lines_of: Callable[[str], Sequence[str | None]],
    paint: Paint,
    notes: Iterable[tuple[str, str | list[str]]] = (),
    titled: bool = True,
) -> Iterator[str]:
    """Yield the lines of one finding: its message, the code with what is marked in it, and the notes below that.

    ``lines_of`` gives the lines of a file, ``None`` where a line is not known.  A note is a title and its text, or
    the lines of that as they are to be shown.
    """
    color = _COLORS[finding.severity]
    if titled:
        code = f"{finding.severity}[{finding.code}]" if finding.code else f"{finding.severity}:"
        title = f"{finding.name}: " if finding.name else ""
        top, *more = paint.wrap(one_line(f"{code} {title}{finding.message}"), 4)
        yield f"{paint(color, top[: len(code)])}{paint(BOLD, top[len(code) :])}"
        yield from (paint(BOLD, f"    {line}") for line in more)
    files = list(excerpts(finding, lines_of))
    gutter = len(str(max((mark.row for *_, marks in files for mark in marks), default=finding.span.row)))
    bar = paint(BLUE, " " * (gutter + 1) + "|")
    for index, (name, lines, marks) in enumerate(files):
        if index and not marks:
            continue
        row, column = (marks[0].row, marks[0].start + 1) if index else (finding.span.row, finding.span.column)
        arrow = paint(BLUE, " " * gutter + (":::" if index else "-->"))
        yield f"{arrow} {paint.link(name, f'{one_line(name)}:{row}:{column}')}"
        if marks:
            yield bar
            yield from _frame(marks, lines, gutter, color, paint)
            yield bar
    for name, text in notes:
        indent = gutter + len(name) + 5
        first, rest = f"{paint(BLUE, ' ' * (gutter + 1) + '=')} {name}: ", " " * indent
        if isinstance(text, str):
            yield from paint.hanging(text, first, rest, indent)
        else:
            yield from (f"{rest if number else first}{line}" for number, line in enumerate(text))


def excerpts(
    finding: Finding, lines_of: Callable[[str], Sequence[str | None]]
) -> Iterator[tuple[str, Sequence[str | None], list[Mark]]]:
    """Yield each file that a finding speaks of, its own first: the name, the lines, and what is marked in them."""
    own = finding.filename
    marks: dict[str, list[Mark]] = {own: list(_rows_of(finding.span, finding.label, lines_of(own), True))}
    for place in finding.related:
        found = marks.setdefault(place.filename or own, [])
        # Where the finding itself stands its own label says it; twice the same line would only repeat it.
        if place.filename not in ("", own) or (place.span, place.label) != (finding.span, finding.label):
            found += _rows_of(place.span, place.label, lines_of(place.filename or own), False)
    for name, found in marks.items():
        yield name, lines_of(name), found


def rows_between(lines: Sequence[str | None], marks: Sequence[Mark]) -> Iterator[tuple[int | None, list[Mark]]]:
    """Yield the rows that show marks, each with its own, the primary one first; ``None`` where rows are left out."""
    rows = sorted({mark.row for mark in marks})
    previous = rows[0]
    for row in rows:
        if row - previous - 1 > _NEAR or None in lines[previous : row - 1]:
            yield None, []
            previous = row - 1
        for number in range(min(previous + 1, row), row + 1):
            here = [mark for mark in marks if mark.row == number]
            yield number, sorted(here, key=lambda mark: (not mark.primary, mark.start))
        previous = row


def _frame(marks: list[Mark], lines: Sequence[str | None], gutter: int, color: str, paint: Paint) -> Iterator[str]:
    bar = paint(BLUE, " " * (gutter + 1) + "|")
    room = paint.window(gutter + 3)
    # Room for the dots at both ends of a line that is cut.
    width = _WIDTH if room is None else min(_WIDTH, room - 6)
    for number, here in rows_between(lines, marks):
        if number is None:
            yield paint(BLUE, "...")
            continue
        line = lines[number - 1] or ""
        text, offset = _window(line, here, width)
        yield f"{paint(BLUE, f'{number:>{gutter}} |')} {text}".rstrip()
        for mark in here:
            style, char = (color, "^") if mark.primary else (BLUE, "-")
            lead, body = _underline(line, mark, offset, width)
            for indent, words in _labelled(char * body, one_line(mark.label), len(lead), room):
                yield f"{bar} {' ' * indent}{paint(style, words)}"


def _labelled(underline: str, label: str, lead: int, room: int | None) -> Iterator[tuple[int, str]]:
    """An underline and its label, with the columns before them; the label stands below where it has no room."""
    if room is None or not label or lead + len(underline) + 1 + cells(label) <= room:
        yield lead, f"{underline} {label}".rstrip()
        return
    yield lead, underline
    lead = max(min(lead, room - NARROWEST), 0)
    for line in textwrap.wrap(label, room - lead, break_on_hyphens=False, break_long_words=False):
        yield lead, line


def _rows_of(span: Span, label: str, lines: Sequence[str | None], primary: bool) -> Iterator[Mark]:
    """Split a span into rows; of a long one only the first two and the last are shown, the label at the last."""
    last = min(span.end_row, len(lines))
    rows = range(max(span.row, 1), last + 1)
    shown = rows if len(rows) <= 4 else (rows[0], rows[1], rows[-1])
    for row in shown:
        line = lines[row - 1]
        if line is None:
            continue
        start = span.column - 1 if row == span.row else len(line) - len(line.lstrip())
        end = span.end_column - 1 if row == span.end_row else len(line.rstrip())
        yield Mark(row, min(start, len(line)), max(end, start + 1), label if row == last else "", primary)


def _window(line: str, marks: list[Mark], width: int) -> tuple[str, int]:
    """The part of a line that is shown, and the character it begins with."""
    first = marks[0].start if marks else 0
    offset = max(0, first - width // 2) if len(line) > width else 0
    text = line[offset : offset + width]
    return f"{'...' if offset else ''}{shown(text)}{'...' if offset + len(text) < len(line) else ''}", offset


def trimmed(line: str, column: int, room: int | None) -> str:
    """The part of a line around a column that fits, without what it is indented by."""
    code = line.strip()
    start = max(column - (len(line) - len(line.lstrip())), 0)
    width = _WIDTH if room is None else min(_WIDTH, room)
    # Room for the dots at both ends, as below.
    return shown(code) if cells(code) <= width else _window(code, [Mark(0, start, start, "", True)], width - 6)[0]


def _underline(line: str, mark: Mark, offset: int, width: int) -> tuple[str, int]:
    """The blanks before an underline and its length, in columns of the terminal."""
    start = min(max(mark.start, offset), offset + width)
    end = min(max(mark.end, start), offset + width)
    lead = 3 if offset else 0
    return " " * (lead + cells(line[offset:start])), max(cells(line[start:end]), 1)


def notes_of(finding: Finding) -> list[tuple[str, str]]:
    """What stands below the code of a finding: what a run says of it, and the help."""
    return [(name, text) for name, text in (("run", said(finding)), ("help", finding.help)) if text]
