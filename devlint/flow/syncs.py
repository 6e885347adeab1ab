"""Places where the host reads what the device has computed, and so waits for it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.flow import nodes
from devlint.flow.values import Batches, Opaque, Tensor, Value
from devlint.sites import Sync

if TYPE_CHECKING:
    from devlint.flow.frame import Call, Frame

_READERS = frozenset({"item", "tolist"})
"""Methods of a tensor that return numbers."""


def note(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
    """A method call: a site where it returns numbers, and its receiver may well be on a device."""
    if node.attr not in _READERS or not frame.loops:
        return
    loop = next((loop.node for loop in reversed(frame.loops) if loop.step and not loop.encloses), None)
    if loop is None or not _may_wait(receiver, node.value, loop):
        return
    region = "train" if any(_is_backward(inner) for inner in nodes.walk(loop)) else ""
    frame.emit(Sync(call.node, frame.scope(), node.attr, frame.operand(node.value, receiver), region))


def _may_wait(receiver: Value, node: ast.expr, loop: ast.AST) -> bool:
    """Whether the receiver is a tensor that is not known to be on the CPU; a loss is one by its ``backward()``."""
    if isinstance(receiver, (Tensor, Batches)):
        return receiver.device.accelerates() is not False
    if isinstance(receiver, Opaque) and receiver.hint == "tensor":
        return True
    name = node.id if isinstance(node, ast.Name) else ""
    return bool(name) and any(_is_backward(inner, name) for inner in nodes.walk(loop))


def _is_backward(node: ast.AST, name: str = "") -> bool:
    """Whether a node is ``name.backward``, of whatever name where none is given."""
    if not isinstance(node, ast.Attribute) or node.attr != "backward":
        return False
    return not name or (isinstance(node.value, ast.Name) and node.value.id == name)
