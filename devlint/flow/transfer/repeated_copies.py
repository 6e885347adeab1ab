"""Copies that are made again and again of what does not change: by each round of a loop, or by each call."""

from __future__ import annotations

import ast
from collections import Counter

from devlint.device import Device, Kind, Role
from devlint.flow.catalog.creation import FROM_VALUES
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.values import Const, Sequence, Tensor, Value
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer import loop_invariance
from devlint.sites.base import Creation, Operand, Scope, Step


def invariant(
    frame: Frame, scope: Scope, move: ast.Call, value: Operand, target: ast.AST | None, made: Creation | None
) -> bool:
    """Whether every step, or every round in a module's code, copies the same tensor of the CPU to the same device."""
    known = value.certain and value.device.kind is Kind.CPU and not frame.interpreter.muted
    receiver = value.node
    if not isinstance(receiver, ast.expr) or not known or scope.sometimes or not (scope.step or scope.module):
        return False
    if made is None or made.function not in FROM_VALUES or not _inside(made.node, receiver):
        return loop_invariance.invariant(frame, receiver, target)
    fixed = target is None or loop_invariance.unchanged(frame, target)
    return fixed and not made.generator and same_values(frame, made.node) and left_alone(frame, move)


def every_call(frame: Frame, move: ast.Call, receiver: ast.expr, tensor: Tensor, target: Device | None) -> Step | None:
    """Where ``__init__`` keeps on the CPU what each call of this method copies to the device of its arguments."""
    owner, info = frame.owner, frame.info
    if tensor.kept is None or owner is None or info is None or owner.is_module or info.initialises or frame.inlined:
        return None
    own = isinstance(receiver, ast.Attribute) and names.dotted(receiver.value) == "self"
    if not own or not isinstance(receiver, ast.Attribute) or target is None or target.accelerates() is False:
        return None
    known = owner.linearization()
    if any(receiver.attr in cls.stored for cls in known) or any("cache" in name for name in info.decorators):
        return None
    asked = any(leaf.role is Role.INPUT for leaf in target.leaves()) and target.known
    return tensor.kept if asked and not _stored_away(info.nodes, move) else None


def _stored_away(inside: list[ast.AST], move: ast.Call) -> bool:
    """Whether the result is kept in an attribute or a container, where the next call may find it."""
    statements = (node for node in inside if isinstance(node, ast.Assign) and node.value is move)
    return any(not isinstance(target, ast.Name) for statement in statements for target in statement.targets)


def _begins_with(node: ast.expr, call: ast.Call) -> bool:
    """Whether an expression is ``call``, or a chain of methods that begins with it."""
    while node is not call and isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node is call


def _inside(node: ast.AST, outer: ast.AST) -> bool:
    return any(inner is node for inner in nodes.walk(outer))


def same_values(frame: Frame, call: ast.Call) -> bool:
    """Whether a creation reads literals alone, and wants no gradient."""
    if any(keyword.arg in ("requires_grad", "out", None) for keyword in call.keywords):
        return False
    data = call.args[:1] or [keyword.value for keyword in call.keywords if keyword.arg == "data"]
    return bool(data) and all(_is_literal(frame, part) for part in data)


def _is_literal(frame: Frame, node: ast.expr) -> bool:
    if isinstance(node, (ast.List, ast.Tuple)):
        return all(_is_literal(frame, element) for element in node.elts)
    if isinstance(node, ast.UnaryOp):
        return _is_literal(frame, node.operand)
    if isinstance(node, ast.Name):
        return loop_invariance.unchanged(frame, node) and _is_constant(frame.lookup(node.id))
    return isinstance(node, ast.Constant)


def _is_constant(value: Value | None) -> bool:
    if isinstance(value, Sequence):
        return value.items is not None and all(_is_constant(item) for item in value.items)
    return isinstance(value, Const)


def left_alone(frame: Frame, call: ast.Call) -> bool:
    """Whether the loop neither changes the result nor binds its name to anything else."""
    loop = frame.loops[-1].node if frame.loops else None
    if loop is None:
        return False
    bound = [
        names.dotted(target)
        for node in frame.interpreter.loop_text(loop).inside
        if isinstance(node, ast.Assign) and _begins_with(node.value, call)
        for target in node.targets
    ]
    changes = Counter(frame.interpreter.loop_text(loop).assigned)
    return all(bound) and all(changes[name] <= 1 for name in bound)
