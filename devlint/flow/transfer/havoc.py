"""Calls that may give a module parts which are not where it is, or that may put it somewhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from devlint import device
from devlint.device import Device
from devlint.flow.catalog import torch_table
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.heap import CHANGED, CHILDREN, DEVICE, attributes
from devlint.flow.domain.objects import Instance, Module
from devlint.flow.domain.tensors import Batches, Tensor, placement
from devlint.flow.domain.values import Mapping, Opaque, Sequence, Unknown, Value
from devlint.flow.program.def_use import called
from devlint.flow.program.mutations import places
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.flow.syntax import names
from devlint.flow.syntax.nodes import derived
from devlint.immutable import replace

_GIVING = frozenset("append extend insert add_module register_module register_parameter __setattr__ setattr".split())
_DEEPEST = 3
_PLACING = re.compile(
    r"device|cuda|gpu|(?<!re)place|(?<!re)mov(e|ing)|prepare|set_?up|wrap|distribut|parallel|dispatch|shard|offload"
    r"|summary|(?:^|_)(?:train|fit|benchmark|profile|launch)(?:_|$|er)"
)
"""In the name of a function that cannot be seen: it may well put a module somewhere."""


def grown(frame: Frame, call: Call, info: FunctionInfo | None = None, owner: Value | None = None) -> None:
    """A call of ``info``, or of what cannot be seen: where the modules that it gets are is uncertain from here on."""
    heap = frame.state.heap
    given = [owner, *call.values()]
    if isinstance(owner, Instance):
        given += [held for _, held in attributes(heap, owner.oid) if isinstance(held, Module)]
    modules = [value for value in given if isinstance(value, Module)]
    if not modules or (info is not None and not _is_giving(info)):
        return
    for value in modules:
        CHANGED.put(heap, value.oid, True)


@derived
def _is_giving(info: FunctionInfo) -> bool:
    """The same of each call of a function."""
    return _gives(info)


def _gives(info: FunctionInfo, depth: int = 0) -> bool:
    """Whether a function of the file makes modules, or puts something into a module."""
    for node, path in called(info):
        name = path.rpartition(".")[2] or getattr(node.func, "attr", "")
        made = info.index.classes.get(path)
        if name in _GIVING or torch_table.module(path) is not None or (made is not None and made.is_module):
            return True
        inner = info.owner.method(name) if info.owner is not None and path.startswith("self.") else None
        if inner is not None and depth < _DEEPEST and _gives(inner, depth + 1):
            return True
    return False


def handed(frame: Frame, call: Call, receiver: Value | None = None) -> None:
    """A call of what is not read: if anything speaks of a place, what it gets may be elsewhere afterwards.

    That is a module, or what is in a batch.  It gets what it is called on, too, and what objects and lists hold.
    """
    spoken = names.dotted(call.node.func).rpartition(".")[2].lower()
    if _PLACING.search(spoken) or "device" in call.keywords or any(placement(value) for value in call.values()):
        _lose(frame, (*call.values(), *filter(None, (receiver,))))


def attached(frame: Frame, base: Value, value: Value) -> None:
    """A module becomes an attribute of something of which nothing is known: a module, which then takes it along."""
    if isinstance(value, Module) and not isinstance(base, (Module, Instance)):
        _lose(frame, (value,))


def kept(frame: Frame, call: Call, info: ClassInfo, made: Module | None) -> None:
    """Modules go into an object of a class of the project, which may be a module and then takes them along."""
    if places(method for known in info.linearization() for method in known.methods.values()):
        _lose(frame, call.values())
    elif made is not None:
        inner = tuple(value for value in call.values() if isinstance(value, Module))
        CHILDREN.put(frame.state.heap, made.oid, inner)


def _lose(frame: Frame, values: Iterable[Value]) -> None:
    for value in _held(frame, values):
        if isinstance(value, Batches):
            frame.state.moves(value)
        # what has been put somewhere is probably meant to be there
        elif frame.place_of(value).implied:
            frame.put(value, device.UNKNOWN, None)


def _held(frame: Frame, values: Iterable[Value], depth: int = 0) -> Iterator[Module | Batches]:
    """The modules and batches among some values, and in the objects and containers among them."""
    for value in map(frame.state.content, values):
        held: Iterable[object] = ()
        if isinstance(value, Module) or (isinstance(value, Batches) and not (value.certain and value.part)):
            yield value
        elif isinstance(value, Instance):
            held = [part for _, part in attributes(frame.state.heap, value.oid)]
        elif isinstance(value, (Sequence, Mapping)):
            held = value.parts()
        if held and depth < _DEEPEST:
            yield from _held(frame, [part for part in held if isinstance(part, Value)], depth + 1)


def exchange(frame: Frame, node: ast.expr, base: Value, value: Value) -> None:
    """``base``, which is ``node``, is given ``value``: it and what it is a part of may not be in one place any more."""
    known = isinstance(base, Module)
    if not known and not isinstance(value, (Module, Tensor)):
        # what is set in an object of the unknown is a part of the whole only if it is sure to be one
        return
    for whole in (base, *_around(frame, node)):
        if not isinstance(whole, Module):
            continue
        replaces = known and not (whole is base and whole.text == "self")
        if _fits(frame, value, frame.place_of(whole), replaces):
            continue
        if whole.text != "self":
            frame.put(whole, device.UNKNOWN, None)
        elif (whole.oid, DEVICE) in frame.state.heap:
            CHANGED.put(frame.state.heap, whole.oid, True)


def refilled(frame: Frame, target: ast.Attribute, base: Value, value: Value) -> None:
    """``p.data = ...``: ``p`` may be each parameter of a module in turn, so that all are where their new data are."""
    if target.attr != "data" or not isinstance(target.value, ast.Name) or not isinstance(base, Tensor):
        return
    if base.buffer and not (isinstance(value, Tensor) and value.device.same(base.device) is True):
        heap = frame.state.heap
        parts = {key: held for key, held in heap.items() if isinstance(held, Tensor) and held.buffer}
        heap.update({key: held.placed(device.UNKNOWN, ()) for key, held in parts.items()})


def move(frame: Frame, place: Device) -> None:
    """A module leaves ``place``: its parameters go with it, under whatever name they are known."""
    env = frame.state.env
    for name, value in env.items():
        if isinstance(value, Tensor) and value.buffer and value.device == place:
            env[name] = replace(value, device=device.UNKNOWN)


def _around(frame: Frame, node: ast.expr) -> list[Value]:
    """What an expression goes through: `model` and `model.head` of `model.head.linear`."""
    found: list[Value] = []
    with frame.interpreter.quiet():
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
            found.append(frame.evaluate(node))
    return found


def _fits(frame: Frame, value: Value, place: Device, replaces: bool) -> bool:
    """Whether all of a module that was at ``place`` is still there when it has been given ``value``.

    ``replaces`` says that a tensor which is no parameter may take the place of a buffer.
    """
    if isinstance(value, Module):
        return not value.has_state or frame.place_of(value).same(place) is True
    if isinstance(value, Tensor):
        return not (value.buffer or replaces) or value.device.same(place) is True
    return not isinstance(value, (Batches, Opaque, Unknown))
