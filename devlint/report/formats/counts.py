"""Counts: how often each rule fired, as text or JSON, and in what kinds of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from json import dumps

from devlint.finding import Finding, Severity
from devlint.report.base import Report
from devlint.report.wording import listed, plural


def statistics(report: Report, output_format: str) -> Iterator[str]:
    """Yield count, severity, code and name of each rule, the most frequent first, or the same as a list for ``json``.

    As text it also says in how many files that is, and how many can be fixed.
    """
    found: dict[tuple[str, str, Severity], list[Finding]] = {}
    for finding in report.findings:
        found.setdefault((finding.code, finding.name, finding.severity), []).append(finding)
    rows = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    if output_format == "json":
        objects = [
            {"code": code, "name": name, "severity": str(severity), "count": len(findings)}
            for (code, name, severity), findings in rows
        ]
        yield dumps(objects, indent=2)
        return
    width = max((len(str(len(findings))) for findings in found.values()), default=0)
    names = max((len(name) for _, name, _ in found), default=0)
    for (code, name, severity), findings in rows:
        fixable, _ = replace(report, findings=findings).fixable()
        where = plural(len({finding.filename for finding in findings}), "file")
        fixes = f", {fixable:,} fixable" if fixable else ""
        yield f"{len(findings):>{width}}  {severity!s:<7}  {code}  {name:<{names}}  in {where}{fixes}"


def kinds(report: Report) -> str:
    """How many findings are in kinds of files that can be left out, and by what; empty if there are none."""
    found = Counter(filter(None, (report.kind_of(finding.filename) for finding in report.findings)))
    if not found:
        return ""
    names = sorted(found, key=lambda kind: -found[kind])
    where = listed([f"{found[kind]:,} in {'vendored code' if kind == 'vendored' else kind}" for kind in names])
    return f"{where}: `exclude-kinds = {dumps(names)}` under `[tool.devlint]` leaves them out."
