"""Gradients that are given to a backward pass: each has to be where the tensor is of which it is one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.values import Opaque, Sequence, Tensor, Value
from devlint.flow.transfer.placement import meet


def handed(frame: Frame, call: Call, name: str, tensors: tuple[ast.AST, Value], position: int, keyword: str) -> None:
    """The gradients in an argument of ``call`` meet the tensors of which they are."""
    node, given = call.argument_node(position, keyword), call.argument(position, keyword)
    if node is None or given is None:
        return
    for tensor, gradient in zip(_each(*tensors), _each(node, given), strict=False):
        if all(isinstance(value, (Tensor, Opaque)) for _, value in (tensor, gradient)):
            meet(frame, call.node, name, "operands", [(*tensor, ""), (*gradient, "")])


def _each(node: ast.AST, value: Value) -> Iterator[tuple[ast.AST, Value]]:
    """One tensor, or each of those in a display."""
    if not isinstance(value, Sequence):
        yield node, value
    elif isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(part, ast.Starred) for part in node.elts):
        yield from zip(node.elts, value.items or (), strict=False)
