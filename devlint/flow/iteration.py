"""Iteration: what one round of a loop, or one place of an unpacking, gets."""

from __future__ import annotations

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


def part_of(value: Value, position: int) -> Value:
    """What the name at ``position`` gets when ``value`` is unpacked."""
    if isinstance(value, Opaque) and value.hint != "tensor" and value.role is Role.INPUT:
        return replace(value, key=f"{value.key}[{position}]", text=f"{value.text}[{position}]")
    if isinstance(value, (Batches, Tensor, Sequence, Opaque)):
        return iterate(value)
    return UNKNOWN
