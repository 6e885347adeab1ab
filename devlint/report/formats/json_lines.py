"""The objects of the format ``json``, one in each line, for programs that read line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator

from devlint.report.base import Report
from devlint.report.formats.json import objects


def render(report: Report) -> Iterator[str]:
    """Yield one JSON object for each failure and each finding."""
    for entry in objects(report):
        yield json.dumps(entry)
