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
    notes: Iterable[tuple[str, str]] = (),
) -> Iterator[str]:
    """Yield the lines of one finding: its message, the code with what is marked in it, and the notes below that.

    ``lines_of`` gives the lines of a file, ``None`` where a line is not known.  A note is a title and its text.
    """
    color = _COLORS[finding.severity]
    code = f"{finding.severity}[{finding.code}]" if finding.code else f"{finding.severity}:"
    title = f"{finding.name}: " if finding.name else ""
    first, *more = paint.wrap(one_line(f"{code} {title}{finding.message}"), 4)
    yield f"{paint(color, first[: len(code)])}{paint(BOLD, first[len(code) :])}"
    yield from (paint(BOLD, f"    {line}") for line in more)
    yield from body(finding, lines_of, paint, notes)


def body(
    finding: Finding,
    lines_of: Callable[[str], Sequence[str | None]],
    paint: Paint,
    notes: Iterable[tuple[str, str]] = (),
) -> Iterator[str]:
    """Yield the lines of one finding below its message."""
    color = _COLORS[finding.severity]
    lines = lines_of(finding.filename)
    (_, _, marks), *others = excerpts(finding, lines_of)
    rows = [mark.row for found in (marks, *(other for *_, other in others)) for mark in found]
    gutter = len(str(max(rows, default=finding.span.row)))
    bar = paint(BLUE, " " * (gutter + 1) + "|")
    arrow = paint(BLUE, " " * gutter + "-->")
    where = f"{one_line(finding.filename)}:{finding.span.row}:{finding.span.column}"
    yield f"{arrow} {paint.link(finding.filename, where)}"
    if marks:
        yield bar
        yield from _frame(marks, lines, gutter, color, paint)
        yield bar
    for name, known, found in others:
        if found:
            where = f"{one_line(name)}:{found[0].row}:{found[0].start + 1}"
            yield f"{paint(BLUE, ' ' * gutter + ':::')} {paint.link(name, where)}"
            yield bar
            yield from _frame(found, known, gutter, color, paint)
            yield bar
    for name, text in notes:
        indent = gutter + len(name) + 4
        for number, line in enumerate(paint.wrap(text, indent + 1)):
            lead = paint(BLUE, " " * (gutter + 1) + "=") + f" {name}:" if number == 0 else " " * indent
            yield f"{lead} {one_line(line)}"


def excerpts(
    finding: Finding, lines_of: Callable[[str], Sequence[str | None]]
) -> Iterator[tuple[str, Sequence[str | None], list[Mark]]]:
    """Yield each file that a finding speaks of, its own first: the name, the lines, and what is marked in them."""
    lines = lines_of(finding.filename)
    yield finding.filename, lines, _marks(finding, lines)
    for name in _other_files(finding):
        yield name, *_marks_elsewhere(finding, name, lines_of)


def _frame(marks: list[Mark], lines: Sequence[str | None], gutter: int, color: str, paint: Paint) -> Iterator[str]:
    marks.sort(key=lambda mark: (mark.row, not mark.primary, mark.start))
    bar = paint(BLUE, " " * (gutter + 1) + "|")
    rows = sorted({mark.row for mark in marks})
    previous = rows[0]
    room = paint.window(gutter + 3)
    # Room for the dots at both ends of a line that is cut.
    width = _WIDTH if room is None else min(_WIDTH, room - 6)
    for row in rows:
        if row - previous - 1 > _NEAR or None in lines[previous : row - 1]:
            yield paint(BLUE, "...")
            previous = row - 1
        for number in range(min(previous + 1, row), row + 1):
            here = [mark for mark in marks if mark.row == number]
            line = lines[number - 1] or ""
            text, offset = _window(line, here, width)
            yield f"{paint(BLUE, f'{number:>{gutter}} |')} {text}".rstrip()
            for mark in here:
                style, char = (color, "^") if mark.primary else (BLUE, "-")
                lead, body = _underline(line, mark, offset, width)
                for indent, words in _labelled(char * body, one_line(mark.label), len(lead), room):
                    yield f"{bar} {' ' * indent}{paint(style, words)}"
        previous = row


def _labelled(underline: str, label: str, lead: int, room: int | None) -> Iterator[tuple[int, str]]:
    """An underline and its label, with the columns before them; the label stands below where it has no room."""
    if room is None or not label or lead + len(underline) + 1 + cells(label) <= room:
        yield lead, f"{underline} {label}".rstrip()
        return
    yield lead, underline
    lead = max(min(lead, room - NARROWEST), 0)
    for line in textwrap.wrap(label, room - lead, break_on_hyphens=False, break_long_words=False):
        yield lead, line


def _marks(finding: Finding, lines: Sequence[str | None]) -> list[Mark]:
    marks = list(_rows_of(finding.span, finding.label, lines, True))
    for place in finding.related:
        # Where the finding itself stands its own label says it; twice the same line would only repeat it.
        here = place.filename in ("", finding.filename)
        if here and (place.span, place.label) != (finding.span, finding.label):
            marks += _rows_of(place.span, place.label, lines, False)
    return marks


def _other_files(finding: Finding) -> list[str]:
    """The files besides its own in which a finding has places, in their order."""
    names = dict.fromkeys(place.filename for place in finding.related)
    return [name for name in names if name not in ("", finding.filename)]


def _marks_elsewhere(
    finding: Finding, name: str, lines_of: Callable[[str], Sequence[str | None]]
) -> tuple[Sequence[str | None], list[Mark]]:
    lines = lines_of(name)
    places = [place for place in finding.related if place.filename == name]
    return lines, [mark for place in places for mark in _rows_of(place.span, place.label, lines, False)]


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


def _underline(line: str, mark: Mark, offset: int, width: int) -> tuple[str, int]:
    """The blanks before an underline and its length, in columns of the terminal."""
    start = min(max(mark.start, offset), offset + width)
    end = min(max(mark.end, start), offset + width)
    lead = 3 if offset else 0
    return " " * (lead + cells(line[offset:start])), max(cells(line[start:end]), 1)


def notes_of(finding: Finding) -> list[tuple[str, str]]:
    """What stands below the code of a finding: what a run says of it, and the help."""
    return [(name, text) for name, text in (("run", said(finding)), ("help", finding.help)) if text]
