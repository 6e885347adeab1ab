"""What the rules of the family `syncs` claim: waiting in every step, times of unfinished work, graphs that are kept."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.finding import Finding
from devlint.record import Event
from tests.running.claims import Claim, Unobservable, itself
from tests.running.claims.transfers import counted, leaves, rows
from tests.running.late import watched_clocks
from tests.running.observed import Run

OFTEN = 3
"""What happens so many times in a run, whose loops are short, happens in every step."""


def _waits(event: Event) -> bool:
    return (leaves(event) or event.kind == "sync") and event.blocking is not False


def _in_every_step(finding: Finding, run: Run) -> str | None:
    """The host waited for the device in each step."""
    found = counted(run.events(finding), _waits)
    return None if found >= OFTEN else f"the host waited {found} times"


def _flushes(run: Run) -> list[int]:
    """The rows that gave memory back, one for each time."""
    calls = [event for event in run.own_events() if event.kind == "call" and event.name.endswith("empty_cache")]
    return [*run.collections, *(event.frame.line for event in calls if event.frame for _ in range(event.calls))]


def _flushed(finding: Finding, run: Run) -> str | None:
    """Memory was given back in each step."""
    found = _flushes(run).count(finding.span.row)
    return None if found >= OFTEN else f"{found} times"


@contextmanager
def _collections(run: Run) -> Iterator[None]:
    """Note in ``run.collections`` which rows collect garbage."""
    collect: Any = gc.collect
    patches = Patches()

    def collected(*generation: int) -> int:
        run.collections.append(run.row())
        return int(collect(*generation))

    patches.set(gc, "collect", collected)
    try:
        yield
    finally:
        patches.undo()


def _unfinished(finding: Finding, run: Run) -> str | None:
    """The clock was read while the device had work."""
    reads = [queued for row, queued in run.clocks if finding.span.row <= row <= finding.span.end_row]
    return None if any(reads) else f"clocks read there, with so many operations queued: {reads}"


def _all_unfinished(run: Run) -> Iterable[str]:
    """The clocks, but for the first one of the run, which begins."""
    return [
        f"the clock in row {row} is read with {queued} operations queued" for row, queued in run.clocks[1:] if queued
    ]


class _Token:
    """What a graph holds, to tell whether it is still there."""


@contextmanager
def _graphs(run: Run) -> Iterator[None]:
    """Note in ``run.graphs``, at each backward pass, how many graphs of earlier ones are still there."""
    patches = Patches()
    backward: Any = torch.Tensor.backward
    alive: list[weakref.ref[_Token]] = []

    def tagging(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        run.graphs.append(sum(token() is not None for token in alive))
        if self.grad_fn is not None:
            token = _Token()
            alive.append(weakref.ref(token))
            for node in (self.grad_fn, *(node for node, _ in self.grad_fn.next_functions if node is not None)):
                if type(node).__name__ != "AccumulateGrad":
                    node.metadata["devlint"] = token
        return backward(self, *args, **kwargs)

    patches.set(torch.Tensor, "backward", tagging)
    try:
        yield
    finally:
        patches.undo()


def _kept(finding: Finding, run: Run) -> str | None:
    """The graphs of all earlier steps were there in the last one."""
    last = run.graphs[-1] if run.graphs else 0
    if last < 2 or last < len(run.graphs) - 1:
        return f"graphs of earlier steps: {run.graphs}"
    kept = all(isinstance(value, torch.Tensor) and value.grad_fn is not None for value in run.seen(run.node(finding)))
    return None if kept else "what is kept has no graph"


def _all_kept(run: Run) -> Iterable[str]:
    """More graphs than the one that a variable still names from the step before."""
    return [f"graphs of earlier steps: {run.graphs}"] if run.graphs and max(run.graphs) > 1 else []


CLAIMS: dict[str, Claim | Unobservable] = {
    "DVL401": Claim(_in_every_step, lambda run: _often(run)),
    "DVL402": Claim(_unfinished, _all_unfinished, during=watched_clocks),
    "DVL403": Claim(_kept, _all_kept, watches=itself, during=_graphs),
    "DVL404": Claim(
        _flushed,
        lambda run: [f"row {row}" for row in set(_flushes(run)) if _flushes(run).count(row) >= OFTEN],
        during=_collections,
    ),
}


def _often(run: Run) -> list[str]:
    return rows(run, lambda event: _waits(event) and event.calls >= OFTEN)
