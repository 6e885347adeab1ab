"""Tensors that are copied to the host from one kind of accelerator alone, as if there were no others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint import device
from devlint.flow.catalog.methods import FETCHES
from devlint.flow.syntax import names

_KINDS = ("is_cuda", "is_mps", "is_xpu", "is_hpu")
WORDS = (*_KINDS, ".device.type ==", " in str(")
"""What a file says that has such a test."""
_TYPES = ("'cuda'", "'gpu'", "'mps'", "'xpu'")


def for_one_kind(inside: list[ast.AST], read: ast.Attribute) -> ast.expr | None:
    """The test under which ``read``, a ``x.numpy``, gets a tensor of the host: whether ``x`` is on CUDA, or on MPS.

    ``None`` where there is no such test, or where something copies the tensor in any case.
    """
    name = _root(read.value)
    if not name or _fetched(read.value):
        return None
    steps = [node for node in inside if isinstance(node, (ast.If, ast.Assign, ast.IfExp)) and _before(node, read)]
    asked = [node for node in steps if not isinstance(node, ast.Assign) and asks_for_one(node.test, name)]
    guarded = {part for node in asked if isinstance(node, ast.If) for part in node.body}
    for node in sorted(steps, key=lambda step: (step.lineno, step.col_offset), reverse=True) if asked else ():
        if isinstance(node, ast.Assign):
            if node not in guarded and any(names.dotted(target) == name for target in node.targets):
                either = isinstance(node.value, ast.IfExp) and asks_for_one(node.value.test, name)
                if isinstance(node.value, ast.IfExp) and either:
                    fetched = _fetched(node.value.body) and not _fetched(node.value.orelse)
                    return node.value.test if fetched else None
                if _root(node.value) != name or _fetched(node.value):
                    return None
        elif node in asked and isinstance(node, ast.If):
            return node.test if not node.orelse and _lets_through(node.body, name) else None
        elif isinstance(node, ast.IfExp) and node in asked and _within(node.orelse, read):
            return node.test
    return None


def asks_for_one(test: ast.expr, name: str) -> bool:
    """Whether a test asks whether what is under a name is on one kind of accelerator."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(asks_for_one(part, name) for part in test.values)
    if isinstance(test, ast.Attribute) and test.attr in _KINDS:
        return names.dotted(test.value) == name
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sides = [names.code(part) for part in (test.left, test.comparators[0])]
    if isinstance(test.ops[0], ast.Eq):
        return f"{name}.device.type" in sides and any(kind in sides for kind in _TYPES)
    return isinstance(test.ops[0], ast.In) and sides[0] in _TYPES and sides[1] == f"str({name}.device)"


def _lets_through(body: list[ast.stmt], name: str) -> bool:
    """Whether a branch copies what is under a name to the host, or ends with such a copy."""
    last = body[-1]
    if isinstance(last, ast.Return):
        return last.value is not None and _root(last.value) == name and _fetched(last.value)
    if not isinstance(last, ast.Assign) or len(body) > 1:
        return False
    return names.dotted(last.targets[0]) == name == _root(last.value) and _fetched(last.value)


def _chain(node: ast.expr) -> Iterator[ast.expr]:
    """A value and what it is computed from by methods and parts: ``x.detach()[0]``, ``x.detach()``, ``x``."""
    while True:
        yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return


def _root(node: ast.expr) -> str:
    return names.dotted(list(_chain(node))[-1])


def _fetched(node: ast.expr) -> bool:
    """Whether a chain of methods copies to the host."""
    calls = (part for part in _chain(node) if isinstance(part, ast.Call))
    methods = ((call.func.attr, call) for call in calls if isinstance(call.func, ast.Attribute))
    return any(name in FETCHES or (name == "to" and "'cpu'" in names.code(call)) for name, call in methods)


def _before(node: ast.stmt | ast.expr, read: ast.expr) -> bool:
    """Whether a statement is over where ``read`` stands, or an expression has it in it."""
    if isinstance(node, ast.IfExp) and _within(node, read):
        return True
    return (node.end_lineno or 0, node.end_col_offset or 0) <= (read.lineno, read.col_offset)


def _within(node: ast.expr, read: ast.expr) -> bool:
    begin, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return begin <= (read.lineno, read.col_offset) and (read.end_lineno or 0, read.end_col_offset or 0) <= end


def asks_for_array(test: ast.expr) -> bool:
    """Whether a condition tells arrays of NumPy from tensors."""
    if not isinstance(test, ast.Call) or names.dotted(test.func) != "isinstance" or len(test.args) != 2:
        return False
    return names.dotted(test.args[1]).endswith("ndarray")


def is_prefix(node: ast.expr) -> bool:
    """Whether the text before a number names a kind of accelerator: ``cuda:``."""
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.rstrip(":") in device.ACCELERATOR_TYPES
    )


def is_type_test(function: ast.expr) -> bool:
    """Whether a call of ``function`` compares types."""
    return isinstance(function, ast.Name) and function.id in ("isinstance", "issubclass")


def takes_types(call: ast.Call) -> bool:
    """Whether a call compares types, or converts to one."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in ("type", "set_default_tensor_type")
    return is_type_test(call.func)
