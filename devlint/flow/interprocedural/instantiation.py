"""New objects of the classes that a project defines."""

from __future__ import annotations

import ast
import re

from devlint import device
from devlint.device import Kind, Role
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.state import ARGUMENTS, TOLD
from devlint.flow.domain.values import (
    Class,
    Const,
    DeviceValue,
    Instance,
    Module,
    Unknown,
    Value,
    is_none,
    named_place,
    names_device,
    tensor_away,
)
from devlint.flow.models.data.datasets import Samples
from devlint.flow.program.identity import identity
from devlint.flow.program.module_classes import has_state
from devlint.flow.program.mutations import moves_inputs, places_itself
from devlint.flow.program.symbols import ClassInfo
from devlint.flow.program.type_hints import defaults_of, is_device_name
from devlint.flow.transfer import havoc
from devlint.flow.transfer.escapes import Escapes
from devlint.immutable import replace
from devlint.sites.base import Step

_OF_A_CONSTRUCTOR = re.compile(r".*__init__:\d+:\w+")
"""The symbol of a parameter of a constructor, as it was passed."""


def construct(frame: Frame, cls: Class, call: Call) -> Value:
    """A new object of a class of the project."""
    interpreter, info = frame.interpreter, cls.info
    interpreter.component(Escapes).data(call.values())
    if not interpreter.finished and info.is_module and info.index is interpreter.index:
        # with the names of the top level as they are now
        interpreter.class_heap(info)
    if info.is_module:
        module = Module(identity(), cls=info, text=info.name, has_state=has_state(info) is not False)
        known = has_state(info) is True and not (
            interpreter.default_changed or moves_inputs(info) or places_itself(info)
        )
        place = (frame.default_device or device.IMPLIED_CPU) if known else device.UNKNOWN
        frame.put(
            module,
            device.UNKNOWN if _is_placed(call, info) else place,
            Step(call.node, f"`{info.name}` is created on the CPU here"),
        )
        havoc.kept(frame, call, info, module)
        frame.state.heap[(module.oid, TOLD)] = call
        return replace(module, spread=moves_inputs(info))
    havoc.kept(frame, call, info, None)
    interpreter.component(Samples).transforms(call)
    instance = Instance(identity(), info)
    frame.state.heap[(instance.oid, ARGUMENTS)] = call.values()
    frame.state.heap[(instance.oid, TOLD)] = call
    return instance


def told_device(frame: Frame, made: Module | Instance, attribute: str) -> Value | None:
    """What an object has for its device that was made here: what this call gave, not what any call may give.

    The CPU says nothing: with it the object does what its class does without one, or is told another later.
    """
    call = frame.state.heap.get((made.oid, TOLD))
    info = made.cls
    init = info.method("__init__") if info is not None else None
    if info is None or init is None or not isinstance(call, Call) or call.open or call.starred:
        return None
    kept = frame.interpreter.class_heap(info).get((info.oid, attribute))
    place = named_place(kept) if isinstance(kept, Value) else None
    if place is None:
        return None
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
        elif not _OF_A_CONSTRUCTOR.fullmatch(leaf.symbol) or _is_placed(call, info):
            # the constructor takes it from elsewhere, or may hand it on to that of a base
            return None
    if not any(map(_may_be_away, told)):
        return DeviceValue(device.UNKNOWN, call.node)
    return told[0] if len(told) == 1 and not isinstance(told[0], Unknown) else None


def _may_be_away(value: Value) -> bool:
    """Whether something may be a device that is not the CPU."""
    if is_none(value):
        return False
    place = named_place(value)
    return place is None or place.accelerates() is not False


def _is_placed(call: Call, info: ClassInfo) -> bool:
    """Whether a constructor is told where to make the object, or gets tensors of elsewhere, which it may keep."""
    if any(names_device(value) or tensor_away(value) for value in call.values()):
        return True
    made = info.method("__init__")
    taken = [parameter.arg for parameter in made.parameters[1:]] if made is not None else []
    if (call.open or call.starred) and any(map(is_device_name, taken)):
        return True
    given = [*zip(taken, call.positional, strict=False), *call.keywords.items()]
    return any(is_device_name(name) and not _is_default(value) for name, value in given)


def _is_default(value: Value) -> bool:
    """Whether what is passed as a device is that where things are made anyway."""
    return isinstance(value, Const) and value.value in (None, "cpu")
