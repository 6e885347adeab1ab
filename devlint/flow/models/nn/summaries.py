"""Summaries of modules whose class the project defines: what ``forward`` does with its input, and what it returns."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint import device
from devlint.device import Device, Role
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.values import UNKNOWN, Function, Module, Opaque, Sequence, Stateful, Tensor, Unknown, Value
from devlint.flow.program.mutations import moves_inputs
from devlint.flow.program.symbols import ClassInfo
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer.placement import derive, returned
from devlint.immutable import replace
from devlint.sites.base import Step
from devlint.sites.placement import Forward, Operation, OperationKind


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
    return near if result is UNKNOWN else _seen_from(result, info.place, place, frame.story_of(module))


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
    return _completed(result, _seen_from(inside, info.place, place, frame.story_of(module)))


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


def _seen_from(value: Value, symbol: str, place: Device, story: tuple[Step, ...]) -> Value:
    if isinstance(value, Tensor):
        if value.device.symbol == symbol:
            return replace(value, device=place, story=story, grad="graph")
        # whoever has it now does not care what held it
        return replace(value, attribute=None, attribute_of=None)
    if isinstance(value, Stateful) and value.tensors:
        return replace(value, tensors=tuple(_seen_from(held, symbol, place, story) for held in value.tensors))
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(_seen_from(item, symbol, place, story) for item in value.items)
        return replace(value, items=items, head=(), item=_seen_from(value.item, symbol, place, story))
    return value


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
    return site.kind is not OperationKind.INDEX and any(operand.many is True for operand in own)
