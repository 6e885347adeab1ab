"""DVL206: pinning memory for a single copy."""

from __future__ import annotations

from devlint.device import Kind
from devlint.rules.base import Applicability, Report, Reports, Rule, Severity, proof
from devlint.rules.code.blocks import receiver
from devlint.rules.code.edits import fix_of, quoted, without_last
from devlint.rules.transfers.destination import destination
from devlint.rules.transfers.pinned import pins_inline
from devlint.sites.transfers import Transfer


class InlinePinMemory(Rule):
    """Memory is pinned for one copy, which costs more than it gains.

    ## What it does
    Reports `x.pin_memory().to(device)`, with or without `non_blocking=True`.

    ## Why it matters
    `pin_memory()` allocates pinned memory and copies the tensor into it, for which the host waits; only then the copy
    to the device begins. `x.to(device)` alone lets the driver do the same in smaller pieces, and can be twice as fast.
    Without an accelerator, `pin_memory()` raises.

    ## Example
    ```python
    def copy(batch: torch.Tensor, device):
        return batch.pin_memory().to(device, non_blocking=True)
    ```

    ## Use instead
    ```python
    def copy(batch: torch.Tensor, device):
        return batch.to(device, non_blocking=True)
    ```

    ## When it stays silent
    - The tensor was pinned before: by a loader, once before a loop, or in the `pin_memory()` of a type of batches.
    - What is pinned is not known to be a tensor.

    ## Fix safety
    Leaving out `pin_memory()` brings the same values to the device, but is unsafe: where the copy was to overlap with
    work that is already queued, it may no longer do so. Measure it. `non_blocking=True` stays.

    ## References
    - [pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code = "DVL206"
    default = False
    severity = Severity.INFO
    fixes = (Applicability.UNSAFE,)
    proof = proof.Traces(left=(proof.PIN,), confirm=(proof.PIN,))

    def judge(self, site: Transfer) -> Reports:
        """A report where the memory that is pinned serves one copy only."""
        if site.kind != "tensor" or not pins_inline(site):
            return
        pinned = receiver(site.value.node)
        if pinned is None or site.target is None or not site.target.known or site.target.kind is Kind.CPU:
            return
        what, there = quoted(self.source.segment(pinned), "the tensor"), destination(self.source, site)
        yield Report(
            f"{what} is copied into pinned memory for a single copy to {there}, which costs more than it gains",
            label="two copies instead of one",
            help=f"copy it as it is: `.{site.spelled}(..., non_blocking=True)` lets the host go on, too",
            fix=fix_of("Remove `.pin_memory()`", without_last(self.source, site.value.node)),
        )
