"""Calls of modules: their inputs have to be where they are, and what ``forward`` of the project's own classes does.

The first tensor of a call meets the module's layers.  Others, lengths and sizes, may well stay on the CPU; they meet
them where ``forward`` is seen to bring them together with anything elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint import device
from devlint.device import Device, Kind, Role
from devlint.flow.catalog import modules
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import CONSUMER, DEVICE, ORIGIN
from devlint.flow.domain.objects import Function, Module, mapped
from devlint.flow.domain.provenance import NO_ORIGIN, Origin
from devlint.flow.domain.tensors import Batches, Tensor, as_tensor, is_definite
from devlint.flow.domain.values import UNKNOWN, Const, Mapping, Opaque, Sequence, Unknown, Value
from devlint.flow.program.identity import identity
from devlint.flow.program.module_classes import holds_only_tensors
from devlint.flow.program.mutations import moves_inputs
from devlint.flow.program.symbols import ClassInfo
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer import loop_invariance
from devlint.flow.transfer.constructor_devices import as_told
from devlint.flow.transfer.device_queue import DeviceQueue
from devlint.flow.transfer.placement import Met, blend, derive, is_sure, is_tensor, meet, returned, strays
from devlint.immutable import replace
from devlint.sites.base import Step
from devlint.sites.placement import COPYING, Forward, Operation, OperationKind


def forward(frame: Frame, call: Call, module: Module) -> Value:
    """Calling a module: its inputs have to be where it is, and it is given work to do there."""
    queue, place = frame.component(DeviceQueue), frame.place_of(module)
    if module.cls is not None and place.known:
        queue.work(frame, call.node, place)
        # its own code says whether it waits in the end
        return _called(frame, call, module)
    result = _called(frame, call, module)
    if place.known and (module.path or names.dotted(call.node.func) in loop_invariance.networks(frame)):
        queue.work(frame, call.node, place)
    elif not module.path.startswith("torch.nn."):
        # what was moved may be a pipeline, which waits for its results
        queue.unseen(frame, call.node)
    return result


def _called(frame: Frame, call: Call, module: Module) -> Value:
    if module.perhaps or frame.interpreter.index.hooked:
        return derive(frame, call)
    operands = [(node, value, "") for node, value in _inputs(call, module)]
    tensors_in = [met for met in operands if is_tensor(met[1])]
    place = frame.place_of(module)
    clash = False
    if module.has_state and not module.spread and not idle(module):
        tensors_in = [(node, _taken(module, value), role) for node, value, role in tensors_in]
        unread = [call.argument_node(*mask) for mask in modules.CAUSAL_MASKS.get(module.path, ())]
        tensors_in = [met for met in tensors_in if met[0] not in unread]
        clash = check(frame, call, module, place, _due(frame, call, module, place, tensors_in))
        for observer in events.heard(frame, "on_module_call"):
            observer.on_module_call(frame, call, module, place)
    elif module.path == "torch.nn.CTCLoss":
        # it moves its targets and lengths itself
        pass
    elif not module.has_state and module.path.endswith("Loss"):
        meet(frame, call.node, module.text, OperationKind.LOSS_TARGET, tensors_in)
    elif not module.has_state and len(tensors_in) > 1 and module.path.startswith("torch.nn."):
        meet(frame, call.node, module.text, OperationKind.OPERANDS, tensors_in)
    if module.has_state and place.role is Role.PLACE:
        for _, value, _ in tensors_in:
            frame.state.heap.setdefault((as_tensor(value).device.symbol, CONSUMER), place)
    definite = [met[1] for met in tensors_in if is_definite(met[1])]
    if clash:
        place = _after(frame, place, [as_tensor(value).device for _, value, _ in tensors_in])
        if not place.known:
            return _output(frame, call, module, place, definite)
    if module.cls is not None:
        return own(frame, call, module, place)
    return _output(frame, call, module, place, definite)


def _after(frame: Frame, place: Device, given: list[Device]) -> Device:
    """Where a module is taken to be once its inputs have met it elsewhere, so that one mistake is told once.

    Nowhere, if the call raises: nothing comes of it.  Where a caller says where things are, it is with its input.
    """
    if all(map(is_sure, (place, *given))):
        return device.UNKNOWN
    apart = (where for where in given if frame.settled(where).differs(frame.settled(place)))
    return next(apart) if place.kind is Kind.CPU else place


def _taken(module: Module, value: Value) -> Value:
    """What a module of a library is given: a tensor, or it would raise; of a network, one that has dimensions."""
    if not module.path or not isinstance(value, Tensor):
        return value
    sized = value.many is None and module.path.startswith(modules.TAKE_NO_NUMBERS)
    return replace(value, certain=True, many=True if sized else value.many)


def check(frame: Frame, call: Call, module: Module, place: Device, inputs: list[Met]) -> bool:
    """Whether some of the inputs surely are not where the module is: a site."""
    clashing = strays(frame, inputs, place, module)
    alone = clashing and module.cls is not None and holds_only_tensors(module.cls)
    if alone and not meets_state(frame, call, module, [value for _, value, _ in clashing]):
        return False
    if clashing:
        for observer in events.heard(frame, "on_stray_inputs"):
            observer.on_stray_inputs(frame, clashing)
        given = tuple(frame.operand(node, value, role) for node, value, role in inputs)
        called, story = frame.interpreter.text(call.node.func), frame.origin_of(module).story
        frame.emit(Forward(call.node, scope_of(frame), called, frame.settled(place), story, given))
    return bool(clashing)


def _output(frame: Frame, call: Call, module: Module, place: Device, inputs: list[Value]) -> Value:
    """What a call returns: tensors on the module's device, else with the inputs."""
    if not module.path.startswith("torch.nn."):
        # a class of a row that moves its inputs has one place
        return UNKNOWN if module.spread and not module.path else returned(frame, call, place)
    if module.path in modules.CONTAINERS or module.path in modules.WRAPPERS:
        if module.has_state and module.spread:
            # layers that nobody saw move with the module that holds them, and return what may be no tensor
            return derive(frame, call) if place.role is Role.PLACE else UNKNOWN
        if module.has_state:
            return Tensor(place, many=True, origin=frame.origin_of(module), grad="graph")
        return blend(*inputs) if inputs else UNKNOWN
    many: bool | None = None if module.path.endswith("Loss") else True
    if not module.has_state:
        result = blend(*inputs) if inputs else Tensor(device.UNKNOWN)
        rank = result.rank if modules.KEEPS_RANK.match(module.path) else None
        return replace(result, many=many if many is None else result.many, rank=rank, certain=True)
    rank = as_tensor(inputs[0]).rank if len(inputs) == 1 and modules.KEEPS_RANK.match(module.path) else None
    result = Tensor(place, many=many, rank=rank, certain=True, origin=frame.origin_of(module), grad="graph")
    if module.path in modules.RECURRENT:
        state: Value = Sequence((result, result), result) if module.path.endswith("LSTM") else result
        return Sequence((result, state), UNKNOWN)
    if module.path == "torch.nn.MultiheadAttention":
        return Sequence((result, UNKNOWN), UNKNOWN)
    return result


def _inputs(call: Call, module: Module) -> list[tuple[ast.AST, Value]]:
    size = call.argument_node(*modules.OUTPUT_SIZES[module.path]) if module.path in modules.OUTPUT_SIZES else None
    # of batches, each part is an input
    found: list[tuple[ast.AST, Value]] = [one for one in call.spread if isinstance(one[1], Batches)]
    for node, value in call.given():
        if node is size:
            continue
        if isinstance(value, Sequence) and value.items is not None:
            inner = (
                node.elts
                if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == len(value.items)
                else [node] * len(value.items)
            )
            found.extend(zip(inner, value.items, strict=True))
        elif isinstance(value, Mapping):
            found.extend((node, held) for _, held in value.items)
        else:
            found.append((node, value))
    return found


def placed_stranger(frame: Frame, called: Opaque) -> Module | None:
    """Something unknown that was moved in place and is now called: a module."""
    place = DEVICE.of(frame.state.heap, called.key)
    if place is None or called.managed is not None:
        # what a library places, or a pipeline, brings what it is given there
        return None
    module = Module(identity(), text=called.text, has_state=True)
    frame.put(module, place, next(iter((ORIGIN.of(frame.state.heap, called.key) or NO_ORIGIN).story), None))
    return module


def _due(frame: Frame, call: Call, module: Module, place: Device, inputs: list[Met]) -> list[Met]:
    """Those of the tensors that go into a module which have to be where the module is, as far as is known."""
    if not module.path and module.cls is None and _takes_text(call):
        # a pipeline, which moves what it makes of the text, and what it is given besides
        return []
    if module.path in modules.WRAPPERS and isinstance(module.wraps, Module):
        module = module.wraps
    if len(inputs) < 2 or module.path.startswith("torch.nn."):
        return inputs
    places = [frame.settled(as_tensor(value).device) for _, value, _ in inputs]
    strays = [number for number, where in enumerate(places) if where.differs(frame.settled(place))]
    if not strays or strays[0] == 0 or not all(places[number].kind is Kind.CPU for number in strays):
        return inputs
    missed = _missed(frame, call, module.cls, [inputs[number][1] for number in strays])
    return [met for number, met in enumerate(inputs) if number not in strays or id(met[1]) in missed]


def _takes_text(call: Call) -> bool:
    """Whether the first that a call is given is a text, of which no network can make anything."""
    _, first = next(iter(call.given()), (None, UNKNOWN))
    return isinstance(first, Const) and isinstance(first.value, str)


def _missed(frame: Frame, call: Call, info: ClassInfo | None, strays: list[Value]) -> set[int]:
    """Those of the arguments, by identity, which ``forward`` brings together with what is elsewhere."""
    if info is None:
        return set()
    marks = {id(value): Step(call.node, f"argument {number}") for number, value in enumerate(strays)}
    probes = {
        id(value): Tensor(as_tensor(value).device, many=as_tensor(value).many, origin=Origin((marks[id(value)],)))
        for value in strays
    }
    heard = frame.interpreter.overhear(frame, info, call.probing(probes))
    return {known for known, mark in marks.items() if any(_is_stray(site, mark) for site in heard)}


def _is_stray(site: Operation | Forward, mark: Step) -> bool:
    """Whether a claim is of the argument: what it was computed from is told in its story."""
    operands = site.inputs if isinstance(site, Forward) else site.operands
    return any(mark in operand.story for operand in operands if operand.device.role is not Role.PLACE)


def idle(module: Module) -> bool:
    """Whether ``forward`` of a class of the file does nothing with its input, or with the module's own parts."""
    method = module.cls.method("forward") if module.cls is not None else None
    if method is None:
        return False
    own = any(isinstance(node, ast.Name) and node.id in ("self", "super") for node in method.nodes)
    taken = [*method.node.args.posonlyargs, *method.node.args.args][1:]
    return not own or (len(taken) == 1 and not _reads(method.node.body, taken[0].arg))


def _reads(body: list[ast.stmt], name: str) -> bool:
    """Whether the statements read a name before they bind it."""
    for statement in body:
        if any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in nodes.walk(statement)):
            return True
        if isinstance(statement, ast.Assign) and any(names.dotted(target) == name for target in statement.targets):
            return False
    return False


def own(frame: Frame, call: Call, module: Module, place: Device) -> Value:
    """What ``forward`` of a class of the file returns, seen from where the module is."""
    info = module.cls
    method = info.method("forward") if info else None
    if info is None or method is None:
        return derive(frame, call)
    near = UNKNOWN if moves_inputs(info) or not place.known else returned(frame, call, place)
    interpreter = frame.interpreter
    with interpreter.quiet():
        heap = frame.state.heap
        result = interpreter.enter(frame, Function(method, (), interpreter.self_value(info)), call)
        frame.state.heap = heap
    if not place.known and (not isinstance(result, Tensor) or not result.device.known or result.device.symbol):
        return derive(frame, call)
    return near if result is UNKNOWN else _seen_from(frame, module, result, place)


def of_method(frame: Frame, call: Call, module: Module, function: Function) -> Value:
    """What another method of a class of the file returns; of the module's parts, its class knows where they are."""
    result = frame.interpreter.enter(frame, function, call)
    info, place = module.cls, frame.place_of(module)
    known = info is not None and place.known and module.text != "self" and not module.perhaps
    if info is None or not known or not _lacks(result):
        return result
    interpreter = frame.interpreter
    with interpreter.quiet():
        heap = frame.state.heap
        inside = interpreter.enter(frame, replace(function, bound=interpreter.self_value(info)), call)
        frame.state.heap = heap
    return _completed(result, _seen_from(frame, module, inside, place))


def _lacks(value: Value) -> bool:
    """Whether something of a result is unknown."""
    return isinstance(value, (Unknown, Opaque)) or (isinstance(value, Sequence) and any(map(_lacks, value.items or ())))


def _completed(value: Value, other: Value) -> Value:
    """A result, with the tensors of another one in the place of what is unknown of it."""
    if isinstance(value, (Unknown, Opaque)):
        return other if value is UNKNOWN or isinstance(other, Tensor) else value
    if not isinstance(value, Sequence) or not isinstance(other, Sequence):
        return value
    if value.items is None or other.items is None or len(value.items) != len(other.items):
        return value
    return replace(value, items=tuple(map(_completed, value.items, other.items)))


def _seen_from(frame: Frame, module: Module, value: Value, place: Device) -> Value:
    """What a method returned that ran with any ``self`` of the class: where it is with this module, at ``place``."""
    if isinstance(value, Tensor) and module.cls is not None:
        if value.device.symbol == module.cls.place:
            return replace(value.placed(place, frame.origin_of(module).story), grad="graph")
        # whoever has it now does not care what held it
        value = replace(value, origin=replace(value.origin, attribute=None, attribute_of=None))
        return replace(value, device=as_told(frame, module, value.device))
    return mapped(value, lambda held: _seen_from(frame, module, held, place))


def meets_state(frame: Frame, call: Call, module: Module, strays: Iterable[Value]) -> bool:
    """Whether ``forward`` surely brings one of the arguments together with a tensor, not a number, of the module.

    A layer meets its input; a buffer may be a number, which may meet any device, or be there for another method.
    It is entered with the arguments on the CPU, and the module wherever its caller puts it.
    """
    info = module.cls
    if info is None:
        return False
    probing = call.probing({id(value): Tensor(device.CPU, many=True) for value in strays})
    return any(_proves(site, info) for site in frame.interpreter.overhear(frame, info, probing))


def _proves(site: Operation | Forward, info: ClassInfo) -> bool:
    if isinstance(site, Forward):
        return site.device.role is Role.PLACE
    own = [operand for operand in site.operands if operand.device.symbol == info.place]
    # an index may be on the CPU, whatever it is an index of
    harmless = site.kind is OperationKind.INDEX or site.kind in COPYING
    return not harmless and any(operand.many is True for operand in own)
