"""What mends a mismatch: what strayed is moved where it is used, or created where it is needed; the advice to do so."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from devlint.device import Kind, Role
from devlint.finding import Edit, Fix
from devlint.flow.catalog import distributions
from devlint.rules.base import Rule
from devlint.rules.code.blocks import function_at
from devlint.rules.code.control_flow import stands_at
from devlint.rules.code.edits import fix_of, with_device
from devlint.rules.placement.operands.meetings import MODULE, Meeting, shown
from devlint.sites.base import Operand
from devlint.sites.placement import Forward, Operation, OperationKind

_PRIMARY = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
_WITHOUT_DEVICE = frozenset({"from_numpy", "frombuffer", "from_file", "from_dlpack", "load"})
"""How the names begin of what draws where its parameters are."""
_SAYS_WHERE = frozenset({"device", "generator", "out", "pin_memory", None})


def fix(rule: Rule, site: Forward | Operation, strays: Sequence[Meeting], target: str) -> Fix | None:
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
    if isinstance(node, (ast.Starred, ast.List, ast.Tuple)) or stray.role == "tensors":
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
    node = stray.node
    born = stray.factory_node
    if isinstance(born, ast.Call) and (born is node or _only_use(rule, born, node)):
        tied = any(keyword.arg in _SAYS_WHERE for keyword in born.keywords) or not takes_device(stray.factory)
        stands = not tied and stands_at(rule.source, target, born)
        return with_device(rule.source, born, target) if stands else None
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
    assigned = [part for part in ast.walk(function) if isinstance(part, ast.Assign) and _chained(part.value, born)]
    targets = assigned[0].targets if assigned else []
    if len(targets) != 1 or not isinstance(targets[0], ast.Name) or targets[0].id != node.id:
        return False
    return sum(isinstance(part, ast.Name) and part.id == node.id for part in ast.walk(function)) == 2


def _chained(node: ast.expr, born: ast.Call) -> bool:
    """Whether an expression is computed from the creation alone, by functions and methods."""
    while node is not born:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        function = isinstance(node.func.value, ast.Name) and bool(node.args)
        node = node.args[0] if function else node.func.value
    return True


def takes_device(factory: str) -> bool:
    """Whether the torch function has a ``device=``, as constructors by type and readers of host memory have not."""
    name = factory.rpartition(".")[2]
    return name.islower() and name not in _WITHOUT_DEVICE and not factory.startswith(distributions.ROOT)


def placeable(meeting: Meeting) -> bool:
    """Whether ``device=`` can be added to the creation: nothing else in the call says where it creates."""
    return meeting.stray.role != MODULE and can_be_told(meeting.stray.factory, meeting.creation)


def can_be_told(factory: str, node: ast.AST | None) -> bool:
    """Whether ``device=`` can be added to a call of a torch function."""
    keywords = node.keywords if isinstance(node, ast.Call) else []
    tied = any(keyword.arg in _SAYS_WHERE - {"pin_memory"} for keyword in keywords)
    return not tied and takes_device(factory)


def advice(meeting: Meeting, target: str) -> str:
    """What to do about the creation; ``target`` is the device expression to use, empty where none is at hand."""
    if not target and meeting.other.device.role is Role.PLACE:
        # what is there may have a name in another function only, and the module has one everywhere
        return "create it on the module's device, such as `next(self.parameters()).device`"
    if not target:
        return f"create it on the device of {shown(meeting.other.text)}, handed over as an argument if need be"
    if placeable(meeting):
        return f"create it there: `{meeting.stray.factory}(..., device={target})`"
    return f"move it there: `.to({target})`"
