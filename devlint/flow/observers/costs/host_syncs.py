"""Places where the host reads what the device has computed, and so waits for it."""

from __future__ import annotations

import ast

from devlint.device import Kind
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.methods import FETCHES
from devlint.flow.core.call import Call, Loop
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.values import (
    UNKNOWN,
    Batches,
    Opaque,
    Tensor,
    Unknown,
    Value,
    as_tensor,
    placement,
    surely_tensor,
)
from devlint.flow.observers.costs.device_queue import Moved, Queue
from devlint.flow.transfer import loop_invariance
from devlint.sites.base import Operand
from devlint.sites.costs import Sync

_MOVES = frozenset({"cpu", "to"})
_BACKWARD = frozenset({"backward", "manual_backward"})
"""Methods that send a loss backward: its own, that of a wrapper, Lightning's."""


def note(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
    """A method call: it may wait for what its receiver will be, or give the device more to do."""
    name = node.attr
    if name == "backward":
        frame.component(Queue).work(frame, call.node, as_tensor(receiver).device)
    elif name == "numpy":
        moved = frame.component(Queue).moved
        if moved is not None and moved.node is node.value:
            _report(frame, call.node, moved.value, name, "forward")
    elif name in FETCHES or (name == "to" and _goes_home(call)) or (surely_tensor(receiver) and _blocks(name)):
        wait(frame, call.node, node.value, receiver, name)


def allow(frame: Frame, node: ast.Call) -> None:
    """A call is about to be evaluated: what it takes on the CPU alone has to be brought there."""
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in torch_table.host_functions():
        frame.component(Queue).allowed.update((*node.args, *(keyword.value for keyword in node.keywords)))


def _blocks(name: str) -> bool:
    entry = torch_table.method(name)
    return entry is not None and entry.sync == "always"


def _goes_home(call: Call) -> bool:
    place = placement(call.positional[0]) if call.positional else None
    return place is not None and place.kind is Kind.CPU and "non_blocking" not in call.keywords


def read(frame: Frame, call: Call) -> Value:
    """A function that prints what it is given, or makes a number of it."""
    for node, value in zip(call.nodes, call.positional, strict=False):
        shown(frame, call.node, node, value)
    return UNKNOWN


def shown(frame: Frame, node: ast.AST, read_node: ast.expr, value: Value) -> None:
    """A value is printed or made a number: of a tensor, that is a read."""
    if surely_tensor(value) or isinstance(value, Batches):
        wait(frame, node, read_node, value, "print")
    elif isinstance(value, (Opaque, Unknown)) and getattr(value, "hint", "") not in ("number", "device", "host"):
        frame.component(Queue).unseen(frame, node)


def tested(frame: Frame, node: ast.expr, value: Value) -> None:
    """A condition: of a tensor, it is a read."""
    if isinstance(value, Tensor) and value.certain and not value.optional:
        wait(frame, node, node, value, "bool")


def wait(frame: Frame, node: ast.AST, read_node: ast.expr, value: Value, spelled: str) -> None:
    """The host reads ``value``: a site, unless it has just waited, or the value is on the host."""
    if as_tensor(value).device.accelerates() is False:
        return
    queue = frame.component(Queue)
    region = "" if queue.is_empty(node) or node in queue.allowed else _region(frame, read_node, value)
    queue.wait(frame, node)
    if spelled in _MOVES and region in ("loop", "forward", "check"):
        # perhaps this is where the tensor has to go on; if not, an array will be made of it next
        queue.moved = Moved(node, frame.operand(read_node, value)) if region == "forward" else None
    elif region:
        _report(frame, node, frame.operand(read_node, value), spelled, region)


def _report(frame: Frame, node: ast.AST, value: Operand, spelled: str, region: str) -> None:
    frame.emit(Sync(node, scope_of(frame), spelled, value, region))


def _region(frame: Frame, node: ast.expr, value: Value) -> str:
    """How often the host waits here, empty where that is unknown, or no more often than it has to."""
    step = next((loop for loop in reversed(frame.loops) if loop.step and not loop.encloses), None)
    placed = as_tensor(value).device.kind is not Kind.UNKNOWN or bool(frame.info and frame.info.device_aware)
    proven = surely_tensor(value) and as_tensor(value).certain and placed
    if step is not None:
        if frame.interpreter.loop_text(step.node).trains:
            return "train" if proven or _may_wait(frame, value, node, step) else ""
        # an evaluation has to read its results, but not one by one, and not what never changes
        parts = step is not frame.loops[-1] or loop_invariance.invariant(frame, node, None)
        return "element" if parts and proven else ""
    if not proven:
        return ""
    if frame.loops:
        # once in an epoch is seldom
        return "" if frame.loops[-1].encloses else "loop"
    info = frame.info
    if info is None or info.initialises or frame.branches or frame.handler or frame.tried:
        return ""
    if frame.after_init and info.name == "forward":
        return "forward"
    return "check" if frame.checking else ""


def _may_wait(frame: Frame, receiver: Value, node: ast.expr, loop: Loop) -> bool:
    """Whether the receiver is a tensor; a loss is one that goes backward."""
    if isinstance(receiver, (Tensor, Batches)):
        return True
    name = node.id if isinstance(node, ast.Name) else ""
    return bool(name) and any(_goes_backward(inner, name) for inner in frame.interpreter.loop_text(loop.node).inside)


def _goes_backward(node: ast.AST, name: str) -> bool:
    """Whether it is ``name.backward()``, ``scaler.scale(name / 2).backward()`` or ``accelerator.backward(name)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr not in _BACKWARD:
        return False
    return any(_is_made_of(part, name) for part in (node.func.value, *node.args))


def _is_made_of(node: ast.expr, name: str) -> bool:
    """Whether an expression is a name, scaled or not."""
    if isinstance(node, ast.BinOp):
        return _is_made_of(node.left, name) or _is_made_of(node.right, name)
    if isinstance(node, ast.Call):
        return any(_is_made_of(argument, name) for argument in node.args)
    return isinstance(node, ast.Name) and node.id == name
