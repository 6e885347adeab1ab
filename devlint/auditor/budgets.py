"""Budgets: whether a run kept to what it may copy and wait, and the lines of code that broke them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from devlint.config.budgets import FORBIDDEN, Budgets
from devlint.config.messages import leads_out
from devlint.finding import Severity
from devlint.report.audit.table import STEPPING, Cost, cost_of, direction
from devlint.report.wording import number, plural, size

if TYPE_CHECKING:
    from devlint.record import Event, Frame, Mismatch, Phase, Process, Record

_MOST_LINES = 8
"""So many lines of code explain a budget that was broken."""


class Breach(NamedTuple):
    """A budget that was broken: what happened instead, and a line for each place that had a part in it."""

    name: str
    text: str
    places: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.text}", *(f"  {place}" for place in self.places)])


_COUNTED: dict[str, tuple[str, Callable[[Event], bool]]] = {
    "h2d": ("copies to the device", lambda event: direction(event) == "H2D"),
    "h2d_bytes": ("copied to the device", lambda event: direction(event) == "H2D"),
    "d2h": ("copies from the device", lambda event: direction(event) == "D2H"),
    "d2h_bytes": ("copied from the device", lambda event: direction(event) == "D2H"),
    "syncs": ("waits for the device", lambda event: event.waits),
}
"""What is counted, by the names of budgets for a whole run: in words, and which events."""
_PER_STEP = "_per_step"


def broken(record: Record, limits: Budgets, general: Collection[str] = ()) -> list[Breach]:
    """The budgets that a run did not keep; one whose keeping could not be seen counts as broken.

    Those in ``general`` were not meant for this run alone: per step, they say nothing of a run without one.
    """
    processes = [process for process in record.processes if process.role != "loader worker"]
    found: list[Breach] = []
    stepless = all(_stepping(process) is None for process in processes)
    for name, limit in limits.items():
        if stepless and name in general and name.endswith(_PER_STEP):
            continue
        found += _forbidden(record, processes, name) if name in FORBIDDEN else _over(record, processes, name, limit)
    if limits and (failure := next((process.failure for process in processes if process.failure), "")):
        found.append(Breach("audit", f"devlint switched itself off, so that nobody knows: {failure}"))
    return found


def _over(record: Record, processes: list[Process], name: str, limit: float) -> Iterator[Breach]:
    what, counts = _COUNTED[name.removesuffix(_PER_STEP)]
    in_bytes, per_step = "_bytes" in name, name.endswith(_PER_STEP)
    phases = [(process, _stepping(process) if per_step else None) for process in processes]
    sums = [_Sum(process, phase, counts, in_bytes) for process, phase in phases if phase or not per_step]
    if not sums:
        yield Breach(name, "there was no training or evaluation step; a budget without `per_step` counts all there was")
        return
    worst = max(sums, key=lambda each: each.amount)
    if worst.amount <= limit:
        return
    show = size if in_bytes else number
    rank = f" of rank {worst.process.rank}" if worst.process.rank is not None else ""
    where = f" in {STEPPING[worst.phase]}{rank}" if worst.phase else rank.replace(" of", " in")
    if worst.amount == 1:
        what = what.replace("copies", "copy").replace("waits", "wait")
    text = f"{show(worst.amount)} {what}{where}"
    allowed = show(limit) if limit else "none"
    yield Breach(name, f"{text}, {allowed} allowed", tuple(_lines(record, worst)))


def _stepping(process: Process) -> Phase | None:
    """The phase whose steps are counted."""
    return next((phase for phase in STEPPING if process.steps.of(phase)), None)


class _Sum:
    """What a process did of one kind: in all, and in each place of the code."""

    def __init__(self, process: Process, phase: Phase | None, counts: Callable[[Event], bool], in_bytes: bool) -> None:
        self.process = process
        self.phase = phase
        self.places: dict[tuple[Frame | None, Frame | None], Cost] = {}
        steps = process.steps.of(phase) if phase else 0
        for event in process.events:
            if counts(event) and phase in (None, event.phase):
                here = cost_of(event, steps) if phase else Cost(event.calls, event.bytes)
                place = (event.frame, event.via)
                self.places[place] = self.places.get(place, Cost()).plus(here)
        self.amount = sum(each.bytes if in_bytes else each.calls for each in self.places.values())


def _lines(record: Record, found: _Sum) -> Iterator[str]:
    ranked = sorted(found.places.items(), key=lambda item: -item[1].weight())
    for (frame, via), cost in ranked[:_MOST_LINES]:
        amount = f"{number(cost.calls)} x" + (f" {size(cost.bytes / cost.calls)}" if cost.bytes else "")
        inside = f" via {_place(record, via)}" if via is not None and frame is not None else ""
        shown = frame or via
        code = record.sources.get(shown.file, {}).get(shown.line, "").strip() if shown is not None else ""
        yield f"{_place(record, shown)}{inside}: {amount}  {code}".rstrip()
    if len(ranked) > _MOST_LINES:
        yield f"and {plural(len(ranked) - _MOST_LINES, 'more place')}"


def _forbidden(record: Record, processes: list[Process], name: str) -> Iterator[Breach]:
    if name == "no_device_mismatch":
        places = [_met(record, mismatch) for process in processes for mismatch in process.mismatches]
        text = "tensors on different devices met"
    else:
        places = [_found(record, finding) for finding in record.findings or () if finding["severity"] in _GRAVE]
        text = f"{len(places)} found by the rules"
    if places:
        yield Breach(name, text, tuple(places))


_GRAVE = tuple(str(severity) for severity in Severity if severity >= Severity.WARNING)


def _met(record: Record, mismatch: Mismatch) -> str:
    named = [party for party in mismatch.parties if party.text]
    who = " and ".join(
        f"`{party.text}` on {party.device}" + (f" ({party.why})" if party.why else "") for party in named
    )
    return f"{_place(record, mismatch.frame or mismatch.via)}: {who or mismatch.error}"


def _found(record: Record, finding: dict[str, object]) -> str:
    location = finding["location"]
    row = location["row"] if isinstance(location, dict) else 1
    return f"{_short(record, str(finding['filename']))}:{row}: {finding['code']} {finding['message']}"


def _place(record: Record, frame: Frame | None) -> str:
    return f"{_short(record, frame.file)}:{frame.line}" if frame is not None else "in no line of Python"


def _short(record: Record, file: str) -> str:
    try:
        relative = os.path.relpath(file, record.directory or None)
    except ValueError:  # another drive of Windows
        return file
    return file if leads_out(relative) or file.startswith("<") else relative
