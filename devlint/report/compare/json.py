"""A comparison as JSON, as ``docs/compare.md`` describes it."""

from __future__ import annotations

import json
from typing import Any

from devlint.record import Record
from devlint.report.audit.header import command
from devlint.report.compare import Both, Comparison, Flow, Line, Spot

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
            "figures": {figure.name.replace(" ", "_"): _both(figure.values) for figure in found.figures},
            "directions": {flow.direction: _flow(flow) for flow in found.totals},
            "lines": [_line(line) for line in found.lines],
            "findings": {"gone": list(found.gone), "new": list(found.new), "remaining": found.remaining},
        },
        indent=1,
    )


def _run(record: Record) -> dict[str, Any]:
    return {"command": command(record), "started": record.started, "simulated": record.simulated}


def _both(values: Both) -> dict[str, Any]:
    return values._asdict()


def _flow(flow: Flow) -> dict[str, Any]:
    return {"calls": _both(flow.calls), "bytes": _both(flow.bytes), "seconds": _both(flow.seconds)}


def _line(line: Line) -> dict[str, Any]:
    return {
        "before": _spot(line.before),
        "after": _spot(line.after),
        "directions": {flow.direction: _flow(flow) for flow in line.flows},
    }


def _spot(spot: Spot | None) -> dict[str, Any] | None:
    return spot and {"file": spot.file, "line": spot.row, "function": spot.function, "code": spot.text}
