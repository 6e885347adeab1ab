"""DVL302: pinning batches that are not in host memory."""

from __future__ import annotations

from devlint.rules.base import Applicability, Report, Reports, Rule, Severity, Step, proof
from devlint.rules.code.edits import fix_of, without_argument
from devlint.rules.transfers.pinned import chosen_away
from devlint.sites.loaders import Load


class PinningAcceleratorTensors(Rule):
    """A loader is told to pin batches that are on an accelerator already, which raises.

    ## What it does
    Reports `DataLoader(..., pin_memory=True)` over a data set of tensors that were put on an accelerator, or whose
    `__getitem__` or `collate_fn` puts what it returns there.

    ## Why it matters
    Only host memory can be pinned. The first batch raises "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors
    can be pinned". On a machine without an accelerator the same loader works.

    ## Example
    ```python
    from torch.utils.data import DataLoader, TensorDataset

    def load(images, labels, device):
        dataset = TensorDataset(images.to(device), labels.to(device))
        return DataLoader(dataset, batch_size=64, pin_memory=True)
    ```

    ## Use instead
    ```python
    from torch.utils.data import DataLoader, TensorDataset

    def load(images, labels, device):
        dataset = TensorDataset(images.to(device), labels.to(device))
        return DataLoader(dataset, batch_size=64)
    ```

    ## When it stays silent
    - `pin_memory` is anything but a literal `True`, such as `device.type == "cpu"`.
    - Where the samples are is not known: the data set is made elsewhere, or a `collate_fn` makes the batches whose
      results are not seen to be on an accelerator.
    - The tensors are where an argument of the function is.

    ## Fix safety
    Leaving `pin_memory` out is safe: batches on an accelerator have nothing to pin.

    ## References
    - [Memory pinning](https://docs.pytorch.org/docs/stable/data.html#memory-pinning)
    """

    code = "DVL302"
    severity = Severity.ERROR
    fixes = (Applicability.SAFE,)
    observed = True
    proof = proof.Traces(left=(proof.LOADER,), contradict=(proof.HOST_BATCHES,))

    def judge(self, site: Load) -> Reports:
        """A report where pinning is asked for and the batches are elsewhere."""
        if not site.pinned or not chosen_away(site.batches):
            return
        if "collate_fn" in site.keywords and site.put is None:
            return
        loader = site.loader.rpartition(".")[2]
        when = "" if site.batches.accelerates() else " when that is an accelerator"
        asked = site.keywords.get("pin_memory")
        removed = without_argument(self.source, site.node, "pin_memory")
        yield Report(
            f"`{loader}` pins batches that are on {site.batches}, which raises{when}: only host memory can be pinned",
            label=f"its data set is on {site.batches}" if site.put is None else f"its batches are on {site.batches}",
            steps=(*filter(None, (site.put,)), *(() if asked is None else (Step(asked, "pinning is asked for here"),))),
            help="leave `pin_memory` out: the batches need no copy",
            fix=None if asked is None else fix_of("Remove `pin_memory`", removed, safe=True),
        )
