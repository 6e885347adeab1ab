"""DVL501: DataParallel where DistributedDataParallel is meant."""

from __future__ import annotations

import ast
import re

from devlint.flow.catalog.modules import OF_ONE_PROCESS
from devlint.rules.base import Report, Reports, Rule, Severity, proof
from devlint.rules.code import edits
from devlint.rules.code.blocks import around, function_at, statement_of, way_to
from devlint.sites.distributed import Wrap
from devlint.source.syntax import walk
from devlint.source.tree import Source

_INFERS = r"\.eval\(\)|\bno_grad\b|\binference_mode\b|\b(?:validate|evaluate|test|infer|predict)\("
_TRAINS = r"(?i)\bloss|backward\(|\boptim(?:izers?)?\b|\.train\(|\btrain\(|\bfit\b|trainer"
_DISTRIBUTED = ("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard")


class DataParallel(Rule):
    """`nn.DataParallel` serves several GPUs from one process; `DistributedDataParallel` is faster even on one machine.

    ## What it does
    Reports every construction of `torch.nn.DataParallel` and every call of `torch.nn.parallel.data_parallel`: a hint,
    since the better wrapper takes another way to start the program, or one device needs none; a warning where an audit
    saw it at work.

    ## Why it matters
    One process drives all GPUs with threads that share Python's interpreter lock. In every forward pass the module is
    copied to each GPU, the batch is scattered from the first GPU and the outputs are gathered there, so the first GPU
    fills up while the others wait. What `forward` changes on the replicas is lost. PyTorch's own advice is
    `DistributedDataParallel`, one process per GPU, even if there is only a single machine.

    ## Example
    ```python
    def build(device):
        return nn.DataParallel(nn.Linear(8, 2)).to(device)
    ```

    ## Use instead
    ```python
    def build(rank):
        return DistributedDataParallel(nn.Linear(8, 2).to(rank), device_ids=[rank])
    ```

    ## When it stays silent
    - The class is only named: `isinstance(model, nn.DataParallel)`, type hints, imports, a base class.
    - Code that unwraps: `model.module`, or strips `module.` from the keys of a checkpoint.
    - The wrapper only lends its names to a checkpoint: it is given a state dict, and then its `.module` is taken out,
      or it is only saved.
    - Behind a condition, such as `if args.multi_gpu:` or `if torch.cuda.device_count() > 1:`, it is an option that few
      rewrite a program for: an info for those who select the rule, unless it is given one device. Likewise where the
      file evaluates or predicts, and trains nothing.

    ## Fix safety
    There is no fix: `DistributedDataParallel` needs a process per GPU, started by `torchrun`, and a
    `DistributedSampler` for each loader.

    ## References
    - [Use DistributedDataParallel instead of multiprocessing or DataParallel](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    - [Use efficient data-parallel backend](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.nn.DataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html)
    - [torch.nn.parallel.DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    """

    code = "DVL501"
    severity = Severity.INFO
    hints = False
    observed = True
    proof = proof.Traces(left=(proof.WRAPPER,), confirm=(proof.WRAPPER,))

    def judge(self, site: Wrap) -> Reports:
        """A report for every `DataParallel`, milder where it stands beside the better wrapper."""
        if site.wrapper not in OF_ONE_PROCESS or _names_only(self.source, site.node):
            return
        name = self.source.segment(site.node.func) if isinstance(site.node, ast.Call) and not site.via else site.wrapper
        name = site.wrapper if "\n" in name else name
        fallback = any(wrapper.endswith(_DISTRIBUTED) for wrapper in site.beside)
        message = f"`{name}` drives all GPUs from one process and copies the module to each in every forward pass"
        alone = site.devices == 1 and site.ids is None
        if alone:
            # a run claims what it has seen: there was nothing to copy the module to
            message = f"`{name}` had one device in this run, and only adds work to every forward pass there"
        elif site.ids == 1:
            message = f"`{name}` with one device id parallelizes nothing: it only adds work to every forward pass"
        # a function that says in its signature that it returns one leaves the choice to its caller
        returns = getattr(function_at(self.source, site.node), "returns", None)
        offered = returns is not None and "DataParallel" in ast.unparse(returns)
        infers = site.measured is None and bool(re.search(_INFERS, self.source.text))
        infers = infers and not re.search(_TRAINS, self.source.text)
        optional = site.measured is None and site.ids != 1 and _is_optional(self.source, site.node)
        mild = alone or fallback or offered or optional or infers or edits.in_test(self.source, site.scope)
        yield Report(
            message,
            label="one process, one thread per GPU" if site.ids != 1 else "one device",
            severity=Severity.WARNING if site.measured is not None and not mild else None,
            help=_help(site, fallback, infers),
            asked=optional or (infers and site.ids != 1),
        )


def _is_optional(source: Source, node: ast.AST) -> bool:
    """Whether a condition stands before a wrapper: a setting, or that there are several GPUs."""
    for outer, inner in way_to(source, node):
        if (
            isinstance(outer, ast.If | ast.IfExp)
            and inner is not outer.test
            and "__name__" not in ast.unparse(outer.test)
        ):
            return True
    return False


def _names_only(source: Source, node: ast.AST) -> bool:
    """Whether a wrapper only lends its `module.` to the keys of a checkpoint, which it is given, or saved as."""
    found = statement_of(source, node)
    target = found.targets[0] if isinstance(found, ast.Assign) else None
    if found is None or not isinstance(target, ast.Name):
        return False
    inside = [part for part in walk(around(source, node)) if getattr(part, "lineno", 0) > (found.end_lineno or 0)]
    uses = [part for part in inside if isinstance(part, ast.Attribute)]
    used = [part.attr for part in uses if ast.unparse(part.value) == target.id]
    read = [part for part in inside if isinstance(part, ast.Name) and part.id == target.id]
    return len(read) == len(used) and bool(used) and set(used) <= {"load_state_dict", "module", "state_dict"}


def _help(site: Wrap, fallback: bool, infers: bool) -> str:
    if site.ids == 1:
        return (
            "leave the wrapper out, and move the module and the inputs to the device, as it does (what it has saved "
            "begins with `module.`); "
            "for several GPUs, use `DistributedDataParallel` with one process per GPU"
        )
    if fallback:
        return "`DistributedDataParallel` is here already: it is faster for a single machine with several GPUs too"
    if infers:
        # what the better wrapper is for is the gradients
        return "nothing is trained here: a process for each GPU, with its share of the data, needs no wrapper"
    return "use `DistributedDataParallel`, started by `torchrun`: https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html"
