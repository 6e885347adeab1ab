"""What a class gets from the constructor of a base, where its own constructor settles what that one does."""

from __future__ import annotations

import ast

from devlint.flow.domain import parameters
from devlint.flow.domain.heap import Heap
from devlint.flow.domain.objects import Module
from devlint.flow.domain.values import UNKNOWN
from devlint.flow.program.symbols import ClassInfo
from devlint.flow.syntax import names


def settled(heap: Heap, info: ClassInfo, parent: ClassInfo) -> Heap:
    """What the constructor of a base leaves, without the wrappers that are made under a setting which a class denies.

    It denies one with ``super().__init__(config, parallel=False)``.
    """
    denied = _denied(info, parent)
    if not denied:
        return heap
    return {key: _inside(value, denied) if isinstance(value, Module) else value for key, value in heap.items()}


def _inside(module: Module, denied: frozenset[str]) -> object:
    """The module without its wrapper, where that hangs on something that is denied."""
    hangs = any(guard.text in denied for guard in module.perhaps)
    return (module.wraps or UNKNOWN) if hangs else module


def _denied(info: ClassInfo, parent: ClassInfo) -> frozenset[str]:
    """The parameters of a base's constructor that a class's own one always gives something false."""
    own, inherited = info.methods.get("__init__"), parent.method("__init__")
    if own is None or inherited is None:
        return frozenset()
    calls = [node for node in own.nodes if isinstance(node, ast.Call) and names.of_super(node) == "__init__"]
    slots = parameters.slots(inherited)[1:]
    always: set[str] | None = None
    for call in calls:
        spread = any(isinstance(argument, ast.Starred) for argument in call.args)
        placed = zip((slot.name for slot in slots), () if spread else call.args, strict=False)
        given = {**dict(placed), **{keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}}
        false = {name for name, value in given.items() if isinstance(value, ast.Constant) and not value.value}
        always = false if always is None else always & false
    return frozenset(slot.unknown.key for slot in slots if slot.name in (always or ()))
