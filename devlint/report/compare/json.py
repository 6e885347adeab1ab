"""A comparison as JSON, as ``docs/compare.md`` describes it."""

from __future__ import annotations

import json
from typing import Any

from devlint.record import Record
from devlint.report.audit.header import command
from devlint.report.compare import Comparison, Flow, Line

FORMAT = 1


def render(found: Comparison) -> str:
    """The whole of it as one object."""
    return json.dumps(
        {
            "format": FORMAT,
            "before": _run(found.before),
            "after": _run(found.after),
            "comparable": not found.caveats,
            "caveats": list(found.caveats),
            "phase": found.phase,
            "per_step": found.per_step,
            "figures": {figure.name.replace(" ", "_"): figure.values._asdict() for figure in found.figures},
            "directions": {flow.direction: _flow(flow) for flow in found.totals},
            "lines": [_line(line) for line in found.lines],
            "findings": {"gone": list(found.gone), "new": list(found.new), "remaining": found.remaining},
        },
        indent=1,
    )


def _run(record: Record) -> dict[str, Any]:
    return {"command": command(record), "started": record.started, "simulated": record.simulated}


def _flow(flow: Flow) -> dict[str, Any]:
    return {"calls": flow.calls._asdict(), "bytes": flow.bytes._asdict(), "seconds": flow.seconds._asdict()}


def _line(line: Line) -> dict[str, Any]:
    sides = {name: spot and spot._asdict() for name, spot in (("before", line.before), ("after", line.after))}
    return {**sides, "directions": {flow.direction: _flow(flow) for flow in line.flows}}
