"""Memory that has several names: views, arrays of NumPy, and what functions write into."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import Device
from devlint.flow.catalog.creation import SHARING
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.heap import DEVICE
from devlint.flow.domain.objects import Module
from devlint.flow.domain.tensors import Tensor, as_tensor
from devlint.flow.domain.values import Named, Sequence, Value
from devlint.flow.syntax import names, nodes
from devlint.flow.syntax.loops import LoopText
from devlint.immutable import replace

_VIEWS = frozenset(
    """view reshape unsqueeze squeeze transpose t permute expand narrow select flatten numpy detach diagonal chunk
    split unbind view_as swapaxes movedim ravel""".split()
)
_CONVERSIONS = frozenset("float double half bfloat16 int long short byte bool char".split())
"""Methods that return a tensor itself where it has the dtype already."""
_READING = ("torch.", "numpy.", "builtins.")
_BUILT_IN = frozenset(
    "print len range isinstance type float int str list tuple zip enumerate id repr sum max min".split()
)
"""Functions of Python that only read."""


def separate(result: Tensor, method: str = "") -> Tensor:
    """The result of an operation: a batch of a loader only where it may be the same memory."""
    name = method.rpartition(".")[2]
    kept = not result.batch or name in _VIEWS or name in _CONVERSIONS or name.endswith("_")
    return result if kept else replace(result, batch=())


def written(frame: Frame, receiver: ast.expr) -> bool:
    """Whether the innermost loop writes into a tensor by another name, or may in a function that it gives it to."""
    loop = frame.loops[-1].node if frame.loops else None
    if loop is None:
        return False
    rounds = frame.interpreter.loop_text(loop)
    shared = _shared(frame, names.dotted(receiver))
    if not shared.isdisjoint(rounds.written):
        return True
    return any(isinstance(node, ast.Call) and _writes(frame, node, shared) for node in rounds.inside)


def _shared(frame: Frame, name: str) -> set[str]:
    """The names that have the same memory, or a part of it."""
    links = [
        (names.dotted(target), base)
        for node in frame.inside
        if isinstance(node, ast.Assign)
        for target, value in nodes.assigned(node)
        if (base := _base(frame, value))
    ]
    found, grown = {name}, True
    while grown:
        new = {name for link in links if not found.isdisjoint(link) for name in link if name}
        grown = not new <= found
        found |= new
    return found


def _base(frame: Frame, node: ast.expr) -> str:
    """The name whose memory an expression has; empty where it may have its own."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            path = frame.interpreter.index.resolve(names.dotted(node.func))
            if path in SHARING and node.args:
                node = node.args[0]
            elif isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
                node = node.func.value
            else:
                return ""
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return names.dotted(node)
    return node.id


def _writes(frame: Frame, call: ast.Call, shared: set[str]) -> bool:
    """Whether a call that is given one of the names may write into it."""
    at = [place for place, node in enumerate(call.args) if names.dotted(node) in shared]
    if not at:
        return False
    called = names.dotted(call.func)
    info = next((info for info in frame.interpreter.index.functions.values() if info.name == called), None)
    if info is not None and info.owner is None:
        inside = LoopText(info.node).written
        return any(place >= len(info.parameters) or info.parameters[place].arg in inside for place in at)
    value = frame.lookup(called) if called.isidentifier() else None
    known = isinstance(value, (Module, Named)) or called in _BUILT_IN
    return not known and not frame.interpreter.index.resolve(called).startswith(_READING)


def retarget(frame: Frame, tensor: Value, attribute: str, data: Value) -> None:
    """All that holds the tensor holds it where the data is; a module whose parameter it may be is there, or is not."""
    state, given = frame.state, as_tensor(data)
    if attribute != "data" or not isinstance(tensor, Tensor) or given.device == tensor.device:
        return
    moved = replace(tensor.placed(given.device, given.origin.story), apart=True)
    moved = replace(moved, origin=replace(moved.origin, attribute=None))
    for name, value in list(state.env.items()):
        state.env[name] = _exchanged(value, tensor, moved)
    for place, held in list(state.heap.items()):
        if isinstance(held, Value):
            state.heap[place] = _exchanged(held, tensor, moved)
        elif place[1] is DEVICE and isinstance(held, Device) and tensor.buffer and held == tensor.device:
            state.heap[place] = device.UNKNOWN


def _exchanged(value: Value, tensor: Tensor, moved: Tensor) -> Value:
    if value is tensor:
        return moved
    if isinstance(value, Sequence) and (value.item is tensor or any(item is tensor for item in value.items or ())):
        return Sequence(None, replace(moved, device=device.UNKNOWN), value.mutable)
    return value
