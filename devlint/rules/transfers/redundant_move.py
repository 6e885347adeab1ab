"""DVL201: a move to where the value already is."""

from __future__ import annotations

import ast

from devlint.device import Kind, Role
from devlint.flow.syntax import names
from devlint.rules.base import Applicability, Fix, Report, Reports, Rule, Severity, proof
from devlint.rules.code.blocks import function_at, method_of
from devlint.rules.code.edits import fix_of, quoted, short, without_call, without_last
from devlint.rules.transfers.destination import destination
from devlint.rules.transfers.detours import copied_before, gone_and_back
from devlint.sites.base import Act, Step
from devlint.sites.transfers import Transfer
from devlint.source.syntax import walk

_COVERED = ("DVL601",)
"""What goes away with the call."""
_PLACED = (Act.CREATED, Act.MOVED)
_COPIES = ("cpu", "to")


class RedundantMove(Rule):
    """A value is moved to the device where it already is.

    ## What it does
    Reports `.to(device)`, `.cuda()` and `.cpu()` on a tensor or a module that this function has already put on that
    very device: created there, moved there before, or computed from such tensors, or a part of a batch that each round
    of a loop moves as a whole. Also the round trip
    `x.cpu().to(device)`, which copies to the host and back, two moves in a row of something of any type, what is moved
    to a device and comes straight back, and what is copied there twice. It is a warning for a round trip and for a
    module in a loop, and where an audit saw it at every step, else a hint for those who select the rule.

    ## Why it matters
    `.to()` returns its input: nothing is copied. But the call says that something moves where nothing does, which
    hides where data really travels; a module's parameters are all visited one by one, and in a loop that costs at
    every step.

    ## Example
    ```python
    def train(steps, device):
        noise = torch.randn(64, 8, device=device)
        for step in range(steps):
            print(noise.to(device).shape)
    ```

    ## Use instead
    ```python
    def train(steps, device):
        noise = torch.randn(64, 8, device=device)
        for step in range(steps):
            print(noise.shape)
    ```

    ## When it stays silent
    - The call asks for more: a dtype, a memory format, `copy=True`.
    - The value is on the device on some paths only, or the devices may differ: `cuda` and `cuda:0`.
    - Another function put it on the CPU: `.cpu()` on what is called is a hint for those who select the rule.
    - The value is an argument, or its device an argument's: a library function may move to be sure.
    - It is on the CPU in a function by the name of a device at the top of the file, `device = "cpu"`: a setting.
    - What was put on the CPU goes to the default device, `.to(torch.empty(0).device)`: others may have set another.
    - The batches of a loader, which are on the CPU, and results that are discarded, which DVL102 reports.
    - In an audit: the move copied something once, it did not happen at every step, or a library made it.

    ## Fix safety
    Removing the call is safe: it returns the very same object. So is leaving out the `.cpu()` of a round trip. Unsafe
    where the type is not known, which may do more in its `.to()`.

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code = "DVL201"
    hints = False
    fixes = (Applicability.SAFE, Applicability.UNSAFE)
    observed = True
    proof = proof.Traces(left=(proof.COPY, proof.MOVE), confirm=(proof.ONLY_IN_PLACE,), contradict=(proof.COPY,))

    def judge(self, site: Transfer) -> Reports:
        """A report where receiver and target are the same device, and this function made them so."""
        if site.foreign or not site.plain or site.value.derived:
            return
        if site.measured is not None and not _idle(site):
            return
        if _round_trip(site):
            yield Report(
                f"the value goes to {destination(self.source, site)} by way of the CPU: one copy there, and one back",
                label="a round trip through host memory",
                severity=None if site.repeated and site.kind else Severity.INFO,
                help="drop the `.cpu()`: `.to()` copies straight from any device, or not at all",
                # a type of another library may do more
                fix=fix_of("Remove `.cpu()`", without_last(self.source, site.value.node), safe=bool(site.kind)),
                covers=_COVERED,
            )
            return
        if site.measured is None and (found := list(self._detours(site))):
            yield from found
            return
        if self._moved_just_before(site):
            yield Report(
                f"`{short(site.value.text, 'the value')}` has just been moved to {destination(self.source, site)}: "
                f"`.{site.spelled}()` moves nothing",
                label="moved there before",
                severity=Severity.INFO,
                steps=site.value.story,
                help="drop the call",
                # a type of another library may do more
                fix=self._fix(site, safe=False),
                covers=_COVERED,
            )
            return
        if site.target is not None and not site.discarded and site.value.near.same(site.target) is True:
            there = destination(self.source, site)
            yield Report(
                f"{quoted(site.value.text, 'the value')} is a part of what was moved to {there} as a whole",
                label="moved there with the rest",
                severity=Severity.INFO,
                help="drop the call, unless the whole leaves this part where it is",
                asked=True,
            )
            return
        # the batches of a loader are surely somewhere, whatever their type
        if not site.kind and site.value.many is not True:
            return
        if site.target is None or site.value.device.same(site.target) is not True or not self._settled_here(site):
            return
        if (site.discarded and site.kind == "tensor") or (site.target.implied and not site.value.device.implied):
            # the default device is asked for, whatever whoever runs this has made it
            return
        # the code moves one value to where another one is, or to the CPU, in case it is not there
        beside = isinstance(site.target_node, ast.Attribute) and site.target_node.attr == "device"
        careful = site.measured is not None and (beside or site.value.device.kind is Kind.CPU)
        here = function_at(self.source, site.node)
        copied = [step.node for step in site.value.story if step.act in _PLACED or method_of(step.node) in _COPIES]
        # whoever takes what another function returns may ask for the CPU to be sure, which costs nothing
        elsewhere = site.measured is None and site.value.device.kind is Kind.CPU
        elsewhere = elsewhere and not any(function_at(self.source, node) is here for node in copied)
        # a tensor returns itself; of a module, each call goes through all parameters
        costs = site.repeated and (site.kind == "module" or site.measured is not None)
        what, there = quoted(site.value.text, f"the {site.kind or 'value'}"), destination(self.source, site)
        yield Report(
            f"{what} is already on {there}: `.{site.spelled}()` returns its input and moves nothing",
            label=f"already on {there}",
            severity=None if costs and not careful and not elsewhere else Severity.INFO,
            steps=site.value.story,
            help=f"drop the call, and use {what} as it is",
            # what was so in one run need not be so in the next
            fix=self._fix(site, safe=site.measured is None),
            covers=_COVERED,
            asked=elsewhere,
        )

    def _detours(self, site: Transfer) -> Reports:
        """Reports of copies of which another one, or none, would do."""
        what, there = quoted(site.value.text, "the value"), destination(self.source, site)
        if (moved := gone_and_back(self.source, site)) is not None:
            yield Report(
                f"{what} comes straight back to the CPU: nothing else reads it where it was moved to",
                label="one copy there, and one back",
                severity=Severity.INFO,
                steps=(moved,),
                help="read it before it is moved, or do not move it",
                asked=True,
            )
        elif (before := copied_before(self.source, site)) is not None:
            yield Report(
                f"{what} is copied to {there} once more, as it was a moment before",
                label="copied again",
                severity=Severity.INFO,
                steps=(Step(before, "copied there before"),),
                help="keep the copy under a name, and use it twice",
                asked=True,
            )

    def _moved_just_before(self, site: Transfer) -> bool:
        """Whether something of an unknown type is moved where it has just been moved, and nothing else was done to it.

        What was put into it in between, such as a tensor of the CPU, a second move would take along.
        """
        node, story = site.value.node, site.value.story
        known = site.kind or site.measured is not None or site.discarded or site.scope.loop is not None or not story
        if known or not isinstance(node, ast.Name) or not isinstance(site.node, ast.Call):
            return False
        if site.target is None or site.value.device.same(site.target) is not True or story[-1].act not in _PLACED:
            return False
        here, first = function_at(self.source, site.node), story[-1].node
        begin, last = self.source.span(first), self.source.span(site.node)
        if function_at(self.source, first) is not here or last <= begin:
            return False
        rows = range(begin.end_row + 1, last.row)
        between = (part for part in walk(here or self.source.tree) if isinstance(part, ast.Name))
        return not any(part.id == node.id and part.lineno in rows for part in between)

    def _fix(self, site: Transfer, safe: bool) -> Fix | None:
        method = method_of(site.node)
        return fix_of(f"Remove `.{method}()`", without_call(self.source, site.node) if method else None, safe=safe)

    def _settled_here(self, site: Transfer) -> bool:
        """Whether this function put the value there, rather than found it where others left it."""
        device = site.value.device
        if site.measured is not None or _is_like(site):
            return True
        if device.kind is Kind.CPU:
            return bool(site.kind) and not device.implied
        placed = [step.node for step in site.value.story if step.act in _PLACED]
        if placed:
            here = function_at(self.source, site.node)
            # what only an earlier round of this very call has put there needs the call
            return any(function_at(self.source, node) is here and node is not site.node for node in placed)
        return all(leaf.role in (None, Role.DEVICE) for leaf in device.leaves())


def _is_like(site: Transfer) -> bool:
    """Whether what is moved was made like another tensor, and goes to where that one is."""
    made, target = site.value.node, site.target_node
    if not isinstance(made, ast.Call) or not made.args or not isinstance(target, ast.Attribute):
        return False
    elsewhere = any(keyword.arg in ("device", None) for keyword in made.keywords)
    like = names.called(made).endswith("_like") and not elsewhere
    return like and ast.unparse(target) == f"{ast.unparse(made.args[0])}.device"


def _idle(site: Transfer) -> bool:
    """Whether an observed move did nothing at every step, by the code's own choice.

    Where everything is on the CPU, `.to(device)` is what lets the same code run elsewhere.
    """
    literal = site.spelled == "cpu" or isinstance(site.target_node, ast.Constant)
    return site.repeated and not site.via and (literal or site.value.device.accelerates() is True)


def _round_trip(site: Transfer) -> bool:
    """Whether the tensor is copied to the CPU only to be moved on."""
    onward = site.target is not None and site.target.known and site.target.accelerates() is not False
    return method_of(site.value.node) == "cpu" and onward and site.kind != "module" and not site.discarded
