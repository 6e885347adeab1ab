"""Constructors by type around tensors, which raise for what is on an accelerator: `torch.FloatTensor(x > 0)`."""

from __future__ import annotations

import ast

from devlint.flow.catalog.creation import is_legacy
from devlint.rules.code.edits import in_brackets
from devlint.rules.placement.operands.meetings import Meeting


def in_constructor(meeting: Meeting, target: str) -> str:
    """What to write instead of a constructor by type around a tensor, empty where it gets nothing of that kind.

    It gets one if that is the tensor of ``target``, or compared with a number item by item, as no list can be.
    """
    made, name = meeting.creation, meeting.stray.factory.rpartition(".")[2]
    if not is_legacy(meeting.stray.factory) or not isinstance(made, ast.Call) or len(made.args) != 1 or made.keywords:
        return ""
    (argument,) = made.args
    known = target.endswith(".device") and _carries(argument, target.removesuffix(".device"))
    if not known and not isinstance(argument, ast.Compare):
        return ""
    text = ast.unparse(argument)
    if name == "BoolTensor" and isinstance(argument, ast.Compare):
        return text
    return f"{in_brackets(text)}.{name.removesuffix('Tensor').lower() or 'float'}()"


def _carries(node: ast.expr, tensor: str) -> bool:
    """Whether an expression is computed elementwise of a tensor, or a selection of it, and so is where that is."""
    if isinstance(node, ast.Compare):
        return any(_carries(part, tensor) for part in (node.left, *node.comparators))
    if isinstance(node, ast.BinOp):
        return _carries(node.left, tensor) or _carries(node.right, tensor)
    if isinstance(node, ast.UnaryOp):
        # but `not x` is a truth value of the host
        return not isinstance(node.op, ast.Not) and _carries(node.operand, tensor)
    if isinstance(node, ast.Subscript):
        return _carries(node.value, tensor)
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == tensor
