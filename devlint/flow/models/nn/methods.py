"""Methods of modules: moved in place, asked for parameters, given parts."""

from __future__ import annotations

import ast
import re

from devlint import device
from devlint.device import Role
from devlint.flow.catalog import methods, modules
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import KINDS, ObjectModel
from devlint.flow.domain.heap import ANY, CHANGED, CONSUMER, DEVICE, REGISTERED, attributes
from devlint.flow.domain.join import type_place
from devlint.flow.domain.objects import Function, Module, is_host
from devlint.flow.domain.tensors import Batches, Tensor, as_tensor
from devlint.flow.domain.values import UNKNOWN, Const, Mapping, Named, Opaque, Sequence, Value, is_number
from devlint.flow.models.nn.forward import check, forward, of_method
from devlint.flow.models.torch import moves, tensor_methods
from devlint.flow.program.identity import identity
from devlint.flow.transfer import api_use, havoc
from devlint.flow.transfer.device_queue import DeviceQueue
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.indexing import keys
from devlint.flow.transfer.placement import derive, strays
from devlint.immutable import replace
from devlint.sites.base import Act, Step

_PLACES = re.compile(r"parallelize|offload|dispatch|quantize|device|cuda")
"""Names of methods by which libraries' modules put themselves, or their parts, somewhere."""


def method(frame: Frame, call: Call, module: Module, node: ast.Attribute) -> Value:
    """The result of ``module.name(...)``."""
    name = node.attr
    if name in methods.OF_MODULES:
        return moves.move_module(frame, call, module, node)
    value = frame.interpreter.attribute(frame, node, module)
    if isinstance(value, (Module, Function)):
        if isinstance(value, Module):
            return forward(frame, call, value)
        _hand_over(frame, call, module, value)
        return of_method(frame, call, module, value)
    if name in modules.CHAINED:
        return _converted(frame, call, module) if name == "type" else module
    if name in ("register_buffer", "register_parameter"):
        return _register(frame, call, module)
    if name in modules.PARAMETERS:
        own = module.text == "self" and frame.after_init and (module.oid, DEVICE) not in frame.state.heap
        place = frame.own_place() if own else frame.place_of(module)
        return parameters(name, Tensor(place, many=None, buffer=True, origin=frame.origin_of(module)))
    if name == "forward" or (name in methods.ENCODE and module.cls is None):
        return forward(frame, call, module)
    if name in methods.HAND_ON and module.cls is None:
        return generated(frame, call, module)
    if isinstance(value, Opaque):
        api_use.devices(frame, call)
    if module.cls is None and _PLACES.search(name):
        frame.put(module, device.UNKNOWN, None)
    if name not in modules.ONLY_LOOK:
        CHANGED.put(frame.state.heap, module.oid, True)
        havoc.handed(frame, call)
    frame.component(Escapes).everything(call.values())
    frame.component(DeviceQueue).unseen(frame, call.node)
    # a part of the module works where the module is, and what goes in
    part = module.text == "self" and frame.after_init and not isinstance(value, Named)
    return derive(frame, call) if part else UNKNOWN


def _converted(frame: Frame, call: Call, module: Module) -> Module:
    """``module.type(...)``: a tensor type has a device of its own, and what is not known may be one."""
    given = call.argument(0, "dst_type")
    place = type_place(given)
    if place is not None:
        moves.relocate(frame, module, place, Step(call.node, f"converted to a type of {place} here", Act.MOVED))
    elif given is not None and not isinstance(given, (Const, Named)):
        frame.put(module, device.UNKNOWN, None)
    return module


def _hand_over(frame: Frame, call: Call, module: Module, function: Function) -> None:
    """A method of a moved module: what it gives to the module's layers has to be where the module is."""
    place, info = frame.place_of(module), module.cls
    if info is None or module.text == "self" or not place.known or frame.interpreter.muted or module.perhaps:
        return
    given = [(node, value, "") for node, value in call.given() if isinstance(value, Tensor)]
    met = strays(frame, given, place, module)
    if not met or module.spread or frame.interpreter.index.hooked:
        return
    fed = _fed(frame, call, replace(function, bound=frame.interpreter.self_value(info)), [value for _, value, _ in met])
    check(frame, call, module, place, [one for one in met if id(one[1]) in fed])


def _fed(frame: Frame, call: Call, function: Function, values: list[Value]) -> set[int]:
    """Those of the arguments, by identity, that a method hands on to its module's layers as they are."""
    probes = {
        id(value): Opaque(f"{frame.name}:probe@{call.node.lineno}:{place}", "", "tensor", Role.INPUT)
        for place, value in enumerate(values)
    }
    with frame.interpreter.quiet():
        outer = frame.state.heap
        frame.state.heap = dict(outer)
        frame.interpreter.enter(frame, function, call.probing(probes))
        found = {known for known, probe in probes.items() if (probe.key, CONSUMER) in frame.state.heap}
        frame.state.heap = outer
    return found


def parameters(name: str, tensor: Tensor) -> Value:
    """What ``module.parameters()`` and its kin return."""
    if name == "state_dict":
        return Mapping((), tensor)
    return Sequence(None, Sequence((UNKNOWN, tensor), UNKNOWN) if name.startswith("named_") else tensor)


def _register(frame: Frame, call: Call, module: Module) -> Value:
    name, value = call.argument(0, "name"), call.argument(1, "tensor") or call.argument(1, "param")
    known = name.value if isinstance(name, Const) and isinstance(name.value, str) else ANY
    registered = REGISTERED.of(frame.state.heap, module.oid) or ()
    REGISTERED.put(frame.state.heap, module.oid, (*registered, known))
    if isinstance(name, Const) and isinstance(name.value, str) and value is not None:
        held = value
        if isinstance(value, (Tensor, Opaque, Batches)):
            tensor = as_tensor(value)
            held = replace(tensor, certain=True, buffer=True, origin=tensor.origin.plain())
            havoc.exchange(frame, call.node.func, module, held)
        frame.state.heap[(module.oid, name.value)] = held
    return Const(None)


def set_by_name(frame: Frame, module: Module, node: ast.expr, name: Value, value: Value) -> None:
    """``setattr(module, name, value)``: a tensor that was kept as any of the attributes it may be is there no more.

    Its place may be taken by a parameter, which a module registers.
    """
    if is_host(value) or is_number(value):
        return
    named = [name.value] if isinstance(name, Const) else keys(frame, node)
    heap = frame.state.heap
    given: Value = UNKNOWN
    if named is not None and isinstance(value, Tensor) and value.grad == "parameter":
        given = replace(value, buffer=True, origin=value.origin.plain())
    for known, held in [*attributes(heap, module.oid)]:
        if isinstance(held, Tensor) and (named is None or known in named):
            heap[(module.oid, known)] = given


class _Module(ObjectModel):
    def called(self, frame: Frame, call: Call, value: Value) -> Value | None:
        return forward(frame, call, value) if isinstance(value, Module) else None

    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value | None:
        return method(frame, call, value, node) if isinstance(value, Module) else None


def _moved_module(frame: Frame, node: ast.expr, value: Value) -> Module | None:
    """The module that something is which was moved and is called; ``None`` where it may be a tensor."""
    moved = isinstance(value, Tensor) and all(leaf.role is not Role.INPUT for leaf in value.device.leaves())
    if not isinstance(value, Tensor) or not moved or value.certain or not value.origin.story:
        return None
    module = Module(identity(), text=frame.interpreter.text(node))
    frame.put(module, value.device, value.origin.story[0])
    return module


def generated(frame: Frame, call: Call, module: Module) -> Value:
    """What a network generates of what it is given: it looks at each token, and so waits for the last one."""
    result = forward(frame, call, module)
    frame.component(DeviceQueue).wait(frame, call.node)
    return result


class _Tensor(tensor_methods.TensorModel):
    def called(self, frame: Frame, call: Call, value: Value) -> Value | None:
        """What was moved, and is called, is a module."""
        module = _moved_module(frame, call.node.func, value)
        return None if module is None else forward(frame, call, module)

    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value:
        """A method of what was moved, and is no tensor's: it may hand on what it is given to ``forward``."""
        if node.attr in methods.MODES and isinstance(value, Tensor) and not value.certain:
            # a module, which returns itself
            return value
        module = _moved_module(frame, node.value, value) if node.attr in methods.HAND_ON else None
        return super().method(frame, call, value, node) if module is None else generated(frame, call, module)


KINDS[Module] = _Module()
KINDS[Tensor] = _Tensor()
