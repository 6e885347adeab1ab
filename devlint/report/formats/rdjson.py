"""The Reviewdog Diagnostic Format: https://github.com/reviewdog/reviewdog/tree/master/proto/rdf."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from devlint.finding import Finding, Severity, Span, failed_file
from devlint.report.base import Report
from devlint.report.formats.exchange import clean, counted, utf8, whole

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def render(report: Report) -> Iterator[str]:
    """Yield one `DiagnosticResult` with a diagnostic for each failure and each finding."""
    worst = max((finding.severity for finding in report.findings), default=None)
    result: dict[str, Any] = {"source": {"name": "devlint"}}
    if report.undone or worst is not None:
        result["severity"] = "ERROR" if report.undone or worst is None else _SEVERITIES[worst]
    failures = [
        {"message": clean(line), "severity": "ERROR", "location": {"path": clean(failed_file(line))}}
        for line in report.undone
    ]
    result["diagnostics"] = [*failures, *(_diagnostic(report, finding) for finding in report.findings)]
    yield json.dumps(result, indent=2)


def _diagnostic(report: Report, finding: Finding) -> dict[str, Any]:
    text = f"{finding.message}\nhelp: {finding.help}" if finding.help else finding.message
    found: dict[str, Any] = {
        "message": clean(text),
        "location": _location(report, finding.filename, finding.span),
        "severity": _SEVERITIES[finding.severity],
        "code": {"value": finding.code},
    }
    if finding.fix is not None:
        # one suggestion: of several, a reader could accept one and leave half of the fix
        edit = whole(report, finding.filename, finding.fix)
        found["suggestions"] = (
            [{"range": _range(counted(report, finding.filename, edit.span, utf8)), "text": clean(edit.content)}]
            if edit is not None
            else []
        )
    if finding.related:
        found["related_locations"] = [
            {
                "message": clean(place.label),
                "location": _location(report, place.filename or finding.filename, place.span),
            }
            for place in finding.related
        ]
    return found


def _location(report: Report, filename: str, span: Span) -> dict[str, Any]:
    return {"path": clean(filename), "range": _range(counted(report, filename, span, utf8))}


def _range(span: Span) -> dict[str, Any]:
    return {
        "start": {"line": span.row, "column": span.column},
        "end": {"line": span.end_row, "column": span.end_column},
    }
