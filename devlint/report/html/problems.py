"""The findings of a run as the page shows them: with their code, what is marked in it, and the rule's own words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from devlint.finding import Finding
from devlint.record import Record
from devlint.report.audit.code import Code
from devlint.report.audit.findings import Notes, counted, fatal, told
from devlint.report.excerpt import Mark, excerpts, rows_between
from devlint.rules.base import Rule
from devlint.rules.registry import registry

_IN_FULL = 100
"""So many findings are shown with their code at once; of the others, the page has one line each, on demand."""
_FURTHEST = 100
"""So far in stands a label at most."""


class Piece(NamedTuple):
    """A part of a line; ``mark`` is ``primary``, ``secondary`` or empty."""

    text: str
    mark: str = ""


class Label(NamedTuple):
    """What is said below a line, ``indent`` columns in."""

    text: str
    mark: str
    indent: int


class Line(NamedTuple):
    """A line of code, what is marked in it, and what is said below it; no ``row`` where lines are left out."""

    row: int | None
    pieces: Sequence[Piece] = ()
    labels: Sequence[Label] = ()


class Excerpt(NamedTuple):
    """Marked lines of one file; ``name`` is empty where it is the finding's own."""

    name: str
    lines: Sequence[Line]


class Problem(NamedTuple):
    """A finding, its code, and the notes below: titles and texts."""

    finding: Finding
    excerpts: Sequence[Excerpt]
    notes: Notes


@dataclass(slots=True)
class Problems:
    """All that was found: in full, and in short what is too much for that."""

    shown: list[Problem]
    further: list[tuple[str, str, str, str, str, int, int]]
    """Code, name, severity, message, file, row and column of each finding that is not shown in full."""
    closing: str
    rules: Sequence[type[Rule]]
    """The rules that have found something; a record may name some that this devlint does not have."""
    files: Iterable[str]
    """The names of the files that findings speak of."""


def problems(record: Record, code: Code) -> Problems:
    """What was found in a run, what it died of first, then the worst."""
    died_of = fatal(record)
    found = sorted(told(record, died_of, code), key=lambda pair: -pair[0].severity)
    shown = [Problem(finding, list(_excerpts(finding, code)), notes) for finding, notes in found[:_IN_FULL]]
    further = [
        (each.code, each.name, str(each.severity), each.message, each.filename, each.span.row, each.span.column)
        for each, _ in found[_IN_FULL:]
    ]
    codes = {finding.code for finding, _ in found if finding.code}
    known = registry() if codes else {}
    rules = [known[code] for code in sorted(codes) if code in known]
    return Problems(shown, further, counted(record, died_of), rules, dict.fromkeys(each.filename for each, _ in found))


def _excerpts(finding: Finding, code: Code) -> Iterator[Excerpt]:
    for index, (name, lines, marks) in enumerate(excerpts(finding, code.lines_by_name)):
        if marks:
            yield Excerpt(name if index else "", list(_lines(lines, marks)))


def _lines(lines: Sequence[str | None], marks: list[Mark]) -> Iterator[Line]:
    for number, here in rows_between(lines, marks):
        labels = [Label(mark.label, _kind(mark), min(mark.start, _FURTHEST)) for mark in here if mark.label]
        yield Line(number, [] if number is None else list(_pieces(lines[number - 1] or "", here)), labels)


def _pieces(line: str, marks: Sequence[Mark]) -> Iterator[Piece]:
    """The line in pieces; where marks overlap, the primary one is seen."""
    edges = sorted({0, len(line), *(min(edge, len(line)) for mark in marks for edge in (mark.start, mark.end))})
    for start, end in pairwise(edges):
        covering = [mark for mark in marks if mark.start <= start and end <= mark.end]
        yield Piece(line[start:end], _kind(covering[0]) if covering else "")


def _kind(mark: Mark) -> str:
    return "primary" if mark.primary else "secondary"
