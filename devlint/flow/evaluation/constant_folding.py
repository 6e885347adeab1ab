"""Constant folding: numbers that the code reckons with as they stand there, such as ``1.0 / 0.01``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from devlint.flow.domain.values import Const, Value

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_LARGEST = 1_000
"""A power of more than this is not computed."""


def of_literals(node: ast.BinOp, left: Value, right: Value) -> Const | None:
    """The result of an operator on two numbers; ``None`` of what has a name, which may be another in the next round."""
    if not isinstance(left, Const) or not isinstance(right, Const) or not (_stands(node.left) and _stands(node.right)):
        return None
    one, two, compute = left.value, right.value, _OPERATORS.get(type(node.op))
    if not isinstance(one, int | float) or not isinstance(two, int | float) or compute is None:
        return None
    if isinstance(node.op, ast.Pow) and max(abs(one), abs(two)) > _LARGEST:
        return None
    try:
        result = compute(one, two)
    except ArithmeticError:
        return None
    return Const(result) if isinstance(result, int | float) else None


def _stands(node: ast.expr) -> bool:
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant | ast.BinOp)
