"""One module per output format: a report in, text out."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from devlint.report.base import Report

__all__ = ["Report", "render"]


def render(report: Report, view: str, output_format: str) -> Iterator[str]:
    """Render a report, piece by piece; ``view`` is empty for the findings, or ``statistics``."""
    if view == "statistics":
        from devlint.report import statistics

        return statistics.render(report, output_format)
    module = importlib.import_module(f"devlint.report.{output_format.replace('-', '_')}")
    pieces: Iterator[str] = module.render(report)
    return pieces
