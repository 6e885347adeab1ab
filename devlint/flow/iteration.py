"""Iteration: what one round of a loop, or one place of an unpacking, gets."""

from __future__ import annotations

import ast
from dataclasses import replace

from devlint.device import Role
from devlint.flow.indexing import ROUND, item, member, part
from devlint.flow.values import UNKNOWN, Batches, Const, Loader, Module, Opaque, Sequence, Tensor, Value, as_tensor

ELEMENT = Const("no elements")
"""What iterating something empty yields."""


def iterate(value: Value) -> Value:
    """What one round of ``for x in value`` binds."""
    if isinstance(value, Loader):
        return Batches(value.oids, value.batches, value.certain)
    if isinstance(value, Batches):
        return replace(value, part=True)
    if isinstance(value, Module):
        return member(value)
    if isinstance(value, Sequence):
        if value.items is not None and len(value.items) == 0 and not value.mutable:
            return ELEMENT
        return value.item
    if isinstance(value, Tensor):
        return item(value)
    if isinstance(value, Opaque) and value.hint == "tensor":
        return item(as_tensor(value))
    if isinstance(value, Opaque) and value.hint == "tensors":
        return replace(value, key=f"{value.key}{ROUND}", text=f"an item of {value.text}", hint="tensor")
    if isinstance(value, Opaque) and value.role is Role.INPUT:
        return replace(value, key=f"{value.key}{ROUND}", text=f"an item of {value.text}")
    return part(value, "") if isinstance(value, Opaque) else UNKNOWN


def runs_once(node: ast.expr, value: Value) -> bool:
    """Whether a loop over something surely has one round."""
    if isinstance(value, Sequence) and value.items is not None and len(value.items) == 1:
        return not value.mutable or isinstance(node, (ast.List, ast.Tuple))
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
    last = node.args[0] if called and isinstance(node, ast.Call) and len(node.args) == 1 else None
    return isinstance(last, ast.Constant) and last.value == 1


def part_of(value: Value, position: int) -> Value:
    """What the name at ``position`` gets when ``value`` is unpacked."""
    if isinstance(value, Opaque) and value.hint != "tensor" and value.role is Role.INPUT:
        return replace(value, key=f"{value.key}[{position}]", text=f"{value.text}[{position}]")
    if isinstance(value, (Batches, Tensor, Sequence, Opaque)):
        return iterate(value)
    return UNKNOWN
