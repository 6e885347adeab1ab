"""Assignment: names, attributes and items take values."""

from __future__ import annotations

import ast
import re

from devlint import device
from devlint.device import Kind
from devlint.flow.catalog.concepts import PARAMETER
from devlint.flow.catalog.libraries import canonical
from devlint.flow.core import events
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import CLASSES
from devlint.flow.domain.heap import ANY, REGISTERED
from devlint.flow.domain.objects import Instance, Module, Stateful
from devlint.flow.domain.tensors import DeviceValue, Loader, Tensor, as_tensor
from devlint.flow.domain.values import UNKNOWN, Const, Named, Opaque, Sequence, Unknown, Value
from devlint.flow.program import mutations, type_hints
from devlint.flow.program.type_hints import is_device_name
from devlint.flow.syntax import names
from devlint.flow.transfer import api_use, containers, havoc
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.indexing import assign_item
from devlint.flow.transfer.iteration import part_of
from devlint.flow.transfer.memory import retarget
from devlint.immutable import replace
from devlint.sites.base import Step


def bind(frame: Frame, target: ast.expr, value: Value, node: ast.AST) -> None:
    """Bind a target of an assignment."""
    if isinstance(value, Loader) and value.wrapped:
        # who gives it a name may have prepared it in other ways
        value = UNKNOWN
    if isinstance(target, ast.Name):
        _bind_name(frame, target, value, node)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target.elts, value, node)
    elif isinstance(target, ast.Attribute):
        assign_attribute(frame, target, value, node)
    elif isinstance(target, ast.Subscript):
        for observer in events.heard(frame, "on_put"):
            observer.on_put(frame, target.value, value, node)
        assign_item(frame, target, value, node)
    elif isinstance(target, ast.Starred):
        bind(frame, target.value, value if isinstance(value, Sequence) else Sequence(None, UNKNOWN), node)
    if frame.interpreter.watch is not None and isinstance(target, (ast.Name, ast.Attribute)):
        held = frame.lookup(target.id) if isinstance(target, ast.Name) else None
        frame.interpreter.watch(frame, target, value if held is None else held)


def _bind_name(frame: Frame, target: ast.Name, value: Value, node: ast.AST) -> None:
    name = target.id
    hint = type_hints.hints(frame.info).get(name, "") if frame.info else ""
    if isinstance(value, Unknown):
        hint = "device" if is_device_name(name) else hint
        value = Opaque(
            f"{frame.name}:{name}@{getattr(target, 'lineno', 0)}:{target.col_offset}", name, hint, node=target
        )
        bound = frame.interpreter.bound
        if value.key in bound:
            frame.state.forget(value)
        bound.add(value.key)
    elif isinstance(value, Opaque) and not value.hint and (hint or value.near.known or value.managed):
        value = replace(value, hint=hint, text=name)
    elif isinstance(value, Const):
        value = named_device(frame, name, value, node)
    if isinstance(value, DeviceValue) and value.device.kind is Kind.CHOICE and not value.device.text:
        value = replace(value, device=replace(value.device, text=name), source=None)
    value = _called(value, name)
    for observer in events.heard(frame, "on_binding"):
        observer.on_binding(frame, target, value)
    frame.state.env[name] = value


def _called(value: Value, name: str) -> Value:
    """A device which the code has just made of something unknown, by the name that it gives it."""
    if not isinstance(value, DeviceValue) or value.form != "made" or value.device.kind is not Kind.SYMBOL:
        return value
    return replace(value, device=replace(value.device, text=name)) if name and "(" in value.device.text else value


def _unpack(frame: Frame, targets: list[ast.expr], value: Value, node: ast.AST) -> None:
    star = next((at for at, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
    if star is not None and isinstance(value, Sequence) and value.items is not None:
        rest = len(targets) - star - 1
        if len(value.items) >= star + rest:
            middle = value.items[star : len(value.items) - rest]
            ends = value.items[len(value.items) - rest :]
            value = Sequence((*value.items[:star], Sequence(middle, UNKNOWN, True), *ends))
    nodes = node.elts if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == len(targets) else None
    if isinstance(value, Sequence) and value.items is not None and len(value.items) == len(targets):
        parts: list[Value] = list(value.items)
    else:
        parts = [part_of(value, position) for position in range(len(targets))]
    for position, target in enumerate(targets):
        bind(frame, target, parts[position], nodes[position] if nodes else target)


def assign_attribute(frame: Frame, target: ast.Attribute, value: Value, node: ast.AST) -> None:
    """``base.attr = value``."""
    base = frame.evaluate(target.value)
    if isinstance(base, Named):
        frame.interpreter.imports.forget(f"{base.path}.{target.attr}")
    value = _through_setter(base, target.attr, value)
    _tell_of_data(frame, target, base, value)
    retarget(frame, base, target.attr, value)
    havoc.attached(frame, base, value)
    key: object | None = (
        base.oid if isinstance(base, (Module, Instance)) else base.key if isinstance(base, Opaque) else None
    )
    if key is None:
        havoc.refilled(frame, target, base, value)
        havoc.exchange(frame, target.value, base, _as_part(target, base, value))
        containers.put_into(frame, base, target.value, value)
        return
    if isinstance(value, Unknown):
        hint = "device" if is_device_name(target.attr) else ""
        value = Opaque(f"{key}.{target.attr}@{target.lineno}", names.dotted(target) or target.attr, hint, node=target)
    if isinstance(value, Opaque) and value.managed:
        value = replace(value, text=names.dotted(target) or target.attr)
    if isinstance(value, Const):
        value = _held_as(base, named_device(frame, target.attr, value, node))
    value = _called(value, names.dotted(target))
    mine = base.text == "self" if isinstance(base, Module) else isinstance(base, Instance) and base.cls.is_open
    if isinstance(base, Module):
        value = _registered(frame, value)
    if mine and frame.info is not None:
        value = _kept_by_module(frame, target, value, node)
    if isinstance(value, Tensor) and isinstance(base, Instance) and value.device.kind is Kind.CPU:
        value = _kept_by_object(frame, target, value, node)
    for observer in events.heard(frame, "on_store"):
        observer.on_store(frame, target, base, value, node)
    if isinstance(value, Loader) and isinstance(base, Instance):
        frame.component(Escapes).data((value,))
    wrapper = CLASSES.model(base.path) if isinstance(base, Module) and base.wraps is not None else None
    if wrapper is not None:
        wrapper.assigned(frame, target, base)
    havoc.exchange(frame, target.value, base, _as_part(target, base, value))
    frame.state.heap[(key, target.attr)] = value


def _tell_of_data(frame: Frame, target: ast.Attribute, base: Value, value: Value) -> None:
    for observer in events.heard(frame, "on_data") if target.attr == "data" else ():
        observer.on_data(frame, target, base, value)


def _registered(frame: Frame, value: Value) -> Value:
    """What a module is given: a parameter moves with it, whoever assigns it, be it one by its annotation alone."""
    said = value.node.annotation if isinstance(value, Opaque) and isinstance(value.node, ast.arg) else None
    if said is not None and canonical(frame.interpreter.index.resolve(names.dotted(said))) == PARAMETER:
        return replace(as_tensor(value), certain=True, buffer=True, grad="parameter")
    kept = isinstance(value, Tensor) and value.grad == "parameter"
    return replace(value, buffer=True) if kept and isinstance(value, Tensor) else value


def _through_setter(base: Value, name: str, value: Value) -> Value:
    """What an attribute is given: of a property, what its setter makes of the value, which nobody outside knows."""
    method = base.cls.method(name) if isinstance(base, (Module, Instance)) and base.cls is not None else None
    known = method is None or not any(one.endswith(".setter") for one in method.decorators)
    return value if known else UNKNOWN


def _held_as(base: Value, value: Value) -> Value:
    """A string that is given to an object: a property of a class that is not known may make a device of it."""
    return replace(value, form="") if isinstance(value, DeviceValue) and isinstance(base, Opaque) else value


def _as_part(target: ast.Attribute, base: Value, value: Value) -> Value:
    """What ``base`` is given, as a part of what holds it: the data of a parameter is one, be it known or not."""
    if target.attr != "data" or (isinstance(base, (Module, Instance)) and not isinstance(value, Tensor)):
        return value
    return replace(as_tensor(value), buffer=True)


def named_device(frame: Frame, name: str, value: Const, node: ast.AST) -> Value:
    """A string that is given the name of a device is one."""
    place = device.parse(value.value) if isinstance(value.value, str) and isinstance(node, ast.Constant) else None
    # the name of a type, as in `device_type = "cuda"`, places nothing
    named = is_device_name(name) and not name.lower().endswith("type")
    if place is None or not isinstance(value.value, str) or not named:
        return value
    api_use.device(frame, node, "variable")
    return DeviceValue(place, node, form="text")


def _kept_by_object(frame: Frame, target: ast.Attribute, value: Tensor, node: ast.AST) -> Tensor:
    """A tensor that an object which is no module keeps from its construction on."""
    if frame.info is None or frame.info.name != "__init__" or frame.owner is None or frame.owner.is_open:
        return value
    built = names.dotted(target.value) == "self" and value.device.implied
    step = Step(node, f"`self.{target.attr}` is kept here, on the CPU")
    return replace(value, origin=replace(value.origin, kept=step)) if built else value


def _kept_by_module(frame: Frame, target: ast.Attribute, value: Value, node: ast.AST) -> Value:
    """What a module keeps as an attribute: a tensor, or what is made of tensors, such as a distribution."""
    if isinstance(value, Tensor):
        return _kept_tensor(frame, target, value, node)
    model = CLASSES.model(value.path) if isinstance(value, Stateful) and value.tensors else None
    if not isinstance(value, Stateful) or model is None or not model.keeps_tensors:
        return value
    # it is made of new tensors, and not of parameters, which it may hold
    held = as_tensor(value.tensors[0])
    given_others = re.search(rf"self\.{target.attr}\.\w+\s*=[^=]", frame.interpreter.text_of_file) is not None
    if frame.owner is None or frame.owner.is_open or held.origin.node is None or given_others:
        return value
    return replace(value, tensors=(_kept_tensor(frame, target, held, node),))


def _kept_tensor(frame: Frame, target: ast.Attribute, value: Tensor, node: ast.AST) -> Tensor:
    """A tensor that a module keeps: a parameter or buffer moves with it, anything else stays behind."""
    if value.buffer or frame.info is None or frame.owner is None or not isinstance(node, ast.expr):
        return value
    own = frame.owner.oid
    held = frame.state.heap.get((own, target.attr))
    names_registered = REGISTERED.of(frame.state.heap, own) or ()
    registered = target.attr in names_registered or ANY in names_registered
    if registered or mutations.takes_along(frame.owner, target.attr) or (isinstance(held, Tensor) and held.buffer):
        return replace(value, buffer=True)
    if frame.info.name != "__init__":
        return value
    # what was computed of another attribute is one of its own
    step = Step(node, f"`self.{target.attr}` is kept here, unregistered")
    return replace(value, origin=replace(value.origin, attribute=step, attribute_of=(frame.owner.key, target.attr)))
