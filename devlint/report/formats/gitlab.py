"""GitLab's code quality report: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from devlint.finding import Severity, Span, failed_file
from devlint.report.base import Report
from devlint.report.formats.exchange import Repository, clean, digest, fingerprints

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}
_NOWHERE = Span(1, 1, 1, 1)


def render(report: Report) -> Iterator[str]:
    """Yield one JSON list with an object for each failure and each finding."""
    repository = Repository.around(os.getcwd())
    failures = [
        _entry("failure", line, "blocker", repository.path(failed_file(line)), _NOWHERE, digest("failure", line))
        for line in dict.fromkeys(report.undone)
    ]
    findings = [
        _entry(
            finding.code,
            f"{finding.code} {finding.message}",
            _SEVERITIES[finding.severity],
            repository.path(finding.filename),
            finding.span,
            fingerprint,
        )
        for finding, fingerprint in fingerprints(report.findings, repository)
    ]
    yield json.dumps([*failures, *findings], indent=2)


def _entry(check: str, text: str, severity: str, path: str, span: Span, fingerprint: str) -> dict[str, Any]:
    return {
        "description": clean(text),
        "check_name": check,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {
            "path": clean(path),
            "positions": {
                "begin": {"line": span.row, "column": span.column},
                "end": {"line": span.end_row, "column": span.end_column},
            },
        },
    }
