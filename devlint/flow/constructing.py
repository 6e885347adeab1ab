"""New objects of the classes that a project defines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devlint import device
from devlint.flow import growth
from devlint.flow.evidence import is_device_name
from devlint.flow.state import ARGUMENTS
from devlint.flow.values import Class, Const, Instance, Module, Value, identity, names_device, tensor_away
from devlint.immutable import replace
from devlint.sites import Step

if TYPE_CHECKING:
    from devlint.flow.frame import Call, Frame
    from devlint.flow.index import ClassInfo


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
        return replace(module, spread=info.moves_inputs)
    growth.kept(frame, call, info, None)
    machine.samples.transforms(call)
    instance = Instance(identity(), info)
    frame.state.heap[(instance.oid, ARGUMENTS)] = call.values()
    return instance


def _is_placed(call: Call, info: ClassInfo) -> bool:
    """Whether a constructor is told where to make the object, or gets tensors of elsewhere, which it may keep."""
    if any(names_device(value) or tensor_away(value) for value in call.values()):
        return True
    made = info.method("__init__")
    names = [parameter.arg for parameter in made.parameters[1:]] if made is not None else []
    if (call.open or call.starred) and any(map(is_device_name, names)):
        return True
    given = [*zip(names, call.positional, strict=False), *call.keywords.items()]
    return any(is_device_name(name) and not _is_default(value) for name, value in given)


def _is_default(value: Value) -> bool:
    """Whether what is passed as a device is that where things are made anyway."""
    return isinstance(value, Const) and value.value in (None, "cpu")
