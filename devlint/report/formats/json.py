"""Findings as JSON in ruff's shape, for other programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from devlint.finding import Finding, Fix, Place, Span, failed_file
from devlint.report.base import Report


def render(report: Report) -> Iterator[str]:
    """Yield one JSON list with an object for every failure and every finding."""
    yield json.dumps(list(objects(report)), indent=2)


def objects(report: Report) -> Iterator[dict[str, Any]]:
    """Yield what a run could not do, and what it found, as JSON objects."""
    yield from map(_failed, report.undone)
    yield from map(as_object, report.findings)


def _failed(line: str) -> dict[str, Any]:
    """What devlint could not do, in the shape of a finding without a rule and without a place."""
    path = failed_file(line)
    return {
        "code": None,
        "name": "failure",
        "severity": "error",
        "message": line,
        "label": "",
        "help": "",
        "filename": absolute(path) if path else None,
        "location": None,
        "end_location": None,
        "fix": None,
        "related": [],
    }


def as_object(finding: Finding) -> dict[str, Any]:
    """A finding as the JSON object that stands for it."""
    found = {
        "code": finding.code,
        "name": finding.name,
        "severity": str(finding.severity),
        "message": finding.message,
        "label": finding.label,
        "help": finding.help,
        "filename": absolute(finding.filename),
        **place_of(finding.span),
        "fix": _fix(finding.fix) if finding.fix else None,
        "related": places(finding.related, finding.filename),
    }
    if finding.evidence is not None:
        from devlint.report import evidence

        found["evidence"] = evidence.as_object(finding.evidence)
    return found


def places(story: Sequence[Place], filename: str) -> list[dict[str, Any]]:
    """The places that explain something in a file."""
    return [
        {"message": place.label, "filename": absolute(place.filename or filename), **place_of(place.span)}
        for place in story
    ]


def absolute(filename: str) -> str:
    """The name of a file for whoever is elsewhere; the standard input and its like have none."""
    return filename if filename == "-" or filename.startswith("<") else os.path.abspath(filename)


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "edits": [{"content": edit.content, **place_of(edit.span)} for edit in fix.edits],
    }


def place_of(span: Span) -> dict[str, Any]:
    """Where something begins and ends, in ruff's shape; in a notebook, in which cell."""
    cell = {"cell": span.cell} if span.cell else {}
    return {
        **cell,
        "location": {"row": span.row, "column": span.column},
        "end_location": {"row": span.end_row, "column": span.end_column},
    }
