"""One module per output format: a report in, text out."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from json import dumps

from devlint.report.base import Report

_WITHOUT_CELLS = frozenset({"github", "gitlab", "rdjson", "sarif"})
"""The formats in which a place in a notebook is one of its file."""


def render(report: Report, output_format: str) -> Iterator[str]:
    """Render a report, piece by piece."""
    if output_format == "json-lines":
        from devlint.report.formats.json import objects

        return map(dumps, objects(report))
    if output_format in _WITHOUT_CELLS:
        report = replace(report, findings=[report.in_file(finding) for finding in report.findings])
    pieces: Iterator[str] = importlib.import_module(f"{__name__}.{output_format}").render(report)
    return pieces
