"""Devices that constructors of the project's classes are given: what an object has for its device, made here."""

from __future__ import annotations

import ast
import re

from devlint import device
from devlint.device import Device, Kind, Role
from devlint.flow.core.call import CREATOR, Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.objects import Instance, Module
from devlint.flow.domain.tensors import DeviceValue, named_place, names_device, tensor_away
from devlint.flow.domain.values import Const, Unknown, Value, is_none
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.flow.program.type_hints import defaults_of, is_device_name
from devlint.flow.syntax import bindings, nodes

_OF_A_CONSTRUCTOR = r".*__init__:\d+:\w+"
"""The symbol of a parameter of a constructor, as it was passed."""
_DEFAULTS = (None, "cpu")


def told_device(frame: Frame, made: Module | Instance, attribute: str) -> Value | None:
    """What an object has for its device that was made here: what this call gave, not what any call may give.

    The CPU says nothing: with it the object does what its class does without one, or is told another later.  Of an
    object that was told nothing, and whose class says by a property or a default field what it has, nobody knows that
    it has an accelerator.  ``None`` where nothing can be said.
    """
    call = CREATOR.of(frame.state.heap, made.oid)
    info = made.cls
    if info is None:
        return None
    init = info.method("__init__")
    kept = frame.interpreter.class_heap(info).get((info.oid, attribute))
    place = named_place(kept) if isinstance(kept, Value) else None
    if call is None or init is None or call.open or call.starred or place is None:
        told_of = not _is_found_out(info, attribute) or (call is not None and is_placed(call, info))
        return None if told_of else DeviceValue(device.UNKNOWN, call.node if call is not None else None)
    return _told(call, info, init, place)


def as_told(frame: Frame, made: Module | Instance, place: Device) -> Device:
    """Where something is that a method put on the device of its ``self``, whichever it was: on that of this one."""
    info = made.cls
    init = info.method("__init__") if info is not None else None
    if info is None or init is None or made.oid == info.oid:
        return place
    owner, _, attribute = place.symbol.partition(".")
    told: Value | None = None
    if owner == str(info.oid):
        told = told_device(frame, made, attribute)
    elif any(leaf.symbol.startswith(f"{init.qualname}:") for leaf in place.leaves()):
        call = CREATOR.of(frame.state.heap, made.oid)
        told = None if call is None or call.open or call.starred else _told(call, info, init, place)
    return place if told is None else named_place(told) or device.UNKNOWN


def _told(call: Call, info: ClassInfo, init: FunctionInfo, place: Device) -> Value | None:
    """What a call of a constructor gave for a device that the constructor keeps."""
    defaults = defaults_of(init.node.args)
    given = dict(zip((parameter.arg for parameter in init.parameters[1:]), call.positional, strict=False))
    given.update(call.keywords)
    told: list[Value] = []
    for leaf in place.leaves():
        name = leaf.symbol.removeprefix(f"{init.qualname}:")
        default = defaults.get(name)
        if leaf.kind is Kind.CPU:
            continue
        if leaf.kind is not Kind.SYMBOL or leaf.role is not Role.DEVICE:
            return None
        if name in given or isinstance(default, ast.Constant):
            told.append(given[name] if name in given else Const(getattr(default, "value", None)))
        elif not re.fullmatch(_OF_A_CONSTRUCTOR, leaf.symbol) or is_placed(call, info):
            # the constructor takes it from elsewhere, or may hand it on to that of a base
            return None
    if not any(map(_may_be_away, told)):
        return DeviceValue(device.UNKNOWN, call.node)
    return told[0] if len(told) == 1 and not isinstance(told[0], Unknown) else None


def _is_found_out(info: ClassInfo, attribute: str) -> bool:
    """Whether a class says what its objects have for an attribute, without choosing: a property, a default field."""
    every = (node for one in info.linearization() for node in one.node.body)
    bound = [node for node in every if attribute in tuple(bindings.binds(node))]
    return bool(bound) and all(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        or (
            isinstance(node, (ast.Assign, ast.AnnAssign))
            and isinstance(node.value, ast.Constant)
            and node.value.value in _DEFAULTS
        )
        for node in bound
    )


def _may_be_away(value: Value) -> bool:
    """Whether something may be a device that is not the CPU."""
    if is_none(value):
        return False
    place = named_place(value)
    return place is None or place.accelerates() is not False


def is_placed(call: Call, info: ClassInfo) -> bool:
    """Whether a constructor is told where to make the object, or gets tensors of elsewhere, which it may keep."""
    made = info.method("__init__")
    taken = [parameter.arg for parameter in made.parameters[1:]] if made is not None else []
    inside = () if made is None else nodes.walk(made.node)
    read = {node.id for node in inside if isinstance(node, ast.Name)}
    named = [*zip(taken, call.positional, strict=False), *call.keywords.items()]
    ignored = [value for name, value in named if name in taken and name not in read]
    given = (value for value in call.values() if not any(value is one for one in ignored))
    if any(names_device(value) or tensor_away(value) for value in given):
        return True
    if (call.open or call.starred) and any(map(is_device_name, taken)):
        return True
    return any(is_device_name(name) and not _is_default(value) for name, value in named)


def _is_default(value: Value) -> bool:
    """Whether what is passed as a device is that where things are made anyway."""
    return isinstance(value, Const) and value.value in _DEFAULTS
