"""The steps of a run one by one: data for the page's chart, and the chart in the language of Vega-Lite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devlint.record import Event, Process, Record, Slice
from devlint.report.audit.processes import title, trainers
from devlint.report.audit.table import Cost, direction

_MOST_STEPS = 4_000
"""So many steps of all processes together are drawn."""
_MOST_PROCESSES = 8
"""So many processes are drawn: the ones with the lowest ranks."""
_PHASES = ("train", "eval")


def history(record: Record) -> dict[str, Any]:
    """The steps of each process that trained.

    ``processes`` has a title and steps for each: phase, number, seconds, seconds of waiting for the loader, and what
    happened: calls, bytes and blocked seconds by direction.  ``left_out`` counts the processes that are not there,
    ``every`` says that no more than every so-maniest step of the record is, ``recorded`` whether the record has steps.
    """
    known = [process for process in trainers(record) if _steps(process)]
    shown = known[:_MOST_PROCESSES]
    most = max((len(_steps(process)) for process in shown), default=0)
    every = max(1, -(-most * len(shown) // _MOST_STEPS))
    return {
        "processes": [
            [title(process), [_drawn(process, step) for step in _steps(process)[::every]]] for process in shown
        ],
        "left_out": len(known) - len(shown),
        "every": every,
        "recorded": any(process.timeline for process in record.processes),
    }


def _steps(process: Process) -> Sequence[Slice]:
    return [each for each in process.timeline if each.number is not None and each.phase in _PHASES]


def _drawn(process: Process, step: Slice) -> list[Any]:
    return [step.phase, step.number, step.seconds, step.waited, flows(step, process.events)]


def flows(step: Slice, events: Sequence[Event]) -> dict[str, Cost]:
    """What happened in a slice, by direction."""
    sums: dict[str, Cost] = {}
    for part in step.parts:
        if 0 <= part.event < len(events):  # a record may come from anywhere
            name = direction(events[part.event])
            sums[name] = sums.get(name, Cost(0, 0)).plus(Cost(part.calls, part.bytes, part.seconds))
    return sums


def timeline_chart() -> dict[str, Any]:
    """Stacked bars, one stack per step; each datum has ``from``, ``to``, ``what``, ``order``, ``value``."""
    return {
        "width": "container",
        "height": 170,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"name": "steps", "values": []},
        "params": [
            {
                "name": "zoom",
                "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"},
                "bind": "scales",
            }
        ],
        "mark": {"type": "bar", "clip": True, "binSpacing": 0, "tooltip": {"content": "data"}},
        "encoding": {
            "x": {
                "field": "from",
                "bin": {"binned": True},
                "type": "quantitative",
                "title": "step",
                "scale": {"zero": False, "nice": False},
                # of few steps Vega has ticks between them, too
                "axis": {
                    "tickMinStep": 1,
                    "labelExpr": "datum.value % 1 ? '' : format(datum.value, ',d')",
                    "grid": False,
                },
            },
            "x2": {"field": "to"},
            "y": {
                "field": "value",
                "type": "quantitative",
                "stack": "zero",
                "title": None,
                "axis": {"labelExpr": "amount(datum.value)", "tickCount": 4, "minExtent": 64},
            },
            "color": {"field": "what", "type": "nominal", "title": None, "legend": {"orient": "top"}},
            "order": {"field": "order", "type": "quantitative"},
        },
    }
