"""One module per output format: a report in, text out."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace

from devlint.report.base import Report

_WITHOUT_CELLS = frozenset({"github", "gitlab", "rdjson", "sarif"})
"""The formats in which a place in a notebook is one of its file."""


def render(report: Report, view: str, output_format: str) -> Iterator[str]:
    """Render a report, piece by piece; ``view`` is empty for the findings, or ``statistics``."""
    if view == "statistics":
        from devlint.report import statistics

        return statistics.render(report, output_format)
    if output_format in _WITHOUT_CELLS:
        report = replace(report, findings=[report.in_file(finding) for finding in report.findings])
    module = importlib.import_module(f"{__name__}.{output_format.replace('-', '_')}")
    pieces: Iterator[str] = module.render(report)
    return pieces
