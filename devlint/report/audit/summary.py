"""What a run comes to, in one sentence: what a step copies, how often it waits, and at which line to look first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from devlint.record import Process, Record
from devlint.report.audit.code import Code
from devlint.report.audit.processes import trainers
from devlint.report.audit.table import STEPPING, Group, Row, Table, has_phases, summed, table
from devlint.report.wording import between, duration, listed, number, share, size

_WHERE = {"H2D": "to the device", "D2H": "from the device", "D2D": "between devices"}
_LONGEST = 60
"""A longer line of code is left to the table."""


def in_short(record: Record, code: Code) -> str:
    """The sentence; empty where no loop was seen."""
    processes = trainers(record)
    phase = next((phase for phase in STEPPING if any(each.steps.of(phase) for each in processes)), None)
    if phase is None and has_phases(record):
        return ""
    found = table(processes, phase or "setup")
    often = found.recurring()
    first, *more = list(_figures(often)) or [""]
    told = listed([first, *(text.replace("the device", "it") for text in more)])
    each_step = f"each {STEPPING[phase].partition(' ')[2]}" if phase else "in all"
    if not first and phase is None:
        return "" if found.groups else "no copies between host and device, and no waits"
    if not first:
        return f"{each_step} keeps to the device: no copies, and no waits for it"
    return f"{each_step}: {told}{_cost(processes, found)}{_dearest(found if found.timed else often, code)}"


def _figures(found: Table) -> Iterator[str]:
    """Yield what a step copies by direction, and how often it waits for the device."""
    for row in found.totals:
        if where := _WHERE.get(row.kind.direction):
            calls = between([cost.calls for cost in row.costs], number)
            amount = between([cost.bytes for cost in row.costs], size)
            yield f"{calls} {'copy' if calls == '1' else 'copies'} {where} ({amount})"
    if waiting := [row for group in found.groups for row in group.rows if _waits(row)]:
        waits = between([cost.calls for cost in summed(waiting)], number)
        yield f"{waits} {'wait' if waits == '1' else 'waits'} for the device"


def _waits(row: Row) -> bool:
    """Whether the host waits for what the device has yet to compute: a blocking copy to the device costs, but does not.

    See ``Event.waits``.
    """
    return row.waits and row.kind.direction in ("D2H", "sync")


def _cost(processes: Sequence[Process], found: Table) -> str:
    """Where times are real, for how long the host stands still: of the process in which it does the longest."""
    if not found.timed:
        return ""
    blocked, process = max(zip(found.blocked(), processes, strict=True), key=lambda pair: pair[0])
    # of a trace that has evaluation steps only, that is their time
    step = process.steps.step_seconds if found.phase == "train" or not process.steps.train else None
    step = process.seconds if found.phase == "setup" else step
    part = f" of {duration(step)} ({share(blocked, step)})" if step and blocked <= step else ""
    return f"; the host is blocked for {duration(blocked)}{part}"


def _dearest(found: Table, code: Code) -> str:
    """The line to look at first: by the time it takes, and where none was measured, one that waits before others."""
    named = [group for group in found.groups if group.frame]
    if not named:
        return ""
    dearest = max(named, key=_seconds if found.timed else _untimed)
    assert dearest.frame is not None
    text = code.line(dearest.frame)
    shown = f", `{text}`" if 0 < len(text) <= _LONGEST else ""
    return f"; {'most of it' if found.timed else 'look first'} at {code.place(dearest.frame)}{shown}"


def _seconds(group: Group) -> float:
    return max(cost.seconds or 0.0 for cost in summed(group.rows))


def _untimed(group: Group) -> tuple[float, float]:
    waits = [row for row in group.rows if _waits(row)]
    return max((cost.calls for cost in summed(waits)), default=0.0) if waits else 0.0, group.weight()
