"""DVL108: the lengths of packed sequences are on an accelerator."""

from __future__ import annotations

from devlint.rules.base import Applicability, Report, Reports, Rule, Severity
from devlint.rules.code.edits import fix_of, shown
from devlint.rules.placement.host.transfer_to_host import absence, fetched
from devlint.sites.placement import HostRead


class LengthsNotOnCpu(Rule):
    """`pack_padded_sequence` is given lengths that are on an accelerator.

    ## What it does
    Reports `pack_padded_sequence(x, lengths)` where `lengths` was moved to a device, or is computed from a tensor that
    was: from a mask, or from the tokens that the module embeds. It is a warning where that tensor is an argument.

    ## Why it matters
    The lengths decide how the batches are cut, which the host does: PyTorch wants them on the CPU whatever the device
    of the sequences. On an accelerator the call raises "'lengths' argument should be a 1D CPU int64 tensor"; on a
    machine without one it works.

    ## Example
    ```python
    from torch.nn.utils.rnn import pack_padded_sequence

    def pack(x, mask, device):
        mask = mask.to(device)
        return pack_padded_sequence(x.to(device), mask.sum(1), batch_first=True)
    ```

    ## Use instead
    ```python
    from torch.nn.utils.rnn import pack_padded_sequence

    def pack(x, mask, device):
        mask = mask.to(device)
        return pack_padded_sequence(x.to(device), mask.sum(1).cpu(), batch_first=True)
    ```

    ## When it stays silent
    - The lengths are a list, numbers in an array, or a tensor on the CPU.
    - They are an argument, or computed from one that is not packed and goes into no module: the caller may keep
      lengths on the CPU.
    - Where they are is not known.

    ## Fix safety
    Safe: `.cpu()` is added. The copy waits for the device, as any use of the lengths by the host must.

    ## References
    - [pack_padded_sequence](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_padded_sequence.html)
    """

    code = "DVL108"
    raising = True
    hints = False
    severity = Severity.ERROR
    fixes = (Applicability.SAFE, Applicability.UNSAFE)

    def judge(self, site: HostRead) -> Reports:
        """A report where the lengths are away from the host."""
        if site.kind != "lengths":
            return
        (operand,) = site.values
        found = absence(site, operand)
        if found is None:
            return
        edits = fetched(self.source, operand, receiver=False)
        proven = operand.certain and operand.device.known
        name = site.reader.rpartition(".")[2]
        yield Report(
            f"{shown(operand.text)} {found.place}, and `{name}` takes lengths on the CPU alone; "
            f"this raises{'' if operand.device.accelerates() else ' on an accelerator'}",
            node=operand.node,
            label="lengths have to be on the CPU",
            severity=found.severity,
            steps=operand.story,
            help="copy the lengths to the host: `.cpu()`",
            fix=fix_of("Copy the lengths to the host", edits, safe=proven),
            assumed=found.assumed,
        )
