"""DVL401: waiting for the device in every training step."""

from __future__ import annotations

from collections.abc import Iterable

from devlint.finding import Severity
from devlint.rules.base import Report, Rule
from devlint.rules.edits import in_test, short
from devlint.sites import Site, Sync

_OWN = frozenset({"step", "update", "unscale_", "backward", "clip_grad_norm_"})
"""What torch itself waits in, for reasons of its own."""


class SyncInStepLoop(Rule):
    """The host waits for the device in every training step.

    ## What it does
    Reports `.item()` and `.tolist()` on tensors in the loop of the training steps, where every step calls them. In an
    audit: every line that waited for the device in each training step, such as `nonzero`, `if loss > 1` or
    `torch.cuda.synchronize()`.

    ## Why it matters
    Python queues work for the device ahead of time. Whoever reads a result has to wait until all of it is done, and the
    queue runs dry. Once every hundred steps costs nothing; for a running total, add up the detached tensor and read
    it at the end.

    ## Example
    ```python
    def train(loader, model, loss_fn, optimizer, device):
        total = 0.0
        for images, labels in loader:
            loss = loss_fn(model(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total
    ```

    ## Use instead
    ```python
    def train(loader, model, loss_fn, optimizer, device):
        total = 0.0
        for images, labels in loader:
            loss = loss_fn(model(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return float(total)
    ```

    ## When it stays silent
    - Only some steps come there: under an `if`, or in an audit in fewer than every second one.
    - The tensor is known to be on the CPU.
    - The loop trains nothing, or is one of a test.
    - torch itself waits, in `optimizer.step()` or `scaler.update()`, or a library does.

    ## Fix safety
    There is no fix: what is read, and when, is the author's decision.

    ## References
    - [Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
    """

    code = "DVL401"
    name = "sync-in-step-loop"
    severity = Severity.INFO
    default = False
    observed = True
    sites = (Sync,)

    def judge(self, site: Site) -> Iterable[Report]:
        """A report where each training step waits."""
        if not isinstance(site, Sync) or site.region != "train" or site.via or not site.repeated:
            return
        if site.measured is None and (not site.scope.step or site.scope.sometimes or in_test(self.source, site.scope)):
            return
        if site.measured is not None and site.spelled in _OWN:
            return
        text = short(self.source.segment(site.node), site.spelled)
        yield Report(
            site.node,
            f"`{text}` waits for the device in every training step",
            label="the host stands still here",
            help="read it every so many steps, or keep the tensor and read it after the loop",
        )
