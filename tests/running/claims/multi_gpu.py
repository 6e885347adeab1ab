"""What the rules of the family `multi_gpu` claim."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.finding import Finding
from tests.running.claims import Claim, Unobservable, itself
from tests.running.observed import Run
from tests.running.words import imagined_store

_MET: list[int] = []
"""The current device of the process at each barrier of a run."""


def _parallel(finding: Finding, run: Run) -> str | None:
    """A `DataParallel` was made there, or the function scattered its input from there."""
    made = any(wrapper.name == "DataParallel" for wrapper in run.wrappers(finding))
    scattered = any(event.kind == "copy" and event.target == "cuda:1" for event in run.events(finding))
    return None if made or scattered else "no DataParallel was made"


def _all_parallel(run: Run) -> Iterable[str]:
    for wrapper in run.process.wrappers if run.process else ():
        if wrapper.name == "DataParallel":
            yield f"a DataParallel was made: {wrapper.frame}"


@contextmanager
def _imagined_group(run: Run) -> Iterator[None]:
    """Let any process group be one of two processes, of which this is the second unless the environment says more."""
    patches = Patches()
    join: Any = torch.distributed.init_process_group
    os.environ.update(RANK="1", LOCAL_RANK="1", WORLD_SIZE="2")

    def imagined(*args: Any, **options: Any) -> None:
        join("fake", store=imagined_store(), rank=run.rank, world_size=2)

    meet: Any = torch.distributed.barrier
    _MET.clear()

    def met(*args: Any, **options: Any) -> Any:
        _MET.append(torch.cuda.current_device())
        return meet(*args, **options)

    for owner in (torch.distributed, torch.distributed.distributed_c10d):
        patches.set(owner, "init_process_group", imagined)
        patches.set(owner, "barrier", met)
    try:
        yield
    finally:
        patches.undo()


def _raises_value_error(finding: Finding, run: Run, text: str) -> str | None:
    raised = run.failure is not None and run.failure.is_at(finding)
    return None if raised and run.failure and text in run.failure.text else f"{run.failure and run.failure.text}"


def _set_up(finding: Finding, run: Run) -> str | None:
    """What each message says."""
    message = finding.message
    if "device ids" in message:
        return _raises_value_error(finding, run, "device_ids can only be None or contain a single element")
    if "the module is on the CPU" in message:
        return _raises_value_error(finding, run, "only work with single-device/multiple-device GPU modules or CPU")
    if "process group" in message and "GPU 0" not in message:
        return _raises_value_error(finding, run, "Default process group has not been initialized")
    if "moved after it was wrapped" in message:
        return None if run.value == 0 else f"{run.value} buckets of gradients were sent round"
    if "which has no" in message:
        return _raises_value_error(finding, run, "object has no attribute")
    if "an attribute is set" in message:
        return _unseen(finding, run)
    if "before each has chosen its device" in message:
        return None if run.rank and 0 in _MET else f"they met on {_MET}"
    if "every process takes the same GPU" in message:
        return _same(finding, run)
    if "of which a second machine has no GPU" in message:
        ids = [device for wrapper in run.wrappers(finding) for device in wrapper.device_ids]
        return None if ids == [run.rank] else f"the device ids are {ids}"
    return None if run.rank and torch.cuda.current_device() == 0 else "the current device is that of the rank"


def _unseen(finding: Finding, run: Run) -> str | None:
    """The wrapper has an attribute of its own that its module lacks."""
    for wrapper in run.seen(run.node(finding)):
        own = [name for name in vars(wrapper) if name in ("classes", "names", "hyp")]
        if own and not any(hasattr(wrapper.module, name) for name in own):
            return None
    return "the module has it, too"


def _same(finding: Finding, run: Run) -> str | None:
    """The second process, too, took the first GPU: for the module, or for its inputs."""
    for wrapper in run.wrappers(finding):
        if run.rank == 1 and (wrapper.device_ids == (0,) or wrapper.module_device == "cuda:0"):
            return None
    return f"in the process of rank {run.rank}: {run.process and run.process.wrappers}"


def _whole(loader: Any) -> bool:
    """Whether one of two processes draws all samples."""
    return len(loader.sampler) == len(loader.dataset)


def _undivided(finding: Finding, run: Run) -> str | None:
    """A process draws all samples; or it draws them in the same order in each epoch."""
    values = run.seen(run.node(finding))
    if "set_epoch" in finding.message:
        return None if values and all(sampler.epoch == 0 and sampler.shuffle for sampler in values) else "told"
    if "no loader gets" in finding.message:
        drawn = [loader for key, held in run.values.items() for loader in held if hasattr(loader, "batch_size")]
        return None if drawn and all(map(_whole, drawn)) else f"{drawn}"
    return None if values and all(map(_whole, values)) else f"{values}"


def _loaders(tree: ast.Module) -> Iterator[ast.expr]:
    """Where loaders are made."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "DataLoader":
            yield node


def _all_undivided(run: Run) -> Iterable[str]:
    for key, values in run.values.items():
        for loader in values:
            sampler = getattr(loader, "sampler", None)
            if sampler is not None and hasattr(sampler, "__len__") and loader.batch_size and _whole(loader):
                yield f"all samples are drawn in row {key[0]}"
            if getattr(sampler, "shuffle", False) and getattr(sampler, "epoch", 1) == 0:
                yield f"the epoch is not told in row {key[0]}"


CLAIMS: dict[str, Claim | Unobservable] = {
    "DVL501": Claim(_parallel, _all_parallel),
    "DVL502": Claim(_set_up, watches=itself, raises=True, during=_imagined_group),
    "DVL503": Claim(_undivided, _all_undivided, watches=itself, surveys=_loaders),
}
