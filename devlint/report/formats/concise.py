"""One line per finding, for grep, editors and people in a hurry."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.finding import named
from devlint.report.base import Report
from devlint.report.evidence import said
from devlint.report.terminal import one_line


def render(report: Report) -> Iterator[str]:
    """Yield ``path:row:column: CODE message`` for every finding, with what a run says of it in brackets."""
    if report.filed:
        yield from (one_line(f"error: {line}") for line in report.undone)
    for finding in report.findings:
        span = finding.span
        place = named(finding.filename, span.cell)
        yield one_line(f"{place}:{span.row}:{span.column}: {finding.code} {finding.message}{said(finding, ' [', ']')}")
