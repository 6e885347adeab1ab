"""Gradients that are given to a backward pass: each has to be where the tensor is of which it is one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import MODELS
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import UNKNOWN, Opaque, Sequence, Value
from devlint.flow.transfer.placement import blend, is_tensor, meet
from devlint.sites.placement import OperationKind


def handed(frame: Frame, call: Call, name: str, tensors: tuple[ast.AST, Value], position: int, keyword: str) -> None:
    """The gradients in an argument of ``call`` meet the tensors of which they are."""
    node, given = call.argument_node(position, keyword), call.argument(position, keyword)
    if node is None or given is None:
        return
    for tensor, gradient in zip(_each(*tensors), _each(node, given), strict=False):
        if all(isinstance(value, (Tensor, Opaque)) for _, value in (tensor, gradient)):
            meet(frame, call.node, name, OperationKind.OPERANDS, [(*tensor, ""), (*gradient, "")])


def _each(node: ast.AST, value: Value) -> Iterator[tuple[ast.AST, Value]]:
    """One tensor, or each of those in a display."""
    if not isinstance(value, Sequence):
        yield node, value
    elif isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(part, ast.Starred) for part in node.elts):
        yield from zip(node.elts, value.items or (), strict=False)


def _gradients(frame: Frame, call: Call, path: str) -> Value:
    """A tuple with a gradient for each input, where that is."""
    node, outputs = call.argument_node(0, "outputs"), call.argument(0, "outputs")
    if node is not None and outputs is not None:
        handed(frame, call, path, (node, outputs), 2, "grad_outputs")
    inputs = call.argument(1, "inputs")
    several = inputs.items if isinstance(inputs, Sequence) else (inputs or UNKNOWN,)
    if not several or "allow_unused" in call.keywords or "materialize_grads" in call.keywords:
        return UNKNOWN  # which of them there are is not known
    return Sequence(tuple(blend(value) if is_tensor(value) else UNKNOWN for value in several), UNKNOWN)


def _variable(frame: Frame, call: Call, path: str) -> Value:
    return call.first


MODELS.register({"torch.autograd.grad": _gradients, "torch.autograd.Variable": _variable})
