"""What the rules of the family `loading` claim: loaders whose batches cost copies, or that raise when they are used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import torch

from devlint.finding import Finding, Severity
from devlint.record import Loader
from tests.running.claims import Claim, Unobservable, itself
from tests.running.claims.meeting import GENERATORS
from tests.running.claims.transfers import counted, enters
from tests.running.observed import Run


def _pageable(number: int, loader: Loader, run: Run) -> int:
    """How many tensors of a loader's batches were copied to an accelerator from pageable memory."""
    if loader.pin_memory or loader.device != "cpu" or run.process is None:
        return 0
    return counted(run.process.events, lambda event: enters(event) and event.loader == number and not event.pinned)


def _unpinned(finding: Finding, run: Run) -> str | None:
    """Every batch of the loader was copied from pageable memory."""
    for number, loader in run.loaders(finding):
        if loader.batches and _pageable(number, loader, run) >= loader.batches:
            return None
    return f"no such copies of batches: {run.process and run.process.loaders}"


def _all_unpinned(run: Run) -> Iterable[str]:
    """The loaders of the fixture whose batches were copied so."""
    for number, loader in run.own_loaders():
        if loader.frame and _pageable(number, loader, run) >= max(loader.batches, 2):
            yield f"batches of the loader in row {loader.frame.line} are copied from pageable memory"


def _failing(*patterns: str) -> Callable[[Finding, Run], str | None]:
    """The loader raises when it is iterated, or the call itself does."""

    def shown(finding: Finding, run: Run) -> str | None:
        if run.failure is None:
            return "nothing was raised"
        if not any(re.search(pattern, run.failure.text) for pattern in patterns):
            return f"raised otherwise: {run.failure.text}"
        iterated = any(not loader.batches for _, loader in run.loaders(finding))
        made = not run.own_loaders() and any(run.seen(run.node(finding)))  # a sampler, which the run iterates
        return None if iterated or made or run.failure.is_at(finding) else f"not by that: {run.failure.text}"

    return shown


def _by_workers(finding: Finding, run: Run) -> str | None:
    """A forked worker cannot use the accelerator; without forked workers, each sample is put there by itself."""
    if finding.severity is Severity.ERROR:
        text = run.failure.text if run.failure else "nothing was raised"
        rows = range(finding.span.row, finding.span.end_row + 1)
        there = any(f'{run.fixture.path}", line {row},' in text for row in rows)
        return None if there and "Cannot re-initialize CUDA in forked subprocess" in text else text
    values = run.seen(run.node(finding))
    if run.failure and "Cannot re-initialize CUDA in forked subprocess" in run.failure.text:
        return None
    there = values and all(isinstance(value, torch.Tensor) and value.is_cuda for value in values)
    return None if there else f"not on the accelerator: {values}"


def _synchronous(finding: Finding, run: Run) -> str | None:
    """Batches for training were made in the process that trains."""
    found = [loader for _, loader in run.loaders(finding) if loader.training and not loader.workers]
    return None if found else f"no training loader without workers: {run.process and run.process.loaders}"


def _all_synchronous(run: Run) -> Iterable[str]:
    """Loaders without workers, of batches that were made one by one and copied in training."""
    for number, loader in run.own_loaders():
        copies = run.process is not None and any(enters(e) and e.loader == number for e in run.process.events)
        if loader.training and not loader.workers and copies and loader.frame:
            yield f"the loader in row {loader.frame.line} makes its batches while the accelerator waits"


CLAIMS: dict[str, Claim | Unobservable] = {
    "DVL301": Claim(_unpinned, _all_unpinned),
    "DVL302": Claim(
        _failing("RuntimeError: cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"), raises=True
    ),
    "DVL303": Claim(_by_workers, watches=itself, raises=True),
    "DVL304": Claim(
        _failing(GENERATORS),
        watches=itself,
        raises=True,
    ),
    "DVL305": Claim(_synchronous, _all_synchronous),
}
