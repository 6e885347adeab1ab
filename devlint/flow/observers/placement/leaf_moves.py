"""Moves of tensors that collect gradients: what comes out of them is computed from the leaf, and no leaf itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.device import Device
from devlint.flow.catalog.concepts import DEFAULT_DTYPES, OPTIMIZERS, PARAMETER
from devlint.flow.catalog.methods import CONVERSIONS, OF_MODULES
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import Named, Value
from devlint.flow.syntax import names, nodes
from devlint.sites.base import Step
from devlint.sites.placement import LeafMove
from devlint.sites.transfers import Transfer

_LEAVES = frozenset({"parameter", "leaf"})
"""What ``Tensor.grad`` says of tensors that collect gradients."""
_STILL_MEANT = (OF_MODULES | CONVERSIONS | {"requires_grad_", "contiguous"}) - {"type"}
"""Methods after which the result is still meant to be what was moved."""
_HOLDERS = frozenset({"register_parameter", "append"})
"""Calls that take parameters."""
_KEEPERS = _HOLDERS | {"setattr"}
"""Calls after which somebody else may hold a parameter."""
_MAKERS = frozenset({"ParameterList", "ParameterDict"})
"""Containers that take any tensor, and make a new parameter of it."""
_MOVER = "the mover itself"
_PLACES = (ast.Attribute, ast.Subscript)


class LeafMoves(Observer):
    """Moves of leaves whose copies take their place."""

    def on_move(self, frame: Frame, transfer: Transfer, receiver: Value, call: Call) -> None:
        """A site where a leaf is moved and its copy takes its place."""
        node = call.node.func
        if not isinstance(receiver, Tensor) or receiver.grad not in _LEAVES or not isinstance(node, ast.Attribute):
            return
        if transfer.target is not None or not _to_default_type(call):
            _note(frame, call, node, receiver, transfer.target)


def _to_default_type(call: Call) -> bool:
    """Whether numbers are to get the type that those of most leaves have: such a tensor is returned as it is."""
    given = call.keywords.get("dtype") or call.argument(0, "device")
    return isinstance(given, Named) and given.path in DEFAULT_DTYPES


def _note(frame: Frame, call: Call, node: ast.Attribute, tensor: Tensor, target: Device | None) -> None:
    there = target is not None and target.same(tensor.device) is True
    if there or not tensor.certain:
        return
    made = _made_here(frame, node.value)
    use = _Use(frame, call.node)
    rebound = bool(use.target) and use.target in (names.dotted(node.value), made)
    if use.lost or not (rebound or made == _MOVER or (made and use.gradient)):
        return
    if (tensor.grad == "leaf" and not use.target) or (_is_frozen(frame, node.value) and not use.kept):
        return
    if _is_held(frame, node.value) and not (use.kept or use.gradient):
        return
    operand = frame.operand(node.value, tensor)
    frame.emit(
        LeafMove(
            call.node, scope_of(frame), node.attr, operand, target, use.gradient, "." in use.target, made != _MOVER
        )
    )


def _made_here(frame: Frame, node: ast.expr) -> str:
    """Whether the leaf comes into being in the expression itself: else its name, where it becomes one there."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        inner = node.func.value
        return names.dotted(inner) or (_MOVER if isinstance(inner, ast.Call) else "")
    asks = any(keyword.arg == "requires_grad" for keyword in node.keywords)
    return _MOVER if asks or frame.interpreter.index.resolve(names.dotted(node.func)) == PARAMETER else ""


def _is_frozen(frame: Frame, node: ast.expr) -> bool:
    """Whether a parameter is asked to collect no gradient, wherever the function makes it."""
    makers: list[ast.expr] = [node]
    if isinstance(node, ast.Name):
        assigned = [part for part in frame.inside if isinstance(part, ast.Assign)]
        makers = [part.value for part in assigned if node.id in map(names.dotted, part.targets)]
        makers = [maker for maker in makers if names.called(maker).rpartition(".")[0] != node.id]
    return bool(makers) and all(isinstance(maker, ast.Call) and _without_gradient(maker) for maker in makers)


def _is_held(frame: Frame, node: ast.expr) -> bool:
    """Whether a name is one beside an attribute or an item, which keeps the leaf when the name is given to a copy."""
    if not isinstance(node, ast.Name):
        return False
    for part in frame.inside:
        if isinstance(part, ast.Assign):
            named = any(isinstance(target, ast.Name) and target.id == node.id for target in part.targets)
            placed = any(isinstance(target, _PLACES) for target in part.targets)
            if named and (placed or isinstance(part.value, _PLACES)):
                return True
            if placed and isinstance(part.value, ast.Name) and part.value.id == node.id and part.lineno < node.lineno:
                return True
    return False


def _without_gradient(call: ast.Call) -> bool:
    asked = (keyword.value for keyword in call.keywords if keyword.arg == "requires_grad")
    return any(isinstance(value, ast.Constant) and value.value is False for value in asked)


class _Use:
    """What the function does with the result of a move.

    ``target`` is the name or attribute that it is given; ``gradient`` where the gradient of that name is wanted;
    ``lost`` says that nobody means it to be a leaf: it is detached, asked to keep its gradient, or only computed with;
    ``kept`` that something outside of the function may hold it as a parameter.
    """

    def __init__(self, frame: Frame, call: ast.Call) -> None:
        self.target = ""
        self.gradient: Step | None = None
        self.lost = False
        self.kept = False
        for node in frame.inside:
            if isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1:
                self.target = names.dotted(node.targets[0])
                self.lost = self.lost or _registers(node)
            elif isinstance(node, ast.AnnAssign) and node.value is call:
                self.target = names.dotted(node.target)
            elif isinstance(node, ast.Attribute) and node.value is call:
                self.lost = node.attr not in _STILL_MEANT
            elif isinstance(node, ast.Call) and call in node.args:
                self.lost = self.lost or _last(node.func) not in _HOLDERS
        self.lost = self.lost or _is_made_anew(frame, call)
        self.kept = "." in self.target or not self.target
        if self.target:
            self._follow(frame, call)

    def _follow(self, frame: Frame, call: ast.Call) -> None:
        for node in frame.inside:
            if isinstance(node, ast.AugAssign) and names.dotted(node.target) == self.target:
                # which torch refuses of a leaf
                self.lost = True
            elif isinstance(node, ast.Attribute) and names.dotted(node.value) == self.target:
                self.lost = self.lost or node.attr == "retain_grad"
                if node.attr == "grad" and isinstance(node.ctx, ast.Load):
                    self.gradient = self.gradient or Step(node, "its gradient is read here")
            elif isinstance(node, ast.Assign) and names.dotted(node.value) == self.target:
                self.lost = self.lost or _registers(node)
                later = node.lineno > call.lineno
                self.kept = self.kept or (later and not all(isinstance(target, ast.Name) for target in node.targets))
            elif isinstance(node, ast.Call) and any(self.target == name for name in _given(node)):
                path = frame.interpreter.index.resolve(names.dotted(node.func))
                self.kept = self.kept or _last(node.func) in _KEEPERS
                if path.startswith(OPTIMIZERS):
                    self.gradient = self.gradient or Step(node, "handed to an optimizer here")


def _is_made_anew(frame: Frame, call: ast.Call) -> bool:
    """Whether a container makes a parameter of the result: in its own call, or where it is appended."""
    makers = [node for node in frame.inside if isinstance(node, ast.Call) and _last(node.func) in _MAKERS]
    if not makers:
        return False
    named = {
        names.dotted(target)
        for node in frame.inside
        if isinstance(node, ast.Assign) and node.value in makers
        for target in node.targets
    }
    taking = [node for node in frame.inside if names.method(node) and names.called(node).rpartition(".")[0] in named]
    return any(part is call for node in (*makers, *taking) for part in ast.walk(node))


def _last(node: ast.expr) -> str:
    return names.dotted(node).rpartition(".")[2]


def _registers(statement: ast.Assign) -> bool:
    """Whether a statement registers a parameter by hand, in a module's own dict."""
    return any(
        isinstance(target, ast.Subscript) and names.dotted(target.value).endswith("_parameters")
        for target in statement.targets
    )


def _given(call: ast.Call) -> Iterator[str]:
    """The names among the arguments of a call, those in a list included."""
    for argument in nodes.given(call):
        parts = argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else [argument]
        for part in parts:
            yield names.dotted(part)
