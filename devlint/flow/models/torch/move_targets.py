"""Targets of moves: the device that the arguments of ``.to``, ``.cuda`` and their kin ask for."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import Device
from devlint.flow.catalog.methods import is_dtype
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.values import (
    UNKNOWN,
    Const,
    Named,
    Opaque,
    Tensor,
    Value,
    as_tensor,
    named_place,
    placement,
    surely_tensor,
)
from devlint.flow.syntax import names
from devlint.flow.transfer.escapes import Escapes
from devlint.immutable import immutable


@immutable(frozen=True, slots=True)
class Target:
    """What a move asks for: a device (``None``: none), and whether it asks for nothing else."""

    device: Device | None
    node: ast.AST | None
    plain: bool
    non_blocking: bool


def target_of(frame: Frame, call: Call, name: str) -> Target:
    """What the arguments of ``.to(...)``, ``.cuda(...)``, ... ask for."""
    blocking = call.argument(1, "non_blocking")
    non_blocking = isinstance(blocking, Const) and blocking.value is True
    if name == "cpu":
        return Target(device.CPU, None, not call.keywords and not call.positional, False)
    if name == "type_as":
        other = call.argument(0, "other")
        where = as_tensor(other).device if other is not None else device.UNKNOWN
        return Target(where, call.argument_node(0, "other"), False, False)
    if name != "to":
        return _named_target(frame, call, name, non_blocking)
    given = call.argument(0, "device") if "device" in call.keywords or call.positional else call.keywords.get("other")
    node = call.argument_node(0, "device") or call.keyword_nodes.get("other")
    extra = len(call.positional) > 1 or bool(set(call.keywords) - {"device", "non_blocking"})
    if call.open or call.starred:
        return Target(device.UNKNOWN, node, False, non_blocking)
    if given is None:
        return Target(None, None, False, non_blocking)
    if isinstance(node, ast.Attribute) and node.attr == "device" and isinstance(node.value, ast.Name):
        # where this tensor is, others follow
        frame.component(Escapes).tensors((frame.lookup(node.value.id) or UNKNOWN,))
    place = _device_argument(given, node, frame)
    tensor = surely_tensor(given)
    return Target(place, node, not extra and not tensor, non_blocking)


def _named_target(frame: Frame, call: Call, name: str, non_blocking: bool) -> Target:
    given = call.argument(0, "device")
    node = call.argument_node(0, "device")
    place: Device | None
    if given is None or (isinstance(given, Const) and (given.value is None or isinstance(given.value, bool))):
        # a boolean is meant for another parameter
        place = device.accelerator(name)
    elif isinstance(given, Const) and isinstance(given.value, int) and not isinstance(given.value, bool):
        for observer in events.heard(frame, "on_device_index"):
            observer.on_device_index(frame, call.node, given, f".{name}({given.value})")
        place = device.accelerator(name, given.value)
    else:
        place = named_place(given) or device.UNKNOWN
    extra = bool(set(call.keywords) - {"device", "non_blocking"}) or len(call.positional) > 2
    return Target(place, node, not extra and not call.open, non_blocking)


def _device_argument(given: Value, node: ast.AST | None, frame: Frame) -> Device | None:
    """The device that the first argument of ``.to`` names, ``None`` for a dtype."""
    for observer in events.heard(frame, "on_device_use"):
        observer.on_device_use(frame, node or frame.interpreter.tree, given, False)
    place = placement(given)
    if place is not None:
        return place
    if isinstance(given, Const):
        if isinstance(given.value, int) and not isinstance(given.value, bool):
            for observer in events.heard(frame, "on_device_index"):
                observer.on_device_index(frame, node or frame.interpreter.tree, given, f".to({given.value})")
            return device.accelerator("cuda", given.value)
        return None if given.value is None else device.UNKNOWN
    text = names.dotted(node) if isinstance(node, ast.expr) else ""
    if isinstance(given, Named):
        return None if is_dtype(given.path) else device.UNKNOWN
    if isinstance(given, Tensor):
        return given.device
    if isinstance(given, Opaque) and given.hint == "tensor":
        return as_tensor(given).device
    return None if is_dtype(text) else device.UNKNOWN
