"""DVL303: samples or batches that are put on an accelerator where they are made."""

from __future__ import annotations

import ast

from devlint.flow.syntax import names
from devlint.rules.base import Report, Reports, Rule, Severity, Step
from devlint.rules.code.control_flow import conditions
from devlint.rules.code.edits import quoted
from devlint.rules.transfers.pinned import chosen_away
from devlint.sites.loaders import SampleWork, Worker
from devlint.source.syntax import says_none
from devlint.source.tree import Source

_BATCHED = frozenset({"collate_fn", "__getitems__", "__iter__"})
"""What handles a whole batch at once, or decides by itself how much it handles."""
_COVERED = ("DVL601",)
"""What goes away with the move."""
_FRESH = frozenset({"spawn", "forkserver"})


class AcceleratorWorkInDataset(Rule):
    """Samples are put on an accelerator where they are made, which the loader's worker processes cannot do.

    ## What it does
    Reports `.to(device)`, `.cuda()` and `device=` in the `__getitem__` of a data set, in the `__iter__` of an
    `IterableDataset`, in a `collate_fn`, a `worker_init_fn` and a transform. It is an error where a loader of the file
    asks for workers (`num_workers` is a positive number) and they are not told to start afresh.

    ## Why it matters
    Workers are forked where nothing else is said (on Linux before Python 3.14). Once the main process has used CUDA, a
    forked one cannot: it raises "Cannot re-initialize CUDA in forked subprocess". Workers that start afresh can, but
    each holds a CUDA context of its own, and PyTorch's documentation advises against tensors of an accelerator from
    workers. Without workers every sample is copied on its own, while the accelerator waits.

    ## Example
    ```python
    from torch.utils.data import DataLoader, Dataset

    class Images(Dataset):
        def __getitem__(self, index):
            return torch.load(f"{index}.pt", map_location="cpu").to("cuda")

    loader = DataLoader(Images(), num_workers=4)
    ```

    ## Use instead
    ```python
    from torch.utils.data import DataLoader, Dataset

    class Images(Dataset):
        def __getitem__(self, index):
            return torch.load(f"{index}.pt", map_location="cpu")

    def batches(device):
        for batch in DataLoader(Images(), num_workers=4, pin_memory=True):
            yield batch.to(device, non_blocking=True)
    ```

    ## When it stays silent
    - The data set only picks from tensors that were put on the device as a whole.
    - The loader is in another file, and the device may be the CPU.
    - An `IterableDataset` whose loaders have no workers: it may make batches on the device.
    - It is a hint where the workers start by `spawn` or `forkserver`, where no loader is seen that may have workers,
      and, for those who select the rule, of a loader without workers. Where the loader may have workers, a
      `collate_fn` that moves only `if device is not None` is for them, too: whoever names a device has asked for that.

    ## Fix safety
    There is no fix: the copy belongs into the training loop.

    ## References
    - [Multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
    - [CUDA in multiprocessing](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing)
    """

    code = "DVL303"

    def judge(self, site: SampleWork) -> Reports:
        """One report for each placement, about the loader that suffers most."""
        if not chosen_away(site.place):
            return
        loader = max(site.loaders, key=_weight, default=None)
        unasked = site.role == "__iter__" and (loader is None or not loader.workers)
        if not unasked and (loader is not None or site.place.accelerates() is True):
            yield self._report(site, loader)

    def _report(self, site: SampleWork, loader: Worker | None) -> Report:
        what = f"{quoted(self.source.segment(site.node), 'this call')} in `{site.role}`"
        asked: tuple[Step, ...] = ()
        if loader is not None:
            count = f"{loader.workers or 'no'} worker{'' if loader.workers == 1 else 's'}"
            has = "may have workers" if loader.workers is None else f"has {count}"
            asked = (Step(loader.node, f"the loader {has}"),)
        help_ = "return tensors of the CPU, and move each batch in the training loop"
        if loader is not None and loader.workers and loader.context not in _FRESH:
            # on an accelerator it raises, unless the device is merely a parameter
            grave = loader.context == "fork" and (site.place.accelerates() or site.place.switched)
            message = f"{what} runs in worker processes, which cannot use CUDA when they are forked"
            return Report(
                message, "a worker does this", Severity.ERROR if grave else None, asked, help_, covers=_COVERED
            )
        if loader is not None and loader.workers:
            message = f"{what} gives every worker process a context on the accelerator"
            return Report(message, "each worker does this", Severity.INFO, asked, help_, covers=_COVERED)
        each = "batch" if site.role in _BATCHED else "sample"
        message = f"{what} puts every {each} on {site.place} by itself, which forked workers could not"
        # who makes them on the device where no worker does has chosen to
        opted = each == "batch" and loader is not None and _is_opted_into(self.source, site.node)
        meant = (loader is not None and loader.workers == 0) or opted
        return Report(
            message,
            f"once for each {each}",
            # where no worker was seen, it is true of those that somebody adds
            Severity.INFO if loader is None or loader.workers == 0 else None,
            asked,
            help_,
            asked=meant,
            covers=_COVERED,
            # what one method does to a sample is mended at once
            cause=f"{site.scope.owner}.{site.role}",
        )


def _is_opted_into(source: Source, move: ast.AST) -> bool:
    """Whether a move is made only where an option names the device."""
    to = names.dotted(move.args[0]) if isinstance(move, ast.Call) and move.args else ""
    return bool(to) and any(
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.IsNot)
        and says_none(test.comparators[0])
        and names.dotted(test.left) == to
        for test in conditions(source, move)
    )


def _weight(loader: Worker) -> tuple[bool, bool, bool]:
    """What a loader has to fear from work on an accelerator: forked workers most, no workers least."""
    return (bool(loader.workers) and loader.context not in _FRESH, bool(loader.workers), loader.workers is None)
