"""DVL108: the lengths of packed sequences, or the state of a generator, are on an accelerator."""

from __future__ import annotations

from devlint.device import AVAILABLE, Kind
from devlint.rules.base import Applicability, Report, Reports, Rule, Severity
from devlint.rules.code.edits import fix_of, put_after, shown
from devlint.rules.placement.host.transfer_to_host import absence, fetched
from devlint.sites.placement import HostRead, LoadedState


class LengthsNotOnCpu(Rule):
    """`pack_padded_sequence` is given lengths that are on an accelerator.

    ## What it does
    Reports `pack_padded_sequence(x, lengths)` where `lengths` was moved to a device, or is computed from a tensor that
    was: from a mask, or from the tokens that the module embeds. It is a warning where that tensor is an argument.
    Also `torch.set_rng_state(checkpoint["rng"])` where `torch.load` put the checkpoint on a device: a warning where
    that may be the CPU.

    ## Why it matters
    The lengths decide how the batches are cut, which the host does: PyTorch wants them on the CPU whatever the device
    of the sequences. On an accelerator the call raises "'lengths' argument should be a 1D CPU int64 tensor"; on a
    machine without one it works. The state of a generator, be it that of a GPU, is a `torch.ByteTensor` of the CPU as
    well: from an accelerator, it raises "RNG state must be a torch.ByteTensor".

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
      lengths on the CPU. Who selects the rule is told of a module's method, if the code shows that it is a tensor.
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

    def judge(self, site: HostRead | LoadedState) -> Reports:
        """A report where the lengths, or the state of a generator, are away from the host."""
        if isinstance(site, LoadedState):
            yield self._of_generator(site)
            return
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

    def _of_generator(self, site: LoadedState) -> Report:
        """A report where a state was loaded to a device."""
        chosen = site.device.guard is AVAILABLE
        sure = chosen or all(leaf.kind is not Kind.CPU for leaf in site.device.leaves())
        edits = [put_after(self.source, site.node, ".cpu()")] if not site.function.endswith("_all") else []
        return Report(
            f"{shown(self.source.segment(site.node))} is where `map_location` put it, and "
            f"`{site.function.rpartition('.')[2]}` takes a tensor of the CPU alone; this raises "
            "where that is an accelerator",
            label="the state has to be on the CPU",
            severity=None if sure else Severity.WARNING,
            steps=(site.loaded,),
            help="copy the state to the host: `.cpu()`",
            fix=fix_of("Copy the state to the host", edits, safe=True),
        )
