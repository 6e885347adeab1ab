"""The steps of a run one by one, as data for the page's chart."""

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
    spent = {name: (cost.calls, cost.bytes, cost.seconds) for name, cost in flows(step, process.events).items()}
    return [step.phase, step.number, step.seconds, step.waited, spent]


def flows(step: Slice, events: Sequence[Event]) -> dict[str, Cost]:
    """What happened in a slice, by direction."""
    sums: dict[str, Cost] = {}
    for part in step.parts:
        if 0 <= part.event < len(events):  # a record may come from anywhere
            name = direction(events[part.event])
            sums[name] = sums.get(name, Cost(0, 0)).plus(Cost(part.calls, part.bytes, part.seconds))
    return sums
