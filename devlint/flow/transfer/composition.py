"""Parts of modules that are exchanged, or added: where the whole is then."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import Device
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.heap import CHANGED, DEVICE
from devlint.flow.domain.values import Batches, Module, Opaque, Tensor, Unknown, Value
from devlint.immutable import replace


def exchange(frame: Frame, node: ast.expr, base: Value, value: Value) -> None:
    """``base``, which is ``node``, is given ``value``: it and what it is a part of may not be in one place any more."""
    known = isinstance(base, Module)
    if not known and not isinstance(value, (Module, Tensor)):
        # what is set in an object of the unknown is a part of the whole only if it is sure to be one
        return
    for whole in (base, *_around(frame, node)):
        if not isinstance(whole, Module):
            continue
        replaces = known and not (whole is base and whole.text == "self")
        if _fits(frame, value, frame.place_of(whole), replaces):
            continue
        if whole.text != "self":
            frame.put(whole, device.UNKNOWN, None)
        elif (whole.oid, DEVICE) in frame.state.heap:
            CHANGED.put(frame.state.heap, whole.oid, True)


def move(frame: Frame, place: Device) -> None:
    """A module leaves ``place``: its parameters go with it, under whatever name they are known."""
    env = frame.state.env
    for name, value in env.items():
        if isinstance(value, Tensor) and value.buffer and value.device == place:
            env[name] = replace(value, device=device.UNKNOWN)


def _around(frame: Frame, node: ast.expr) -> list[Value]:
    """What an expression goes through: `model` and `model.head` of `model.head.linear`."""
    found: list[Value] = []
    with frame.interpreter.quiet():
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
            found.append(frame.evaluate(node))
    return found


def _fits(frame: Frame, value: Value, place: Device, replaces: bool) -> bool:
    """Whether all of a module that was at ``place`` is still there when it has been given ``value``.

    ``replaces`` says that a tensor which is no parameter may take the place of a buffer.
    """
    if isinstance(value, Module):
        return not value.has_state or frame.place_of(value).same(place) is True
    if isinstance(value, Tensor):
        return not (value.buffer or replaces) or value.device.same(place) is True
    return not isinstance(value, (Batches, Opaque, Unknown))
