"""DVL305: a loader without workers, which makes each batch while the accelerator waits."""

from __future__ import annotations

from devlint.device import Kind
from devlint.rules.base import Report, Reports, Rule, Severity, Step, proof
from devlint.rules.code.edits import in_test
from devlint.rules.transfers.pinned import reads_pinned
from devlint.sites.loaders import Load


class SynchronousLoader(Rule):
    """A loader that trains a model on an accelerator has no worker processes, so that the accelerator waits for it.

    ## What it does
    Reports a `DataLoader` without `num_workers`, or with `num_workers=0`, whose batches go to an accelerator in a loop
    that trains.

    ## Why it matters
    Without workers the process that feeds the accelerator also reads, decodes and collates every sample. The
    accelerator does nothing meanwhile. Workers make the next batches during the step.

    ## Example
    ```python
    def train(dataset, model, optimizer, device):
        for images in DataLoader(dataset, batch_size=64, pin_memory=True):
            model(images.to(device, non_blocking=True)).sum().backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    def train(dataset, model, optimizer, device):
        for images in DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True):
            model(images.to(device, non_blocking=True)).sum().backward()
            optimizer.step()
    ```

    ## When it stays silent
    - `num_workers` is anything but `0`, or may be given through `**kwargs`.
    - The samples are in memory: a `TensorDataset`, a list, a data set that only picks from what it holds.
    - The samples are on an accelerator, which workers could not use; tests.

    The rule is off unless it is selected: tiny data sets and debugging are good reasons to have no workers.

    ## Fix safety
    There is no fix: how many workers are best depends on the machine, and they need a data set that can be pickled.

    ## References
    - [Multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code = "DVL305"
    severity = Severity.INFO
    default = False
    proof = proof.Traces(left=(proof.LOADER,), confirm=(proof.WITHOUT_WORKERS,), contradict=(proof.WITH_WORKERS,))

    def judge(self, site: Load) -> Reports:
        """A report where a loop trains with batches that were made in its own process."""
        if site.workers != 0 or site.training is None or site.training.at_hand:
            return
        moves = [move for move in site.moves if move.repeated and reads_pinned(move.target)]
        on_host = site.batches.kind in (Kind.CPU, Kind.UNKNOWN) and not site.custom_batches
        if not moves or not on_host or in_test(self.source, site.scope):
            return
        yield Report(
            f"this `{site.loader.rpartition('.')[2]}` has no workers: each batch is made while {moves[0].target} waits",
            label="`num_workers` is 0" if "num_workers" in site.keywords else "`num_workers` is not set",
            steps=tuple(Step(move.node, f"copied to {move.target} here") for move in moves),
            help="set `num_workers` to a few per accelerator, and measure",
        )
