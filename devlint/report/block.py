"""Blocks: findings of one rule in one file with the same help, told once, with the code of the first of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from devlint.finding import ALSO, Finding, Severity
from devlint.report.base import in_cells
from devlint.report.evidence import said
from devlint.report.excerpt import diagnostic, notes_of, trimmed
from devlint.report.terminal import Paint, cells, one_line

_LISTED = 10
"""So many places of a block have a line of their own; of more the numbers of their lines are told."""
_LEAST = 20
"""Code that has fewer columns beside its place stands below it."""
_GUTTER = 5
"""Room for the numbers of lines at the left, whatever they are."""
_CELL = ":cell "
"""What stands between the name of a notebook and the number of a cell."""
_NAME = r"`([^`]*)`"
_WORD = r"""\w+|[^\w\s'"]"""

_Lines = Callable[[str], Sequence[str]]


def blocks(findings: Iterable[Finding]) -> list[list[Finding]]:
    """The findings that are told together, each block where its first finding stands."""
    found: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        found.setdefault((finding.filename, finding.code, finding.help), []).append(finding)
    return list(found.values())


def told(findings: Iterable[Finding], lines_of: _Lines, paint: Paint) -> Iterator[str]:
    """Yield the lines of a block: the gravest finding with its code, the help, and a line for each other place.

    A message that says more of its place than the code there shows is told, too.
    """
    alike: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in map(in_cells, sorted(findings, key=lambda finding: -finding.severity)):
        alike.setdefault((finding.severity, _beside_code(finding, lines_of)), []).extend(_each(finding))
    first = next(iter(alike.values())).pop(0)
    notes: list[tuple[str, str | list[str]]] = [*notes_of(first)]
    for index, ((severity, _), others) in enumerate(alike.items()):
        if others:
            name = "also" if severity == first.severity else str(severity)
            taken = _GUTTER + len(name) + 5
            message = paint.wrap(one_line(others[0].message), taken) if index else []
            notes.append((name, [*message, *_places(others, first, lines_of, paint, taken)]))
    return diagnostic(first, lines_of, paint, notes)


def _each(finding: Finding) -> Iterator[Finding]:
    """A finding and, each by itself, those for which it stands."""
    alone = replace(finding, related=tuple(place for place in finding.related if place.label != ALSO))
    yield alone
    for place in finding.related:
        if place.label == ALSO:
            yield replace(alone, filename=place.filename or finding.filename, span=place.span, related=())


def _places(findings: Sequence[Finding], first: Finding, lines_of: _Lines, paint: Paint, taken: int) -> Iterator[str]:
    """Yield a line for each place, with its code beside it or, where that has too little room, below it."""
    # What a run says is told of each, and errors are what a report is read for.
    folds = len(findings) > _LISTED + 1 and findings[0].severity is not Severity.ERROR and not any(map(said, findings))
    shown, folded = (findings[:_LISTED], findings[_LISTED:]) if folds else (findings, ())
    names = [one_line(f"{finding.filename}:{finding.span.row}:{finding.span.column}") for finding in shown]
    width = max(map(cells, names))
    columns = paint.window(0)
    room = None if columns is None else columns - taken - width - 2
    beside = room is None or room >= _LEAST
    for name, finding in zip(names, shown, strict=True):
        lines = lines_of(finding.filename)[finding.span.row - 1 : finding.span.row]
        fitting = room if beside else paint.window(taken + 2)
        code = "".join(trimmed(line, finding.span.column - 1, fitting) for line in lines)
        link = paint.link(finding.filename, name)
        yield f"{link}{' ' * (width - cells(name))}  {code}".rstrip() if beside else link
        if code and not beside:
            yield f"  {code}"
        for more in filter(None, [said(finding), _story(finding, first)]):
            yield from paint.hanging(more, "  ", "  ", taken + 2)
    if folded:
        yield from paint.wrap(f"and {len(folded):,} more: {'; '.join(_rows(folded, first))}", taken)


def _rows(findings: Sequence[Finding], first: Finding) -> Iterator[str]:
    """Where findings are, by file, which is named where it is not that of the first one."""
    files: dict[str, dict[str, None]] = {}
    for finding in findings:
        at = finding.span
        rows = files.setdefault(finding.filename.partition(_CELL)[0], {})
        rows[f"cell {at.cell}:{at.row}" if at.cell else str(at.row)] = None
    for name, rows in files.items():
        own = name == first.filename.partition(_CELL)[0]
        noun = "" if findings[0].span.cell else "lines "
        yield (noun if own else f"{one_line(name)}:") + ", ".join(rows)


def _story(finding: Finding, first: Finding) -> str:
    """What led to a finding, but for the lines that are shown with the first of its block."""
    own = finding.filename
    known = {(place.filename or first.filename, place.span.row) for place in first.related} | {(own, finding.span.row)}
    places = ((place.filename or own, place.span.row, place.label) for place in finding.related)
    others = ((name, row, label) for name, row, label in places if (name, row) not in known)
    told = (f"line {row}: {label}" if name == own else f"{name}:{row}: {label}" for name, row, label in others)
    return "; ".join(dict.fromkeys(told))


def _beside_code(finding: Finding, lines_of: _Lines) -> str:
    """The message without the names in it that stand in the code of its lines."""
    code = _words("\n".join(lines_of(finding.filename)[finding.span.row - 1 : finding.span.end_row]))

    def unless_there(name: re.Match[str]) -> str:
        there = all(f" {part.strip()} " in code for part in _words(name[1]).split(" . . . "))
        return "" if there else name[0]

    return re.sub(_NAME, unless_there, finding.message)


def _words(code: str) -> str:
    """Code as its words, whatever quotes and blanks it has."""
    return " ".join(["", *re.findall(_WORD, code), ""])
