"""How often each rule fired, the most frequent first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from devlint.report.base import Report


def render(report: Report, output_format: str = "text") -> Iterator[str]:
    """Yield a table of count, severity, code and name; a JSON list for the format ``json``."""
    counts = Counter((finding.code, finding.name, finding.severity) for finding in report.findings)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if output_format == "json":
        listed = [
            {"code": code, "name": name, "severity": str(severity), "count": count}
            for (code, name, severity), count in rows
        ]
        yield json.dumps(listed, indent=2)
        return
    width = max((len(str(count)) for count in counts.values()), default=0)
    for (code, name, severity), count in rows:
        yield f"{count:>{width}}  {severity!s:<7}  {code}  {name}"
