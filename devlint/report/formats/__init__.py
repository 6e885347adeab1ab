"""One module per output format: a report in, text out; and the counts, which have the format of text or JSON."""

from __future__ import annotations

import importlib
from collections import Counter
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


def statistics(report: Report, output_format: str) -> Iterator[str]:
    """Yield how often each rule fired, as a table of count, severity, code and name, or as a JSON list for ``json``."""
    counts = Counter((finding.code, finding.name, finding.severity) for finding in report.findings)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if output_format == "json":
        listed = [
            {"code": code, "name": name, "severity": str(severity), "count": count}
            for (code, name, severity), count in rows
        ]
        yield dumps(listed, indent=2)
        return
    width = max((len(str(count)) for count in counts.values()), default=0)
    for (code, name, severity), count in rows:
        yield f"{count:>{width}}  {severity!s:<7}  {code}  {name}"
