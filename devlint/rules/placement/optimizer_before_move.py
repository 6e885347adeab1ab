"""DVL109: an optimizer that is made before its module is moved."""

from __future__ import annotations

from devlint.device import Kind
from devlint.rules.base import Report, Reports, Rule, Severity, proof
from devlint.sites.distributed import Optimize

_REPLACING = ("set_overwrite_module_params_on_conversion(True)", "torch_xla")
"""What a file says in which a move puts new parameters into a module."""


class OptimizerBeforeMove(Rule):
    """An optimizer is made of parameters that are moved to another device afterwards.

    ## What it does
    Reports `torch.optim.Adam(model.parameters())` where `model` is on the CPU and moved to an accelerator after that.
    It is a hint for those who select the rule, since `Module.to` keeps the parameters by default; a warning in a file
    where it replaces them, with `torch_xla` or `torch.__future__.set_overwrite_module_params_on_conversion(True)`; and
    an error where the optimizer has state by then: Adagrad, which allocates it when it is made, and optimizers whose
    state was loaded before the move. The latter is a warning of a model of which nothing is known but that it is moved
    later.

    ## Why it matters
    PyTorch asks for the move to come first. On CUDA the parameters stay the same objects, and optimizers go on as if
    nothing had happened; but state that was there before stays on the CPU, and the first step raises. On backends that
    replace the parameters, the optimizer trains tensors that no module uses.

    ## Example
    ```python
    def build(device):
        model = nn.Linear(8, 2)
        optimizer = torch.optim.Adam(model.parameters())
        model.to(device)
        return model, optimizer
    ```

    ## Use instead
    ```python
    def build(device):
        model = nn.Linear(8, 2).to(device)
        optimizer = torch.optim.Adam(model.parameters())
        return model, optimizer
    ```

    ## When it stays silent
    - Where the module was is not known, or it was there already, unless the optimizer's state is loaded before a move.
    - The state is moved, too: the function goes through `optimizer.state`, or hands the optimizer and a device on.
    - The optimizer is made again after the move.
    - The move is one to another dtype only.
    - In an audit it is a hint if the optimizer kept the parameters, and had no state to leave behind.

    ## Fix safety
    There is no fix: the statements have to change places.

    ## References
    - [torch.nn.Module.cuda](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.cuda)
    - [torch.optim](https://docs.pytorch.org/docs/stable/optim.html#constructing-it)
    """

    code = "DVL109"
    observed = True
    proof = proof.Traces(left=(proof.OPTIMIZER,), contradict=(proof.STAYED,))

    def judge(self, site: Optimize) -> Reports:
        """A report where parameters left the device on which the optimizer got them."""
        if site.moved is None:
            return
        if not site.made.known and site.loaded is not None:
            # only the order of the two is known: the module may have been there before
            yield Report(
                f"the state of `{site.optimizer}` is loaded before the module is moved: it goes where the parameters "
                "are by then, and stays there, so that its step raises",
                label="its state is loaded before the move",
                steps=(site.loaded, site.moved),
                help="move the module first, then load the optimizer's state",
            )
        lost = site.orphans > 0
        if site.made.kind is not Kind.CPU or (not lost and site.stepped.differs(site.made) is not True):
            return
        replaced = any(word in self.source.text for word in _REPLACING) or site.stepped.type == "xla"
        harmless = not site.eager and not lost and (site.measured is not None or not replaced)
        yield Report(
            f"`{site.optimizer}` is made of parameters on the CPU, and the module is moved afterwards: "
            + _effect(site, replaced),
            label="made before the move",
            severity=Severity.ERROR if site.eager or lost else Severity.INFO if harmless else None,
            steps=(site.moved,) if site.loaded is None else (site.loaded, site.moved),
            help="move the module first, then make the optimizer",
            asked=harmless and site.measured is None,
        )


def _effect(site: Optimize, replaced: bool) -> str:
    if site.orphans:
        return f"{site.orphans} of the parameters that it steps are no longer the module's"
    if site.eager:
        return "the state that it has by then stays on the CPU, and its step raises"
    if site.measured is not None:
        return "this time it kept its parameters"
    if replaced:
        return "it goes on with the old ones"
    return "on CUDA they stay the same objects, where a backend replaces them it goes on with the old ones"
