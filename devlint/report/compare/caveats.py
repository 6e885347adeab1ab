"""Why two runs cannot be compared, or not in all respects."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from devlint.record import WARM_UP, Process, Record
from devlint.report.audit.processes import trainers
from devlint.report.audit.table import has_phases
from devlint.report.wording import listed

_ENOUGH = 5
"""Fewer training steps after the warm-up make no median that is worth much."""


def caveats(before: Record, after: Record) -> list[str]:
    """One line of text each."""
    return [*_runs(before, after), *_machines(before, after), *_loops(before, after), *_endings(before, after)]


def _runs(before: Record, after: Record) -> Iterator[str]:
    names = [" ".join(record.command[: 2 if record.command[:1] == ("-m",) else 1]) for record in (before, after)]
    traced = [bool(record.source) for record in (before, after)]
    # a trace is named after its file
    if all(names) and names[0] != names[1] and not any(traced):
        yield f"these are runs of two scripts, {names[0]} and {names[1]}"
    if traced[0] != traced[1]:
        which = "before" if traced[0] else "after"
        yield f"the one {which} is a trace of the profiler, which shows fewer problems: findings are not compared"
    if before.simulated != after.simulated:
        first, second = ("simulated", "real") if before.simulated else ("real", "simulated")
        yield f"the device was {first} before and is {second} after: only counts and bytes are compared, no times"


def _machines(before: Record, after: Record) -> Iterator[str]:
    if before.simulated == after.simulated:
        yield from _differ("the card", _cards, before, after, "times say as much of the cards as of the code")
        yield from _differ("torch", lambda process: process.environment.torch, before, after, "it may copy differently")
    if len(trainers(before)) != len(trainers(after)):
        yield (
            f"{len(trainers(before))} processes trained before, {len(trainers(after))} after: "
            "each of them has another part of the work"
        )


def _loops(before: Record, after: Record) -> Iterator[str]:
    yield from _differ("a batch", _batch, before, after, "bytes and times per step are those of another amount of data")
    steps = [max((process.steps.train for process in trainers(record)), default=0) for record in (before, after)]
    if not all(steps):
        which = listed([name for name, count in zip(("before", "after"), steps, strict=True) if not count])
        if whole := [name for name, each in (("before", before), ("after", after)) if not has_phases(each)]:
            if len(whole) == 1:
                yield f"the trace {whole[0]} has no steps: what the other run did outside of its steps stands beside it"
        elif any(steps):
            yield f"the run {which} has no training step: what both did instead is compared"
        return
    few = [count for count in steps if count < WARM_UP + _ENOUGH]
    if steps[0] != steps[1]:
        yield f"{steps[0]:,} training steps before, {steps[1]:,} after: only what is per step can be compared"
    if few:
        yield f"the median of {min(few):,} training steps says little: {WARM_UP + _ENOUGH} and more would say something"


def _endings(before: Record, after: Record) -> Iterator[str]:
    for name, record in (("before", before), ("after", after)):
        bad = [each for each in trainers(record) if each.ending.kind in ("exception", "unknown")]
        if bad:
            yield f"the run {name} did not come to its end, so what it would have done after that is missing"


def _differ(what: str, of: Callable[[Process], str], before: Record, after: Record, therefore: str) -> Iterator[str]:
    """A line if the two runs differ in something that is known of both."""
    texts = [listed(list(dict.fromkeys(filter(None, map(of, trainers(record)))))) for record in (before, after)]
    if all(texts) and texts[0] != texts[1]:
        yield f"{what} was {texts[0]} before and is {texts[1]} after: {therefore}"


def _cards(process: Process) -> str:
    return next((each.model for each in process.environment.devices if each.name == process.device), "")


def _batch(process: Process) -> str:
    return listed(list(dict.fromkeys(each.batch for each in process.loaders if each.training and each.batch)))
