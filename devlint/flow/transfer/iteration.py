"""Iteration: what one round of a loop, or one place of an unpacking, gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.device import AN_ITEM, ITEMS, Device, EachItem, Role
from devlint.device import UNKNOWN as UNKNOWN_DEVICE
from devlint.flow.catalog.concepts import ARRAY, MODULE
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.heap import CHILDREN
from devlint.flow.domain.objects import Module, Stateful
from devlint.flow.domain.tensors import Batches, Loader, Tensor, as_tensor
from devlint.flow.domain.values import UNKNOWN, Const, Mapping, Opaque, Sequence, Value
from devlint.flow.program.identity import identity
from devlint.flow.transfer.indexing import ROUND, array_item, item, member, part
from devlint.immutable import replace
from devlint.source.syntax import walk

_MOST_ITEMS = 64

ELEMENT = Const("no elements")
"""What iterating something empty yields."""


def iterate(value: Value) -> Value:
    """What one round of ``for x in value`` binds."""
    if isinstance(value, Loader):
        return Batches(value.oids, value.batches, value.certain, parts=value.parts)
    if isinstance(value, Batches):
        return value.some()
    if isinstance(value, Module):
        return member(value)
    if isinstance(value, Sequence):
        if value.items is not None and len(value.items) == 0 and not value.mutable:
            return ELEMENT
        return value.item
    if isinstance(value, Tensor):
        return item(value)
    if isinstance(value, Opaque) and value.hint == "tensor":
        return item(as_tensor(value))
    if isinstance(value, Opaque) and value.hint == "tensors":
        return replace(value, key=f"{value.key}{ROUND}", text=f"{AN_ITEM}{value.text}", hint="tensor")
    if isinstance(value, Opaque) and value.role is Role.INPUT:
        return replace(value, key=f"{value.key}{ROUND}", text=f"{AN_ITEM}{value.text}")
    if isinstance(value, Stateful) and value.path == ARRAY:
        return array_item(value)
    return part(value, "") if isinstance(value, Opaque) else UNKNOWN


def taken(frame: Frame, node: ast.expr, value: Value, target: ast.expr, within: ast.AST) -> Value:
    """What one round of a loop over ``node`` gets; of several modules, what moves each of them where it is moved."""
    listed = value.items or () if isinstance(value, Sequence) else ()
    modules = [part for part in listed if isinstance(part, Module)]
    if len(modules) > 1 and len(modules) == len(listed):
        return _any_of(frame, modules)
    item = iterate(value)
    moved = frame.interpreter.loop_text(within).moved
    if moved and not isinstance(item, Module) and any(getattr(part, "id", "") in moved for part in walk(target)):
        # as what it is taken from, under another name
        for part in walk(node):
            if isinstance(part, (ast.Name, ast.Attribute)):
                with frame.interpreter.quiet():
                    held = frame.evaluate(part)
                for module in _modules(held):
                    frame.put(module, UNKNOWN_DEVICE, None)
    return item


def _any_of(frame: Frame, modules: list[Module]) -> Module:
    """A module that stands for several."""
    first, places = modules[0], {frame.place_of(module) for module in modules}
    alike = {(module.path, module.cls) for module in modules} == {(first.path, first.cls)}
    kind = (first.path, first.cls) if alike else (MODULE, None)
    stateful = any(module.has_state for module in modules)
    made = Module(identity(), *kind, has_state=stateful, spread=any(module.spread for module in modules))
    frame.put(
        made, places.pop() if len(places) == 1 else UNKNOWN_DEVICE, next(iter(frame.origin_of(first).story), None)
    )
    CHILDREN.put(frame.state.heap, made.oid, tuple(modules))
    return made


def _modules(value: Value) -> Iterator[Module]:
    """The modules in a value, as far as it is a container."""
    if isinstance(value, Module):
        yield value
    elif isinstance(value, (Sequence, Mapping)):
        for part in value.parts():
            yield from _modules(part)


def each(value: Value, row: int) -> Value:
    """The item that one round gets: of several kinds it is one, the same throughout the round."""
    if isinstance(value, Tensor) and ITEMS in value.device.guards():
        return replace(value, device=_taken(value.device, EachItem(row)))
    if isinstance(value, Sequence) and value.items is not None and not value.mutable:
        return replace(value, items=tuple(each(item, row) for item in value.items))
    return value


def _taken(place: Device, guard: EachItem) -> Device:
    """Where one item is, of a list that holds several kinds, under some conditions perhaps."""
    if place.then is None or place.other is None:
        return place
    then, other = _taken(place.then, guard), _taken(place.other, guard)
    return replace(place, guard=guard if place.guard is ITEMS else place.guard, then=then, other=other)


def of_all(value: Value) -> Value:
    """What a list holds that got one of these in each round."""
    if isinstance(value, Tensor) and isinstance(value.device.guard, EachItem):
        return replace(value, device=replace(value.device, guard=ITEMS))
    return value


def runs_once(node: ast.expr, value: Value) -> bool:
    """Whether a loop over something surely has one round."""
    if isinstance(value, Sequence) and value.items is not None and len(value.items) == 1:
        return not value.mutable or isinstance(node, (ast.List, ast.Tuple))
    return _range(node) == 1


def runs(node: ast.expr) -> bool:
    """Whether a loop over an expression surely has a round."""
    return _range(node) > 0


def rounds_of(frame: Frame, generators: list[ast.comprehension]) -> int:
    """How often a comprehension makes something, where that is a number in the code or the items are known; else 0."""
    node = generators[0].iter
    held = frame.lookup(node.id) if isinstance(node, ast.Name) else None
    number = len(held.items) if isinstance(held, Sequence) and held.items is not None else _range(node)
    alone = len(generators) == 1 and not generators[0].ifs
    return number if alone and 0 < number <= _MOST_ITEMS else 0


def _range(node: ast.expr) -> int:
    """The number in ``range(3)``; 0 for anything else."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
    last = node.args[0] if called and isinstance(node, ast.Call) and len(node.args) == 1 else None
    return last.value if isinstance(last, ast.Constant) and isinstance(last.value, int) else 0


def part_of(value: Value, position: int) -> Value:
    """What the name at ``position`` gets when ``value`` is unpacked."""
    if isinstance(value, Opaque) and value.hint != "tensor" and value.role is Role.INPUT:
        hint = "tensor" if value.hint == "tensors" else value.hint
        return replace(value, key=f"{value.key}[{position}]", text=f"{value.text}[{position}]", hint=hint)
    if isinstance(value, Batches):
        return value.at(position)
    if isinstance(value, (Tensor, Sequence, Opaque)):
        return iterate(value)
    return UNKNOWN
