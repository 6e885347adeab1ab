"""New objects of the classes that a project defines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint import device
from devlint.flow import growth, names
from devlint.flow.evidence import defaults_of, is_device_name
from devlint.flow.state import ARGUMENTS
from devlint.flow.values import (
    UNKNOWN,
    Class,
    Const,
    DeviceValue,
    Instance,
    Module,
    Unknown,
    Value,
    identity,
    named_place,
    names_device,
    tensor_away,
)
from devlint.immutable import replace
from devlint.sites import Step

if TYPE_CHECKING:
    from devlint.flow.frame import Call, Frame
    from devlint.flow.index import ClassInfo, FunctionInfo


def construct(frame: Frame, cls: Class, call: Call) -> Value:
    """A new object of a class of the project."""
    machine, info = frame.machine, cls.info
    machine.loaders.escape(call.values())
    if not machine.finished and info.is_module and info.index is machine.index:
        # with the names of the top level as they are now
        machine.class_heap(info)
    if info.is_module:
        module = Module(identity(), cls=info, text=info.name, has_state=info.has_state is not False)
        known = info.has_state is True and not (machine.default_changed or info.moves_inputs or info.places_itself)
        place = (frame.default_device or device.IMPLIED_CPU) if known else device.UNKNOWN
        frame.put(
            module,
            device.UNKNOWN if _is_placed(call, info) else place,
            Step(call.node, f"`{info.name}` is created on the CPU here"),
        )
        growth.kept(frame, call, info, module)
        _keep_devices(frame, call, info, module.oid)
        return replace(module, spread=info.moves_inputs)
    growth.kept(frame, call, info, None)
    machine.samples.transforms(call)
    instance = Instance(identity(), info)
    frame.state.heap[(instance.oid, ARGUMENTS)] = call.values()
    _keep_devices(frame, call, info, instance.oid)
    return instance


def _keep_devices(frame: Frame, call: Call, info: ClassInfo, oid: int) -> None:
    """What an object has for its device from now on: what this call gives, not what any call may give.

    The CPU says nothing: with it the object does what its class does without one, or is told another later.
    """
    made = info.method("__init__")
    if made is None or call.open or call.starred:
        return
    defaults = defaults_of(made.node.args)
    given = dict(zip((parameter.arg for parameter in made.parameters[1:]), call.positional, strict=False))
    given.update(call.keywords)
    for attribute, name in _kept_as_given(made):
        default = defaults.get(name)
        value = given[name] if name in given else Const(default.value) if isinstance(default, ast.Constant) else UNKNOWN
        if isinstance(value, Unknown) or attribute in info.changed:
            continue
        place = named_place(value) if not isinstance(value, Const) or value.value is not None else device.CPU
        known = place is not None and place.accelerates() is not False
        frame.state.heap[(oid, attribute)] = value if known else DeviceValue(device.UNKNOWN, call.node)


def _kept_as_given(made: FunctionInfo) -> Iterator[tuple[str, str]]:
    """The devices that a constructor keeps as they are: the attribute of each, and the parameter."""
    for statement in made.node.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Name):
            continue
        name = statement.value.id
        for target in statement.targets:
            mine = isinstance(target, ast.Attribute) and names.dotted(target.value) == "self"
            if mine and isinstance(target, ast.Attribute) and is_device_name(target.attr) and not _rebinds(made, name):
                yield target.attr, name


def _rebinds(made: FunctionInfo, name: str) -> bool:
    """Whether a function gives a name of its own a value."""
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in made.nodes
    )


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
