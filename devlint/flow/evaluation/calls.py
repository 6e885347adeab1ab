"""Calls: what is called decides which model knows the result."""

from __future__ import annotations

import ast

from devlint.flow.catalog.accelerator_api import POSITIONAL_DEVICE
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import CLASSES, EFFECTS, KINDS, MODELS, Model
from devlint.flow.domain.objects import Class, Function, Instance, Stateful
from devlint.flow.domain.tensors import DeviceValue
from devlint.flow.domain.values import UNKNOWN, Const, Mapping, Named, Opaque, Sequence, Value
from devlint.flow.transfer import api_use, containers, device_queue


def function(frame: Frame, call: Call, called: Value) -> Value:
    """The result of calling a value."""
    if isinstance(called, Named):
        called = frame.interpreter.imports.called(frame, called)
    if isinstance(called, (Function, Class)) and called.info.stated:
        rows = CLASSES.stated
        told = rows.called(frame, call, called) if rows is not None else None
        return named(frame, call, frame.interpreter.catalog.canonical(called.info.stated)) if told is None else told
    if isinstance(called, Named):
        return named(frame, call, frame.interpreter.catalog.canonical(called.path))
    if isinstance(called, Function):
        return frame.interpreter.enter(frame, called, call)
    if isinstance(called, Class):
        api_use.devices(frame, call)
        return frame.interpreter.construct(frame, called, call)
    model = CLASSES.model(called.path) if isinstance(called, Stateful) else KINDS.get(type(called))
    result = model.called(frame, call, called) if model is not None else None
    if result is None:
        result = KINDS[Value].called(frame, call, called)
    return result or UNKNOWN


def named(frame: Frame, call: Call, path: str) -> Value:
    """The result of calling something imported or built in."""
    for observer in events.heard(frame, "on_library_call"):
        observer.on_library_call(frame, call, path)
    model = _model(frame, path)
    if path.startswith("torch.") and path not in POSITIONAL_DEVICE and model is not MODELS.stated:
        api_use.devices(frame, call, path)
    return model(frame, call, path) if model is not None else UNKNOWN


def _model(frame: Frame, path: str) -> Model | None:
    """Who models a name: rows of the project first, then its own model, other rows, and the model of its package."""
    exact, catalog = MODELS.exact(path), frame.interpreter.catalog
    if exact is not None and not catalog.stated:
        return exact
    row = catalog.row(path)
    if row is not None and row.speaks_of_calls and (exact is None or catalog.is_stated(path)):
        return MODELS.stated
    return MODELS.model(path) or MODELS.fallback


def method(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> Value:
    """The result of ``receiver.name(...)``."""
    _note(frame, call, receiver, node)
    effect = EFFECTS.get(node.attr)
    if effect is not None:
        effect(frame, call, receiver, node)
    rows = CLASSES.stated
    stated = rows.method(frame, call, receiver, node) if rows is not None else None
    if stated is not None:
        return stated
    if isinstance(receiver, Named):
        return function(frame, call, frame.interpreter.attribute(frame, node, receiver))
    if isinstance(receiver, (Sequence, Mapping)):
        return containers.method(frame, call, receiver, node)
    if isinstance(receiver, (Const, DeviceValue)):
        return UNKNOWN
    if isinstance(receiver, Class):
        return _class_method(frame, call, receiver, node.attr)
    if isinstance(receiver, Stateful):
        owner = CLASSES.model(receiver.path)
        return (owner.method(frame, call, receiver, node) if owner is not None else None) or UNKNOWN
    if isinstance(receiver, Instance):
        value = frame.interpreter.attribute(frame, node, receiver)
        if not isinstance(value, Opaque):
            return function(frame, call, value)
    model = KINDS.get(type(receiver))
    result = model.method(frame, call, receiver, node) if model is not None else None
    if result is None:
        result = KINDS[Value].method(frame, call, receiver, node)
    return result or UNKNOWN


def _note(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
    """What a method call says by its name alone."""
    for observer in events.heard(frame, "on_method"):
        observer.on_method(frame, call, receiver, node)
    device_queue.method(frame, call, receiver, node)


def _class_method(frame: Frame, call: Call, receiver: Class, name: str) -> Value:
    api_use.devices(frame, call)
    found = receiver.info.method(name)
    if found is not None and "staticmethod" in found.decorators:
        return frame.interpreter.enter(frame, Function(found), call)
    return UNKNOWN
