"""DVL202: the same tensor copied to the device in every round of a loop."""

from __future__ import annotations

from collections.abc import Iterable

from devlint.device import Kind
from devlint.finding import Severity
from devlint.rules.base import Report, Rule
from devlint.rules.edits import in_test, short
from devlint.sites import Site, Transfer


class InvariantTransfer(Rule):
    """A tensor that does not change is copied to the accelerator again in every step.

    ## What it does
    Reports `.to(device)` and `.cuda()` in the loop of the steps, or in a loop in a method of a module, on a tensor that
    was made on the CPU before the loop and that the loop does not change. In an audit: a line which copies unchanged
    memory at every step.

    ## Why it matters
    Each round pays for the copy, from pageable memory as a rule, so that the host waits for it. One copy before the
    loop does.

    ## Example
    ```python
    def train(loader, model, device):
        weights = torch.ones(10)
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels, weight=weights.to(device))
            loss.backward()
    ```

    ## Use instead
    ```python
    def train(loader, model, device):
        weights = torch.ones(10).to(device)
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels, weight=weights)
            loss.backward()
    ```

    ## When it stays silent
    - The tensor is assigned, or written to, in the loop, or only some rounds come to the copy.
    - Its device is not known to be the CPU, or the copy goes to different devices.
    - The loop does not run training or evaluation steps, and is not in a module's own code.
    - The tensor comes back to the host in the loop: then memory of the device is saved on purpose.
    - It is a plain attribute of a module, which DVL104 reports.

    ## Fix safety
    There is no automatic fix: the copy has to move to where its tensor is made.

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code = "DVL202"
    name = "invariant-transfer-in-loop"
    severity = Severity.WARNING
    observed = True
    sites = (Transfer,)

    def judge(self, site: Site) -> Iterable[Report]:
        """A report where every round copies the same."""
        if not isinstance(site, Transfer) or not site.invariant or site.via or in_test(self.source, site.scope):
            return
        away = site.target is not None and site.target.known and site.target.accelerates() is not False
        if not away or site.value.device.kind is not Kind.CPU or site.value.attribute is not None:
            return
        text = short(site.value.text, "")
        what = f"`{text}`" if text else "the same tensor"
        unchanged = "had not changed" if site.measured is not None else "does not change"
        when = "step" if site.measured is not None or site.scope.step else "round of the loop"
        yield Report(
            site.node,
            f"{what} {unchanged}, but is copied to {site.target} again in every {when}",
            label="the same copy each time",
            steps=site.value.story,
            help=f"move {what} once, before the loop" if text else "make this copy once, and keep the result",
        )
