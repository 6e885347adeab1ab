"""DVL202: the same tensor copied to the device in every round of a loop."""

from __future__ import annotations

import ast

from devlint.device import Kind
from devlint.flow.catalog.creation import FROM_VALUES
from devlint.rules.base import Applicability, Report, Reports, Rule, Severity, Step, proof
from devlint.rules.code.edits import in_test, quoted, short
from devlint.rules.code.owners import moves_to_itself
from devlint.rules.transfers.creating import HANDFUL, created_before, hoisting, out_of_the_loop
from devlint.rules.transfers.destination import destination
from devlint.sites.placement import Attribute
from devlint.sites.transfers import Transfer, Upload
from devlint.source.tree import Source

_STATEMENTS = (ast.For, ast.AsyncFor, ast.While)


class InvariantTransferInLoop(Rule):
    """A tensor that does not change is copied to the accelerator again in every step.

    ## What it does
    Reports `.to(device)` and `.cuda()` in the loop of the steps, or in a loop in a method of a module, on a tensor that
    was made on the CPU before the loop and that the loop does not change; a tensor of literals that is made on a device
    in every step; and a tensor which the constructor of an object leaves on the CPU, so that each call of a method
    copies it to where the arguments are. Where that object is a module, DVL104 reports the attribute, and each of the
    copies is a hint. In an audit: a line which copies unchanged memory at every step.

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
    - The loop is a comprehension, or the tensor is at most four numbers: who selects the rule is told.
    - The tensor comes back to the host in the loop: then memory of the device is saved on purpose.
    - It is an attribute that some method assigns anew, or of a class with a base from another file, of which DVL104
      hints at it.
    - An attribute of what is no module, which every call of a method copies, is for those who select the rule.

    ## Fix safety
    Creating the tensor on the device, or making it in front of the loop, is unsafe: code that the loop calls may rely
    on a tensor of its own. There is a fix where nothing else reads the tensor, or where one statement can be moved.

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code = "DVL202"
    hints = False
    fixes = (Applicability.UNSAFE,)
    observed = True
    proof = proof.Traces(left=(proof.UPLOAD,), confirm=(proof.REPEATED,), contradict=(proof.ALWAYS_NEW,))

    def judge(self, site: Transfer | Upload | Attribute) -> Reports:
        """A report where every round, or every call, copies the same."""
        if site.via or in_test(self.source, site.scope):
            return
        if isinstance(site, Upload):
            yield Report(
                f"`{site.function}` copies the same values to {site.target} again in every step",
                label="the same copy each time",
                help="make the tensor once, before the loop",
                fix=out_of_the_loop(self.source, site.scope.loop, site.node),
                # beside a step, the copy of a handful of numbers is nothing
                asked=_is_of_few_numbers(site.node),
            )
        elif isinstance(site, Attribute):
            yield from _copied_by_a_module(self.source, site)
        elif site.target is None or not site.target.known or site.target.accelerates() is False or site.value.attribute:
            return
        elif site.invariant and site.value.device.kind is Kind.CPU:
            yield self._in_the_loop(site)
        elif site.kept is not None:
            text = short(site.value.text, "the tensor")
            calls = f"every call of `{site.scope.function}()` copies it to {destination(self.source, site)}"
            yield Report(
                f"`{text}` stays on the CPU, so that {calls}",
                label="the same copy each time",
                # a table that no module keeps is small, or its object is made anew for each use: seen in DPM-Solver
                severity=None if site.scope.module else Severity.INFO,
                steps=(site.kept,),
                help=f"keep what was moved: `{text} = {text}.to(...)` copies once for each device",
            )

    def _in_the_loop(self, site: Transfer) -> Report:
        text = short(site.value.text, "")
        what = quoted(text, "the same tensor")
        unchanged = "had not changed" if site.measured is not None else "does not change"
        when = "step" if site.measured is not None or site.scope.step else "round of the loop"
        return Report(
            f"{what} {unchanged}, but is copied to {destination(self.source, site)} again in every {when}",
            label="the same copy each time",
            steps=site.value.story if site.creation is None or not site.value.story else (),
            help=f"move {what} once, before the loop" if text else "make this copy once, and keep the result",
            fix=hoisting(self.source, site) or created_before(self.source, site),
            # a comprehension may want as many tensors as it has rounds, which are few; a handful of numbers is no load
            asked=(site.scope.loop is not None and not isinstance(site.scope.loop, _STATEMENTS))
            or site.value.many is False
            or (
                site.creation is not None
                and (site.creation.function in FROM_VALUES or not site.creation.function.rpartition(".")[2].islower())
                and _is_of_few_numbers(site.creation.node)
            ),
        )


def _is_of_few_numbers(made: ast.AST) -> bool:
    """Whether a call makes a tensor of a handful of numbers that are written there: ``torch.tensor([0.0, 1.0])``."""
    given = made.args if isinstance(made, ast.Call) else []
    parts = [one for value in given for one in getattr(value, "elts", [value])]
    return bool(given) and len(parts) <= HANDFUL and all(isinstance(one, ast.Constant) for one in parts)


def _copied_by_a_module(source: Source, site: Attribute) -> Reports:
    """Hints at the calls that copy what DVL104 reports, where none of them keeps the copy."""
    stays = all(leaf.kind is Kind.CPU and leaf.implied for leaf in site.value.device.leaves())
    if site.kind != "tensor" or site.open or site.kept or not stays or site.value.many is False:
        return
    for node, method in site.copies:
        if moves_to_itself(source, site.name, node):
            continue
        yield Report(
            f"`self.{site.name}` does not move with the module, so that it is copied here at each call of `{method}()`",
            node=node,
            label="the same copy each time",
            severity=Severity.INFO,
            steps=(Step(site.value.node, "kept in a plain attribute here"),),
            help="register it as a buffer, or keep one copy for each device",
        )
