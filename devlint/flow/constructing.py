"""New objects of the classes that a project defines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devlint import device
from devlint.flow import growth
from devlint.flow.state import ARGUMENTS
from devlint.flow.values import Class, Instance, Module, Value, identity, names_device, tensor_away
from devlint.immutable import replace
from devlint.sites import Step

if TYPE_CHECKING:
    from devlint.flow.frame import Call, Frame


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
        # what is kept of a tensor stays where it is
        placed = any(names_device(value) or tensor_away(value) for value in call.values())
        frame.put(
            module,
            device.UNKNOWN if placed else place,
            Step(call.node, f"`{info.name}` is created on the CPU here"),
        )
        growth.kept(frame, call, info, module)
        return replace(module, spread=info.moves_inputs)
    growth.kept(frame, call, info, None)
    machine.samples.transforms(call)
    instance = Instance(identity(), info)
    frame.state.heap[(instance.oid, ARGUMENTS)] = call.values()
    return instance
