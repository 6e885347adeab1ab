"""From a trace of torch.profiler to the record of a run: what was copied, who waited, in which step, by which line."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from statistics import median

from devlint._about import __version__
from devlint.auditor.history import Pending, When
from devlint.auditor.ledger import Ledger
from devlint.auditor.profile.calls import MICROSECOND, count
from devlint.auditor.profile.happened import Happened, Happenings
from devlint.auditor.profile.seen import Seen, look
from devlint.auditor.profile.stream import Shown
from devlint.record import FIRST_CALLS, WARM_UP, Device, Ending, Environment, Phase, Process, Record, Steps

_UNKNOWN = (
    "read from a trace of torch.profiler, which says neither whether a copy repeats what was copied before nor where a "
    "module keeps its tensors: the rules about these are silent"
)
OF_THE_DEF = (
    "the trace tells functions and not lines: a function stands at the line of its `def`, or, if it ran already when "
    "the recording began, at the line that it was at then; at the line of the call where the script lies here and has "
    "only one of that name in the function"
)
_ONE_SIDE = (
    "the trace lacks the device's side, so which way its copies went is not known: only the waits in them are counted"
)
_WITHOUT_STACKS = (
    "the trace has no Python stacks, so operators stand in place of lines: profile with `with_stack=True` to see lines"
)
_WITHOUT_STEPS = (
    "the trace has no steps, so all of it is told in sum: call `profiler.step()` after each of them to have them apart"
)


def read(path: str, shown: Shown = lambda done, total: None) -> Record:
    """The record that a trace makes; raises :class:`~devlint.auditor.profile.stream.TraceError` where it is none."""
    return _Recording(look(path, shown), path).record()


class _Recording:
    """What was seen, as a record."""

    def __init__(self, seen: Seen, path: str) -> None:
        self._seen = seen
        self._path = path
        self._directory = os.getcwd()
        self._happened = Happenings(seen, self._directory)

    def record(self) -> Record:
        ledger, counts, seconds = self._booked()
        targets = self._happened.log.devices()
        distributed = self._seen.facts.get("distributedInfo")
        distributed = distributed if isinstance(distributed, dict) else {}
        world = count(distributed.get("world_size"))
        notes = {
            OF_THE_DEF: self._seen.entered and len(self._happened.log) > 0,
            _ONE_SIDE: self._happened.undirected,
            _WITHOUT_STACKS: not self._seen.stacks,
            _WITHOUT_STEPS: not self._seen.steps,
        }
        process = Process(
            pid=count(self._seen.processes.most_common(1)[0][0]) if self._seen.processes else 0,
            role="rank" if world > 1 else "main",
            rank=count(distributed.get("rank")) if world > 1 else None,
            world_size=world if world > 1 else None,
            device=targets.most_common(1)[0][0] if targets else "",
            backend="CUDA",
            ending=Ending(kind="finished"),
            seconds=(self._seen.last - self._seen.first) * MICROSECOND,
            environment=Environment(devices=tuple(self._devices())),
            steps=Steps(train=counts["train"], eval=counts["eval"], step_seconds=seconds),
            events=ledger.events(),
            began=self._seen.first * MICROSECOND,
            timeline=ledger.timeline(),
            notes=(_UNKNOWN, *(note for note, holds in notes.items() if holds)),
        )
        return Record(
            devlint=__version__,
            source="profiler",
            complete=True,
            # the traces of all ranks are of one run
            command=() if world > 1 else (os.path.basename(self._path),),
            directory=self._directory,
            processes=(process,),
        )

    def _devices(self) -> Iterator[Device]:
        properties = self._seen.facts.get("deviceProperties")
        for each in properties if isinstance(properties, list) else ():
            if isinstance(each, dict):
                major, minor = count(each.get("computeMajor")), count(each.get("computeMinor"))
                yield Device(
                    name=f"cuda:{count(each.get('id'))}",
                    model=str(each.get("name") or ""),
                    capability=(major, minor) if major else None,
                    memory=count(each.get("totalGlobalMem")),
                )

    # steps

    def _booked(self) -> tuple[Ledger, Counter[str], float | None]:
        """All of it in the books, how many steps there were, and how long the median one took."""
        ledger = Ledger(self._happened.places)  # type: ignore[arg-type]  # places are all that it asks for
        ledger.origin = self._seen.first * MICROSECOND
        counts: Counter[str] = Counter()
        rest = self._happened.log.in_order()
        one = next(rest, None)
        took: dict[Phase, list[float]] = {"train": [], "eval": []}
        for step in self._seen.steps:
            idle: Phase = "between" if counts else "setup"
            one = self._until(ledger, rest, one, step.start)
            if before := ledger.take():
                ledger.settle(before, idle, False)
            one = self._until(ledger, rest, one, step.end)
            phase: Phase = "train" if step.trains else "eval"
            counts[phase] += 1
            took[phase].append((step.end - step.start) * MICROSECOND)
            when = When(step.start * MICROSECOND, took[phase][-1])
            ledger.settle(ledger.take(), phase, True, when)
        self._until(ledger, rest, one, float("inf"))
        after: Pending = ledger.take()
        if after:
            ledger.settle(after, "teardown" if self._seen.steps else "setup", False)
        steps = took["train"] or took["eval"]
        return ledger, counts, median(steps[WARM_UP:] or steps) if steps else None

    def _until(self, ledger: Ledger, rest: Iterator[Happened], one: Happened | None, end: float) -> Happened | None:
        """Take in what happened before ``end``; the result is the first that came later."""
        while one is not None and one.start < end:
            tally = ledger.tally(one.what)
            tally.calls += 1
            tally.bytes += one.size
            tally.seconds += one.seconds
            tally.copying += one.copying
            if len(tally.first) < FIRST_CALLS:
                tally.first.append((one.start * MICROSECOND, one.seconds, one.size))
            one = next(rest, None)
        return one
