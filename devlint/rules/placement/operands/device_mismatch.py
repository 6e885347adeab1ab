"""DVL101: operands that are on different devices."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from devlint.device import Kind, Role
from devlint.rules.base import Applicability, Edit, Fix, Report, Reports, Rule, Severity, proof
from devlint.rules.code.blocks import function_at, targets_of, way_to
from devlint.rules.code.control_flow import stands_at
from devlint.rules.code.device_candidates import device_at_hand
from devlint.rules.code.edits import as_written, fix_of, in_brackets, in_test, on_samples, shown, with_arguments
from devlint.rules.placement.operands.meetings import (
    GENERATOR,
    LISTED,
    MODULE,
    Meeting,
    beside,
    can_be_told,
    is_fetched,
    meetings,
    mere,
    takes_device,
    told_by_caller,
)
from devlint.sites.base import Operand, Step
from devlint.sites.placement import Forward, Hint, HintKind, Operation, OperationKind
from devlint.source.file_kinds import is_for_export
from devlint.source.syntax import walk
from devlint.source.tree import Source

_INDEX_STAYS = (1, 13)
"""Before it, torch copied an index to what it reads from."""
_TOLD = frozenset({HintKind.PARTED, HintKind.HALF, HintKind.UNPLACED, HintKind.UNMOVED})
"""The kinds of hints that this rule tells."""
_PRIMARY = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


class DeviceMismatch(Rule):
    """Tensors on different devices meet in one operation.

    ## What it does
    Follows every tensor and module to where it is used, and reports a module call, an operation, a loss, an index
    or an assignment whose operands are certainly on different devices: on the CPU and on `device`, or on two
    accelerators. A `torch.Generator` is an operand, too: random numbers are drawn on its device alone. What a function
    of another file makes on the CPU and brings together with its argument is told of where it is called. Where of two
    parts of a batch one branch moves only the one and another only the other, it is a warning. Those who select the
    rule are told more: of operands that are on the CPU on some paths only, and as hints of a tensor that is moved on
    one path and not on the other, of an input that nobody moves although the model and its other inputs are, and of a
    network of another package that nobody moves although its inputs are.

    ## Why it matters
    PyTorch does not move operands by itself. On a machine with an accelerator the line raises "Expected all tensors
    to be on the same device"; on a machine without one it works, so tests there never see it.

    ## Example
    ```python
    def predict(device):
        model = nn.Linear(8, 2).to(device)
        return model(torch.randn(4, 8))
    ```

    ## Use instead
    ```python
    def predict(device):
        model = nn.Linear(8, 2).to(device)
        return model(torch.randn(4, 8, device=device))
    ```

    ## When it stays silent
    - The CPU tensor is 0-dim (`x * torch.tensor(2.0)`; but not as a bound of `torch.clamp`), or its dimensions are not
      known.
    - The operation takes a CPU tensor: an index into a tensor elsewhere, `copy_`, assignment to a slice,
      `expand_as`; or it copies, as a write does with its index, wherever that is, and a read with an index elsewhere
      where the project allows only torch before 1.13.
    - The module moves its inputs itself: `DataParallel`, DDP with `device_ids`, accelerate, `device_map`.
    - Either device is not known, or is known on some paths only.
    - It is the device of an object that was made without naming one, and whose class chooses none.
    - Items of the list were exchanged afterwards for others elsewhere, as in `kept[-1] = kept[-1].cpu()`.
    - In a file that exports models, by its name, one of the devices is the module's or an argument's: who selects the
      rule is told.
    - In a test, whoever calls it decides on one of the devices, as a fixture does: who selects the rule is told.
    - A function that places nothing combines its argument with a tensor that was put on the CPU on purpose.
    - DVL103 or DVL104 tells the same defect at the place where the tensor comes from.
    - The program hides all GPUs from itself, by an empty `CUDA_VISIBLE_DEVICES`: who selects the rule is told.
    - A notebook keeps the error that it raised: what is there to be shown is for those who select the rule.

    ## Fix safety
    Moving the operand on the CPU to where the other one is, or creating it there, is unsafe: that it is the one in
    the wrong place is very probable and no more, and random numbers are others there. All operands of an expression
    that strayed are moved together. There is no fix where the expression is a module or a list, and none where the
    copy would be made anew in every round of a loop.

    ## References
    - [CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    """

    code = "DVL101"
    raising = True
    hints = False
    severity = Severity.ERROR
    fixes = (Applicability.UNSAFE,)
    observed = True
    proof = proof.Traces(confirm=(proof.MISMATCH,), contradict=(proof.RAN,))

    def judge(self, site: Forward | Operation | Hint) -> Reports:
        """One report for the place, about the first operand that is somewhere else."""
        if isinstance(site, Operation) and site.kind is OperationKind.INDEX and not self.may_be(_INDEX_STAYS):
            return
        found = meetings(site)
        if isinstance(site, Hint):
            if site.kind in _TOLD:
                yield from (_hint(self.source, meeting, site) for meeting in found)
            return
        if isinstance(site, Operation) and site.kind is OperationKind.BROUGHT:
            samples = on_samples(self.source, site.scope)
            yield from (_brought(meeting, site, samples) for meeting in found)
            return
        mismatches = [meeting for meeting in found if meeting.creation is None]
        for meeting in mismatches[:1]:
            stray, other = meeting.stray, meeting.other
            maybe = "can be" if len({leaf.kind for leaf in stray.device.leaves()}) > 1 else "is"
            place = stray.device if stray.device.kind is Kind.ACCELERATOR else "the CPU"
            target = beside(other, self.source, site) if site.measured is None and len(found) == len(mismatches) else ""
            help_ = _help(self.source, meeting, site)
            target = "" if is_fetched(stray) else target
            if _decides(self.source, site.node):
                target, help_ = "", "compare them as a whole, both on one device: `torch.equal(...)`"
            yield Report(
                f"{_named(stray, site)} {maybe} on {place} but {_whereabouts(other, site)}; {_consequence(other)}",
                label=_label(site),
                severity=meeting.severity,
                steps=meeting.steps,
                help=help_,
                # whether a call comes by the one path and then by the other, its caller knows; exports run on the host
                asked=meeting.partly
                or (mere(other.device) and is_for_export(self.source.filename))
                or (in_test(self.source, site.scope) and told_by_caller(other.device, self.source, site.node)),
                fix=_fix(self, site, mismatches, as_written(self.source, target)) if target else None,
                implied=stray.device.kind is Kind.CPU and stray.device.implied,
                assumed=mere(other.device),
            )


def _brought(meeting: Meeting, site: Operation, samples: bool) -> Report:
    """A function of another file makes a tensor on the CPU, and this call gives it one that is elsewhere.

    What a caller keeps is on the host while it is one of the ``samples``.
    """
    stray, other = meeting.stray, meeting.other
    message = f"`{stray.factory}` in `{site.operator}` creates on the CPU, but {_whereabouts(other, site)}"
    label, told = (
        f"`{site.operator}` brings them together",
        f"create it in `{site.operator}` on the device of the argument",
    )
    asked = samples and other.device.role is Role.INPUT
    return Report(
        f"{message}; {_consequence(other)}",
        label,
        meeting.severity,
        meeting.steps,
        told,
        asked=asked,
        implied=True,
        assumed=mere(other.device),
    )


def _hint(source: Source, meeting: Meeting, site: Hint) -> Report:
    """Of two parts each branch moves one; or, for those who ask, what is moved elsewhere is not moved here."""
    stray, other = meeting.stray, meeting.other
    left, gone, steps = shown(stray.text), shown(other.text), meeting.steps
    target = beside(other, source, site) or "device"
    if site.kind is HintKind.PARTED:
        message = f"this branch moves {gone} and leaves {left}, another one moves {left} and leaves {gone}; "
        message += "used together, they are on different devices"
        label, told, steps = f"{left} stays where it is", "move both in every branch", ()
    elif site.kind is HintKind.HALF:
        message = f"`{other.text}` is moved to {other.device} on one path, on the other it is {left}, as it is"
        label, told = "converts it, and leaves it where it is", f"on both paths: `.to({target}, ...)`"
        told = f"move it where it is converted, {told}"
        steps = (Step(other.node, "moved here"), Step(stray.node, "not moved here"))
    elif site.kind is HintKind.UNMOVED:
        message = f"{gone} is on {other.device}, and nothing here puts {left} there"
        label, told = f"runs {left} where it was made", f"move it where it is made: `.to({target})`"
    else:
        message = f"{gone} is on {other.device}, and nothing here puts {left} there"
        label, told = f"gets {left} as it was made", f"`{in_brackets(stray.text)}.to({target})`"
        told = f"move it as the other inputs are: {told}"
    asked = site.kind is not HintKind.PARTED
    return Report(message, label, meeting.severity, steps, told, asked=asked)


def _named(operand: Operand, site: Forward | Operation) -> str:
    """What an operand is called: random numbers, of which nothing but the call speaks, by their function."""
    if isinstance(site, Operation) and site.kind is OperationKind.GENERATOR and operand.node is site.node:
        return f"what `{site.operator}` makes"
    return shown(operand.text)


def _whereabouts(operand: Operand, site: Forward | Operation) -> str:
    device, name = operand.device, _named(operand, site)
    if device.kind is Kind.SYMBOL and device.role is Role.INPUT:
        return f"{name} is where the caller keeps `{device.text}`"
    if device.switched and not device.text:
        # what is switched to may be a symbol, of which nothing more is known
        device = next((leaf for leaf in device.leaves() if leaf.kind is Kind.ACCELERATOR), device)
    return f"{name} is on {device}"


def _consequence(operand: Operand) -> str:
    if operand.device.accelerates():
        return "this raises"
    if operand.device.switched:
        return "this raises on a machine with an accelerator"
    return "this raises when that is an accelerator"


def _label(site: Forward | Operation) -> str:
    if isinstance(site, Forward):
        return f"{shown(site.module)} and its input are on different devices"
    if site.kind in (OperationKind.OPERANDS, OperationKind.ASSIGNMENT, OperationKind.INDEX):
        return f"`{site.operator}` needs its operands on one device"
    if site.kind is OperationKind.LOSS_TARGET:
        return f"`{site.operator}` needs its input, target and weight on one device"
    return f"`{site.operator}` needs its {site.kind.value} on the same device"


def _help(source: Source, meeting: Meeting, site: Forward | Operation) -> str:
    stray, target = meeting.stray, beside(meeting.other, source, site)
    if is_fetched(stray):
        return f"it was copied to the host: copy {shown(meeting.other.text)} there, too, `.cpu()`, or neither"
    if site.measured is not None:
        # an audit knows which device it was, the code should not name it
        target = device_at_hand(source, site.node, site.scope)
    if not target or (site.measured is not None and stray.role == MODULE):
        return f"put {shown(stray.text)} on the device of {shown(meeting.other.text)} first"
    if stray.role == GENERATOR:
        moved = "draw on the CPU, and move the numbers"
        return moved if mere(meeting.other.device) else f"make it there, `torch.Generator({target})`, or {moved}"
    literal = meeting.other.device.kind is Kind.ACCELERATOR and not meeting.other.device.observed
    if takes_device(stray.factory) and stray.role != MODULE and not literal:
        return f"create it there: `{stray.factory}(..., device={target})`"
    named = stray.text.replace(".", "").isidentifier()
    return f"move it first: `{stray.text}.to({target})`" if named else f"move it first, with `.to({target})`"


def _decides(source: Source, node: ast.AST) -> bool:
    """Whether it hangs on a comparison what is done: moved or not, a tensor of many truth values is no answer."""
    outer = way_to(source, node)[-1:]
    return isinstance(node, ast.Compare) and any(isinstance(parent, (ast.Assert, ast.If)) for parent, _ in outer)


def _fix(rule: Rule, site: Forward | Operation, strays: Sequence[Meeting], target: str) -> Fix | None:
    """Move all operands that strayed at once, or none of them."""
    operands = site.inputs if isinstance(site, Forward) else site.operands
    nodes = [operand.node for operand in operands]
    edits: list[Edit | None] = []
    for meeting in strays:
        stray = meeting.stray
        apart = nodes.count(stray.node) == 1 and stray.role != MODULE
        if not apart or not _movable(site, stray) or not _surely_there(rule, site, stray, target):
            return None
        edits.append(_moved(rule, stray, target))
    return fix_of(f"Move it to `{target}`", *dict.fromkeys(edits))


def _movable(site: Forward | Operation, stray: Operand) -> bool:
    """Whether the operand's own expression can be replaced by a moved one."""
    node, operation = stray.node, site if isinstance(site, Operation) else None
    if stray.device.kind is not Kind.CPU or not stray.device.implied or not isinstance(node, ast.expr):
        # on the CPU on some paths, or on purpose
        return False
    if isinstance(node, (ast.Starred, ast.List, ast.Tuple)) or stray.role == LISTED:
        return False
    if isinstance(getattr(node, "ctx", None), ast.Store) or (isinstance(site.node, ast.AugAssign | ast.Subscript)):
        return False
    # a generator draws where it was made, and a method that writes into its tensor has to be that tensor's
    in_place = operation is not None and stray.role == "self" and operation.operator.endswith("_()")
    return not in_place and (operation is None or operation.kind is not OperationKind.GENERATOR)


def _surely_there(rule: Rule, site: Forward | Operation, stray: Operand, target: str) -> bool:
    """Whether the device has its name at the place, and the operand is another one in each round of a loop."""
    function = function_at(rule.source, site.node)
    if function is None or not stray.story:
        return False
    born = stray.story[0].node
    loop = site.scope.loop
    again = not isinstance(loop, ast.stmt) or loop.lineno <= getattr(born, "lineno", 0) <= (loop.end_lineno or 0)
    return again and stands_at(rule.source, target, site.node) and function_at(rule.source, born) is function


def _moved(rule: Rule, stray: Operand, target: str) -> Edit | None:
    """The operand, created there if it is created for this place alone, else moved."""
    node, born = stray.node, stray.factory_node
    if isinstance(born, ast.Call) and (born is node or _only_use(rule, born, node)):
        stands = can_be_told(stray.factory, born) and stands_at(rule.source, target, born)
        return with_arguments(rule.source, born, device=target) if stands else None
    text = rule.source.segment(node)
    moved = text if isinstance(node, _PRIMARY) else f"({text})"
    return rule.replace(node, f"{moved}.to({target})")


def _only_use(rule: Rule, born: ast.Call, node: ast.AST) -> bool:
    """Whether what was created under a name is read nowhere else."""
    function = function_at(rule.source, node)
    while isinstance(node, ast.Subscript):
        node = node.value
    if function is None or not isinstance(node, ast.Name):
        return False
    inside = walk(function)
    assigned = (part for part in inside if isinstance(part, ast.Assign) and _chained(part.value, born))
    named = targets_of(next(assigned, None)) == [node.id]
    return named and sum(isinstance(part, ast.Name) and part.id == node.id for part in inside) == 2


def _chained(node: ast.expr, born: ast.Call) -> bool:
    """Whether an expression is computed from the creation alone, by functions and methods."""
    while node is not born:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        function = isinstance(node.func.value, ast.Name) and bool(node.args)
        node = node.args[0] if function else node.func.value
    return True
