"""The head of the page: how the run ended, and its most important figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from devlint.record import Process, Record
from devlint.report.audit.findings import counted, fatal
from devlint.report.audit.processes import leaders, trainers, waiting
from devlint.report.audit.table import STEPPING, has_phases, table
from devlint.report.wording import between, duration, number, share, size

ENDINGS = {
    "finished": "finished",
    "exception": "died",
    "exit": "exited",
    "interrupted": "interrupted",
    "terminated": "terminated",
    "steps": "stopped by --steps",
    "unknown": "killed",
}
"""How a process ended, in a word."""
_BEFORE = "before the first step"
_BAD = ("exception", "terminated", "unknown")
_DIRECTIONS = {"H2D": "To the device", "D2H": "From the device", "D2D": "Between devices"}


class Card(NamedTuple):
    """One figure: what it is, in words for the eye, and what stands below it."""

    title: str
    value: str
    note: str = ""
    key: str = ""
    """What it is, for programs."""


class Badge(NamedTuple):
    """A word about the run as a whole, and whether it is a bad one."""

    text: str
    kind: str = ""


def status(record: Record) -> list[Badge]:
    """How the run ended, and what has to be known before anything else is read."""
    if record.source:
        return [Badge("a trace of torch.profiler", "note")]
    found = [Badge("simulated device", "note")] if record.simulated else []
    main = leaders(record)
    endings = Counter(process.ending.kind for process in main)
    for kind, count in endings.items():
        text = ENDINGS[kind] if len(main) == 1 else f"{count:,} {ENDINGS[kind]}"
        found.append(Badge(text, "bad" if kind in _BAD else "good" if kind == "finished" else "note"))
    return found


def cards(record: Record) -> list[Card]:
    """The figures that say most."""
    processes = trainers(record)
    return [*_found(record), *(_figures(record, processes) if processes else ())]


def _figures(record: Record, processes: Sequence[Process]) -> Iterator[Card]:
    steps = [process.steps.train for process in processes]
    evaluated = max(process.steps.eval for process in processes)
    if evaluated and record.source and not any(steps):
        yield Card("Evaluation steps", number(evaluated), "", "steps")
    elif any(steps) or evaluated:
        also = f"{evaluated:,} of evaluation" if evaluated else ""
        yield Card("Training steps", between(steps, number), also, "steps")
    yield from _times(processes)
    stepping = next((name for name in STEPPING if any(each.steps.of(name) for each in processes)), None)
    phase = table(processes, stepping or "setup")
    per = f"per {STEPPING[stepping].split(' ', 1)[1]}" if stepping else _BEFORE if has_phases(record) else "in all"
    for row in phase.totals:
        if row.kind.direction in _DIRECTIONS:
            calls = between([cost.calls for cost in row.costs], number)
            copies = f"{calls} {'copy' if calls == '1' else 'copies'} {per}"
            amount = between([cost.bytes for cost in row.costs], size)
            yield Card(_DIRECTIONS[row.kind.direction], amount, copies, row.kind.direction)
    if any(waits := phase.waits()):
        yield Card("Host waits", between(waits, number), f"blocking copies and syncs {per}", "waits")
    if phase.timed:
        blocked = phase.blocked()
        part = _of_step(processes, blocked) if stepping in (None, "train") or not any(steps) else ""
        yield Card("Host blocked", between(blocked, duration), f"{per}{part}", "blocked")
    yield from _memory(processes)


def _found(record: Record) -> Iterator[Card]:
    if record.findings is None:
        return
    died_of = fatal(record)
    closing = counted(record, died_of)
    unnamed = died_of is not None and closing.startswith("Found") and not record.findings
    yield Card("Findings", f"{len(record.findings) + unnamed:,}", closing.partition("(")[2].partition(")")[0], "found")


def _times(processes: Sequence[Process]) -> Iterator[Card]:
    steps = [process.steps.step_seconds for process in processes if process.steps.step_seconds]
    if not steps:
        return
    yield Card("Step time", between(steps, duration), "the median", "step")
    if found := waiting(processes):
        part, waited, worst = found
        yield Card("Waiting for data", part, f"{waited} of a step{', at worst' if worst else ''}", "waited")


def _of_step(processes: Sequence[Process], blocked: Sequence[float]) -> str:
    shares = [
        (seconds, process.steps.step_seconds)
        for process, seconds in zip(processes, blocked, strict=True)
        if process.steps.step_seconds
    ]
    return f", {share(*max(shares, key=lambda pair: pair[0] / pair[1]))} of it" if shares else ""


def _memory(processes: Sequence[Process]) -> Iterator[Card]:
    used = [device for process in processes for device in process.environment.devices if device.peak]
    if not used:
        return
    fullest = max(used, key=lambda device: device.peak / device.memory if device.memory else 0.0)
    note = f"{share(fullest.peak, fullest.memory)} of {size(fullest.memory)}" if fullest.memory else ""
    yield Card("Peak memory", between([device.peak for device in used], size), note, "memory")
