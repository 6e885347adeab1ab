"""What ``forward`` of a class of the file does with its input, and what it returns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.device import Device
from devlint.flow import names, nodes
from devlint.flow.operations import derive, returned
from devlint.flow.values import UNKNOWN, Function, Module, Sequence, Tensor, Value
from devlint.immutable import replace
from devlint.sites import Step

if TYPE_CHECKING:
    from devlint.flow.frame import Call, Frame


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
    near = UNKNOWN if info.moves_inputs or not place.known else returned(frame, call, place)
    machine = frame.machine
    machine.muted += 1
    heap = frame.state.heap
    result = machine.enter(frame, Function(method, (), machine.self_value(info)), call)
    frame.state.heap = heap
    machine.muted -= 1
    if not place.known and (not isinstance(result, Tensor) or not result.device.known or result.device.symbol):
        return derive(frame, call)
    return near if result is UNKNOWN else _seen_from(result, info.place, place, frame.story_of(module))


def _seen_from(value: Value, symbol: str, place: Device, story: tuple[Step, ...]) -> Value:
    if isinstance(value, Tensor):
        if value.device.symbol == symbol:
            return replace(value, device=place, story=story, grad="graph")
        # whoever has it now does not care what held it
        return replace(value, attribute=None, attribute_of=None)
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(_seen_from(item, symbol, place, story) for item in value.items)
        return replace(value, items=items, head=(), item=_seen_from(value.item, symbol, place, story))
    return value
