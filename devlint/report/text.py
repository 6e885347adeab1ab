"""Findings for people: the message, the place, the code with the finding and what led to it underlined, the help."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from devlint.finding import Finding, Severity, Span
from devlint.report.base import Report, one_line, plural

_COLORS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.INFO: "1;36"}
_BLUE, _BOLD = "1;34", "1"
_TAB = "    "
_WIDTH = 140
"""Longer lines are cut around what is underlined."""
_NEAR = 2
"""So many unmarked lines between two marked ones are shown rather than elided."""


class _Mark(NamedTuple):
    """What is to be underlined in one row: columns count from 0, the end is exclusive."""

    row: int
    start: int
    end: int
    label: str
    primary: bool


def render(report: Report) -> Iterator[str]:
    """Yield every finding with its frame, then the summary."""
    paint = _Paint(report.color)
    for finding in report.findings:
        yield "\n".join([*_finding(finding, report.lines(finding.filename), paint), ""])
    if not report.quiet and (report.files or report.findings):
        yield summary(report)


def summary(report: Report) -> str:
    """The closing line."""
    where = f"in {plural(report.files, 'file')}"
    counts = Counter(finding.severity for finding in report.findings)
    if not counts:
        text = f"No problems {where}."
    else:
        kinds = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "hint"}
        parts = [plural(counts[severity], noun) for severity, noun in kinds.items() if counts[severity]]
        text = f"Found {plural(counts.total(), 'problem')} ({', '.join(parts)}) {where}."
    return f"{text} {plural(report.failures, 'path')} could not be checked." if report.failures else text


class _Paint:
    """Colours, where they are wanted."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._enabled and text else text


def _finding(finding: Finding, lines: Sequence[str], paint: _Paint) -> Iterator[str]:
    color = _COLORS[finding.severity]
    marks = _marks(finding, lines)
    gutter = len(str(max((mark.row for mark in marks), default=finding.span.row)))
    bar = paint(_BLUE, " " * (gutter + 1) + "|")
    head = paint(color, f"{finding.severity}[{finding.code}]")
    yield f"{head} {paint(_BOLD, f'{finding.name}: {one_line(finding.message)}')}"
    arrow = paint(_BLUE, " " * gutter + "-->")
    yield f"{arrow} {one_line(finding.filename)}:{finding.span.row}:{finding.span.column}"
    if marks:
        yield bar
        marks.sort(key=lambda mark: (mark.row, not mark.primary, mark.start))
        yield from _frame(marks, lines, gutter, color, paint)
        yield bar
    if finding.help:
        for number, line in enumerate(finding.help.splitlines()):
            lead = paint(_BLUE, " " * (gutter + 1) + "=") + " help:" if number == 0 else " " * (gutter + 8)
            yield f"{lead} {one_line(line)}"


def _frame(marks: list[_Mark], lines: Sequence[str], gutter: int, color: str, paint: _Paint) -> Iterator[str]:
    bar = paint(_BLUE, " " * (gutter + 1) + "|")
    rows = sorted({mark.row for mark in marks})
    previous = rows[0]
    for row in rows:
        if row - previous - 1 > _NEAR:
            yield paint(_BLUE, "...")
            previous = row - 1
        for number in range(min(previous + 1, row), row + 1):
            here = [mark for mark in marks if mark.row == number]
            text, offset = _window(lines[number - 1], here)
            yield f"{paint(_BLUE, f'{number:>{gutter}} |')} {text}".rstrip()
            for mark in here:
                style, char = (color, "^") if mark.primary else (_BLUE, "-")
                lead, body = _underline(lines[number - 1], mark, offset)
                yield f"{bar} {lead}{paint(style, f'{char * body} {one_line(mark.label)}'.rstrip())}"
        previous = row


def _marks(finding: Finding, lines: Sequence[str]) -> list[_Mark]:
    marks = list(_rows_of(finding.span, finding.label, lines, True))
    for place in finding.related:
        # Where the finding itself stands its own label says it; twice the same line would only repeat it.
        if (place.span, place.label) != (finding.span, finding.label):
            marks += _rows_of(place.span, place.label, lines, False)
    return marks


def _rows_of(span: Span, label: str, lines: Sequence[str], primary: bool) -> Iterator[_Mark]:
    """Split a span into rows; of a long one only the first two and the last are shown, the label at the last."""
    last = min(span.end_row, len(lines))
    rows = range(span.row, last + 1)
    shown = rows if len(rows) <= 4 else (rows[0], rows[1], rows[-1])
    for row in shown:
        line = lines[row - 1]
        start = span.column - 1 if row == span.row else len(line) - len(line.lstrip())
        end = span.end_column - 1 if row == span.end_row else len(line.rstrip())
        yield _Mark(row, min(start, len(line)), max(end, start + 1), label if row == last else "", primary)


def _window(line: str, marks: list[_Mark]) -> tuple[str, int]:
    """The part of a line that is shown, and the character it begins with."""
    first = marks[0].start if marks else 0
    offset = max(0, first - _WIDTH // 2) if len(line) > _WIDTH else 0
    text = line[offset : offset + _WIDTH]
    shown = "".join(map(_shown, text))
    return f"{'...' if offset else ''}{shown}{'...' if offset + len(text) < len(line) else ''}", offset


def _underline(line: str, mark: _Mark, offset: int) -> tuple[str, int]:
    """The blanks before an underline and its length, in columns of the terminal."""
    start = min(max(mark.start, offset), offset + _WIDTH)
    end = min(max(mark.end, start), offset + _WIDTH)
    lead = 3 if offset else 0
    return " " * (lead + _cells(line[offset:start])), max(_cells(line[start:end]), 1)


def _cells(text: str) -> int:
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_cell, text))


def _cell(char: str) -> int:
    if char == "\t":
        return len(_TAB)
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _shown(char: str) -> str:
    """A character as it may reach a terminal: an escape sequence in somebody's source must not."""
    if char == "\t":
        return _TAB
    return char if char.isprintable() or _cell(char) == 0 else "\N{REPLACEMENT CHARACTER}"
