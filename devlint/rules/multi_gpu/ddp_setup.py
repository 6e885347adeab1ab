"""DVL502: DistributedDataParallel that cannot work, or not on several GPUs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint.device import Kind
from devlint.finding import Severity
from devlint.rules.base import Report, Rule
from devlint.rules.blocks import function_at
from devlint.sites import Site, Step, Wrap

_WRAPPER = "torch.nn.parallel.DistributedDataParallel"
_RANKS = frozenset({"rank", "local_rank", "gpu", "gpu_id"})


class DdpSetup(Rule):
    """`DistributedDataParallel` is set up in a way that raises, or puts every process on the same GPU.

    ## What it does
    Reports `DistributedDataParallel` with several `device_ids`, with `device_ids` and a module on the CPU, with a
    device id that is the same number in every process, and with a module that is moved after it was wrapped. In an
    audit also ranks that used one GPU together, and a missing process group.

    ## Why it matters
    Each process serves one GPU, on which its module has to be before it is wrapped: wrapping looks at the parameters
    and prepares their communication. Several ids, or parameters on the CPU, raise a `ValueError`. If every process
    takes GPU 0, NCCL refuses to work, and any other backend works on one GPU while the others are idle.

    ## Example
    ```python
    from torch.nn.parallel import DistributedDataParallel

    def worker(rank):
        model = nn.Linear(8, 2).to(rank)
        return DistributedDataParallel(model, device_ids=[0])
    ```

    ## Use instead
    ```python
    from torch.nn.parallel import DistributedDataParallel

    def worker(rank):
        model = nn.Linear(8, 2).to(rank)
        return DistributedDataParallel(model, device_ids=[rank])
    ```

    ## When it stays silent
    - `device_ids` is left out or `None`, as for a module on the CPU or on several devices.
    - Where the module is is not known.
    - In an audit, processes that each see a GPU of their own as `cuda:0`, by `CUDA_VISIBLE_DEVICES`.
    - A fixed id is a hint in a function that takes no rank: each process may see one GPU only.

    ## Fix safety
    There is no fix.

    ## References
    - [torch.nn.parallel.DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    - [DDP tutorial](https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html)
    """

    code = "DVL502"
    name = "ddp-setup"
    severity = Severity.ERROR
    observed = True
    sites = (Wrap,)

    def judge(self, site: Site) -> Iterable[Report]:
        """One report, about the gravest that is wrong."""
        if not isinstance(site, Wrap) or site.wrapper != _WRAPPER:
            return
        if site.group is False:
            yield _report(site, "there is no process group yet", "call `init_process_group` first")
        elif site.ids is not None and site.ids > 1:
            message = f"{site.ids} device ids: each process serves one GPU, and more raise a `ValueError`"
            yield _report(site, message, "start a process for each GPU, and give each its own id")
        elif site.ids == 1 and site.device.kind is Kind.CPU:
            message = "the module is on the CPU and `device_ids` names a GPU, which raises a `ValueError`"
            yield _report(site, message, "move the module to its GPU first")
        elif site.moved_after is not None:
            message = "the module is moved after it was wrapped, though its communication is prepared for where it was"
            yield _report(site, message, "move the module, then wrap it", Severity.WARNING, (site.moved_after,))
        elif site.fixed is not None:
            yield self._shared(site, site.fixed)

    def _shared(self, site: Wrap, fixed: Step) -> Report:
        """A verdict on processes that take the same device."""
        if site.measured is not None:
            help_ = "`torch.cuda.set_device(local_rank)` gives each process its own"
            return _report(site, fixed.label, help_, Severity.WARNING)
        function = function_at(self.source, site.node)
        taken = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)} if function else set()
        severity = Severity.WARNING if taken & _RANKS else Severity.INFO
        message = "every process takes the same GPU: its id is a number, not the rank"
        return _report(site, message, "`device_ids=[local_rank]` gives each process its own", severity, (fixed,))


def _report(
    site: Wrap, message: str, help_: str, severity: Severity | None = None, steps: tuple[Step, ...] = ()
) -> Report:
    return Report(site.node, message, "one process for each GPU", severity, steps, help_)
