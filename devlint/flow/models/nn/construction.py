"""Construction of modules: made on the CPU unless told otherwise."""

from __future__ import annotations

from devlint import device
from devlint.device import Device
from devlint.flow.catalog import modules, torch_table
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import MODELS
from devlint.flow.domain.heap import CHILDREN
from devlint.flow.domain.objects import Module
from devlint.flow.domain.tensors import as_tensor, named_place, names_device
from devlint.flow.domain.values import UNKNOWN, Mapping, Opaque, Sequence, Value, is_literal, is_none
from devlint.flow.program.identity import identity
from devlint.flow.transfer import module_state
from devlint.flow.transfer.defaults import default_place
from devlint.flow.transfer.placement import is_tensor
from devlint.immutable import replace
from devlint.sites.base import Act, Step


def construct(frame: Frame, call: Call, path: str) -> Value:
    """A new module of ``torch.nn``."""
    if path in modules.CONTAINERS:
        return _contain(frame, call, Module(identity(), path, text=path.rpartition(".")[2]))
    known = torch_table.module(path)
    module = Module(
        identity(),
        path,
        text=path.rpartition(".")[2],
        has_state=bool(known and (known.has_params or known.has_buffers)),
        empty=module_state.made_empty(call, path),
    )
    if known and any(is_literal(call.keywords.get(name), False) for name in ("affine", "elementwise_affine")):
        module = replace(module, has_state=known.has_buffers)
    buffers = [value for name, value in call.keywords.items() if known and name in known.buffer_arguments]
    if call.positional and known and "weight" in known.buffer_arguments:
        buffers.append(call.positional[0])
    if known and known.buffer_arguments:
        return _loss(frame, call, module, buffers)
    place, step = made_on(frame, call, module)
    frame.put(module, place, step)
    return module


def made_on(frame: Frame, call: Call, module: Module, argument: str = "device") -> tuple[Device, Step | None]:
    """Where a call makes a module, and the step that says so."""
    # of what is given by position, only a device says by itself what it is
    by_position = (value for value in call.positional if names_device(value))
    asked = call.keywords.get(argument) or next(by_position, None)
    if asked is not None and not is_none(asked):
        place = named_place(asked) or device.UNKNOWN
    elif call.open or (default := default_place(frame)) is None:
        return device.UNKNOWN, None
    else:
        place = default
    return place, Step(call.node, f"`{module.text}` is created on {place} here", Act.CREATED)


def _loss(frame: Frame, call: Call, module: Module, buffers: list[Value]) -> Module:
    """A loss, whose ``weight`` is a buffer; without one it lives nowhere."""
    weights = [value for value in buffers if is_tensor(value)]
    if not weights:
        return replace(module, has_state=False)
    tensor = as_tensor(weights[0])
    if isinstance(weights[0], Opaque) and weights[0].hint != "tensor":
        # may be None
        frame.put(module, device.UNKNOWN, None)
        return replace(module, has_state=True)
    frame.put(module, frame.state.settled(tensor.device), tensor.origin.story[0] if tensor.origin.story else None)
    return replace(module, has_state=True)


def _contain(frame: Frame, call: Call, module: Module) -> Module:
    values: list[Value] = []
    for value in call.positional:
        if isinstance(value, Mapping) and value.other is UNKNOWN and value.items:
            value = Sequence(tuple(held for _, held in value.items), UNKNOWN)
        values.extend(value.items or (value.item,) if isinstance(value, Sequence) else (value,))
    children = tuple(value for value in values if isinstance(value, Module))
    stateful = [child for child in children if child.has_state]
    complete = len(children) == len(values) and not (call.open or call.starred)
    CHILDREN.put(frame.state.heap, module.oid, children)
    places = {frame.place_of(child) for child in stateful}
    if len(places) == 1 and complete:
        step = Step(call.node, f"`{module.text}` is created on the CPU here", Act.CREATED)
        place = places.pop()
        frame.put(module, place, step if place.implied else next(iter(frame.origin_of(stateful[0]).story), None))
    else:
        frame.put(module, device.UNKNOWN, None)
    paths = {child.path for child in children}
    spread = len(places) != 1 and (not complete or any(child.spread for child in children))
    empty = complete and all(module_state.is_empty(frame, child) for child in children)
    of_torch = complete and all(child.path and child.cls is None for child in children)
    item = paths.pop() if len(paths) == 1 else "torch.nn.Module" if of_torch else ""
    own = {child.cls for child in children} if complete else set()
    module = replace(module, item=item, item_cls=own.pop() if len(own) == 1 else None)
    return replace(module, has_state=bool(stateful) or not complete, spread=spread, empty=empty)


def twin(frame: Frame, module: Module) -> Module:
    """A deep copy: another module on the same device."""
    copy = replace(module, oid=identity())
    frame.put(copy, frame.place_of(module), next(iter(frame.origin_of(module).story), None))
    return copy


MODELS.register(dict.fromkeys((*torch_table.module_names(), *modules.CONTAINERS), construct))
