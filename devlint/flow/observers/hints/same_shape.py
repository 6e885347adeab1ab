"""A new tensor of the default device that was made in the shape of another, for no other reason than to meet it."""

from __future__ import annotations

import ast

from devlint.device import Kind
from devlint.flow.core.events import Meeting, Observer, Pair
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import Tensor, as_tensor
from devlint.flow.domain.values import Value
from devlint.flow.program.def_use import DESCRIPTIONS
from devlint.flow.syntax import names, nodes
from devlint.sites.placement import Hint, HintKind


class SameShape(Observer):
    """Tensors that meet in a module, one made in the shape of another of which it is not known where it is."""

    def on_meet(self, frame: Frame, node: ast.AST, operator: str, met: list[Meeting], apart: list[Pair]) -> None:
        """None of them is known to be elsewhere."""
        if apart or not frame.after_init:
            return
        for made, fresh, _, place in met:
            new = isinstance(fresh, Tensor) and fresh.many and fresh.origin.attribute is None
            call = as_tensor(fresh).origin.node if new else None
            if call is None or place.kind is not Kind.CPU or not place.implied:
                continue
            for where, other, _, elsewhere in met:
                if elsewhere.kind is Kind.UNKNOWN and is_tensor(other) and in_shape_of(call, where):
                    stray, beside = frame.operand(made, fresh), frame.operand(where, other)
                    frame.emit(Hint(node, scope_of(frame), HintKind.SHAPED, stray, beside))


def is_tensor(value: Value) -> bool:
    """Whether it is one, of which nobody says that it was made on the host."""
    return as_tensor(value).certain and not as_tensor(value).near.known


def in_shape_of(made: ast.AST, node: ast.AST) -> bool:
    """Whether a creation asks for the shape or the type of a tensor, or of what it is taken from."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
        node = node.value if isinstance(node, ast.Subscript) else node
        if isinstance(node, ast.Call):
            return False
    name = names.dotted(node) if isinstance(node, ast.expr) else ""
    return bool(name) and any(
        isinstance(inner, ast.Attribute) and inner.attr in DESCRIPTIONS and names.dotted(inner.value) == name
        for inner in nodes.walk(made)
    )
