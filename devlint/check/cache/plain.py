"""Findings as the tuples that are written into the cache, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from devlint.finding import Applicability, Context, Edit, Finding, Fix, Place, Severity, Span

_Span: TypeAlias = tuple[int, int, int, int, int]
_Fix: TypeAlias = tuple[str, list[tuple[_Span, str]], str]
_Context: TypeAlias = tuple[str, str, int, int]
PlainFinding: TypeAlias = tuple[
    str, str, int, str, _Span, str, list[tuple[_Span, str, str]], str, _Fix | None, _Context | None, bool
]  # fmt: skip
"""Everything but the name of the file, which is the same for all of them."""


def as_plain(findings: Iterable[Finding]) -> list[PlainFinding]:
    """Findings without the objects that they are made of."""
    return [_plain(finding) for finding in findings]


def as_findings(plain: Iterable[PlainFinding], filename: str) -> tuple[Finding, ...]:
    """The findings in a file; a ValueError if they are not what they should be."""
    return tuple(_finding(one, filename) for one in plain)


def _plain(finding: Finding) -> PlainFinding:
    fix: _Fix | None = None
    if finding.fix is not None:
        edits = [(_numbers(edit.span), edit.content) for edit in finding.fix.edits]
        fix = finding.fix.message, edits, finding.fix.applicability.value
    context = finding.context
    return (
        finding.code,
        finding.name,
        int(finding.severity),
        finding.message,
        _numbers(finding.span),
        finding.label,
        [(_numbers(place.span), place.label, place.filename) for place in finding.related],
        finding.help,
        fix,
        None if context is None else (context.scope, context.text, *context.rows),
        finding.asked,
    )


def _numbers(span: Span) -> _Span:
    return span.row, span.column, span.end_row, span.end_column, span.cell


def _finding(plain: PlainFinding, filename: str) -> Finding:
    code, name, severity, message, span, label, related, text, fix, context, asked = plain
    return Finding(
        code,
        name,
        Severity(severity),
        message,
        filename,
        Span(*span),
        label,
        tuple(Place(Span(*place), words, where) for place, words, where in related),
        text,
        None if fix is None else Fix(fix[0], tuple(Edit(Span(*at), new) for at, new in fix[1]), Applicability(fix[2])),
        None if context is None else Context(context[0], context[1], (context[2], context[3])),
        asked,
    )
