"""DVL401: waiting for the device in every training step."""

from __future__ import annotations

import ast

from devlint.rules.base import Report, Reports, Rule, Severity, proof
from devlint.rules.code.blocks import stores
from devlint.rules.code.edits import in_test, short
from devlint.sites.costs import Sync

_OWN = frozenset({"step", "update", "unscale_", "backward", "clip_grad_norm_"})
"""What torch itself waits in, for reasons of its own."""
_OFTEN = {
    "train": "in every training step",
    "element": "more than once in every step",
    "loop": "in every round of this loop",
    "forward": "in every forward pass",
    "check": "in every call, only to check values",
}
"""How often the host waits, by the region of the site."""
_ADVICE = {"check": "check what is known without the values, or leave the check to those who ask for it"}
"""What to do in a region where no loop is at hand."""
_SHORT = {"bool": "if", "print": "print"}
"""How a long expression is named that is no method's call."""


class SyncInStepLoop(Rule):
    """The host waits for the device in every step.

    ## What it does
    Reports what reads a tensor's values on the host: `.item()`, `.tolist()`, `.cpu()`, `print(loss)`, `float(loss)`,
    `if loss > 1`, and functions whose result has a size that depends on the values, such as `nonzero` and `unique`;
    tensors where a number is needed, as in `range(n[0])`, `x[: n[0]]` and `torch.zeros(n[0])`, and those that are given
    to `add_scalar` or `wandb.log`. A comprehension is a loop over its elements. It reports them in the loop of the
    training steps, in a loop over the parts of an evaluation step, in any other loop whose tensor is known to live
    elsewhere, and in `forward`, where every round comes there; and in functions that run once in each training step:
    they call `backward()` themselves, a loop that does or such a function calls them each time, or a library does, as
    it does with `training_step`. It reports checks of values, too, that every call of a function makes:
    `if x.min() < 0: raise ...`, `assert (y < n).all()`. In an audit: every line that waited for the device in each
    training step.

    ## Why it matters
    Python queues work for the device ahead of time. Whoever reads a result has to wait until all of it is done, and the
    queue runs dry. Once every hundred steps costs nothing; for a running total, add up the detached tensor and read
    it at the end.

    ## Example
    ```python
    import torch

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
    import torch

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
    - Only some steps come there: under an `if`, after an early `return`, or in an audit in fewer than every second one.
    - A function that calls `backward()` calls `.eval()`, too, as what explains a network does, or the file's top level
      calls it, and in no loop.
    - The tensor is known to be on the CPU.
    - `.cpu()` outside of training and evaluation steps, which may well be where the tensor has to go on.
    - An evaluation reads its results once in every step; it has to.
    - It reads right after something else that waited: then there is nothing left to wait for. What reads the same value
      again in a step is shown with the first.
    - A check of values is made on some paths only, or where an object is made.
    - The code is a test.
    - torch itself waits, in `optimizer.step()` or `scaler.update()`, or a library does.

    ## Fix safety
    There is no fix: what is read, and when, is the author's decision.

    ## References
    - [Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
    """

    code = "DVL401"
    severity = Severity.INFO
    default = False
    observed = True
    proof = proof.Traces(left=(proof.WAIT,), confirm=(proof.WAIT_IN_STEP,))

    def judge(self, site: Sync) -> Reports:
        """A report where each training step waits."""
        if site.region not in _OFTEN or site.via:
            return
        if site.measured is None:
            told = not site.scope.sometimes and not in_test(self.source, site.scope)
        else:
            told = site.region == "train" and site.repeated and site.spelled not in _OWN
        if not told:
            return
        text = short(self.source.segment(site.node), _SHORT.get(site.spelled, f".{site.spelled}()"))
        yield Report(
            f"`{text}` waits for the device {_OFTEN[site.region]}",
            label="the host stands still here",
            help=_ADVICE.get(site.region, "read it every so many steps, or keep the tensor and read it after the loop"),
            cause=_cause(site),
        )


def _cause(site: Sync) -> str:
    """The value that is read, where a round of the loop makes it once: to keep it mends all that read it."""
    loop, value = site.scope.loop, site.value
    if loop is None or value is None or not isinstance(value.node, ast.Name):
        return ""
    name = value.node.id
    row = getattr(loop, "lineno", 0)
    return f"{name} in {row}" if len(stores(loop).get(name, ())) == 1 else ""
