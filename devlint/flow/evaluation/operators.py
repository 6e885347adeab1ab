"""Operators: what comes of two values on both sides of one."""

from __future__ import annotations

import ast

from devlint.device import PathTaken
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.join import join
from devlint.flow.domain.tensors import Batches, Tensor, as_tensor, surely_tensor
from devlint.flow.domain.values import UNKNOWN, Const, Opaque, Sequence, Unknown, Value
from devlint.flow.transfer import placement
from devlint.immutable import replace

_LONGEST_LIST = 256
"""Beyond so many items, a list that is put together is known by what any one of them is."""


def operate(
    frame: Frame,
    node: ast.AST,
    left_node: ast.expr,
    left: Value,
    right_node: ast.expr,
    right: Value,
    inplace: bool = False,
) -> Value:
    """The result of ``left <operator> right``."""
    if isinstance(left, Const) and isinstance(right, Const):
        return UNKNOWN
    # of two arguments only a run can say that they are in two places
    seen = frame.interpreter.observed is not None and surely_tensor(left) and surely_tensor(right)
    if not seen and not isinstance(left, (Tensor, Batches)) and not isinstance(right, (Tensor, Batches)):
        return _operate_other(left, right)
    operands = ((left_node, left, "left"), (right_node, right, "right"))
    return placement.elementwise(frame, node, placement.symbol(node), operands, inplace)


def _operate_other(left: Value, right: Value) -> Value:
    tensors = placement.reckoned_with(left, right)
    if tensors:
        return (
            replace(as_tensor(tensors[0]), many=None, certain=True)
            if len(tensors) == 1
            else placement.blend(left, right)
        )
    if isinstance(left, Sequence) and isinstance(right, Sequence):
        items = left.items + right.items if left.items is not None and right.items is not None else None
        if items is not None and len(items) > _LONGEST_LIST:
            items = None
        return Sequence(items, join(left.item, right.item, PathTaken("list", "either")), left.mutable)
    if isinstance(left, Sequence) and isinstance(right, (Const, Opaque, Unknown)):
        return Sequence(None, left.item, left.mutable)
    return UNKNOWN
