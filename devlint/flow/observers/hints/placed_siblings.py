"""Buffers that a method makes without a device, beside others that the same function of torch makes on one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint import device
from devlint.flow.catalog.creation import SIZED
from devlint.flow.catalog.methods import MOVERS
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import as_tensor
from devlint.flow.domain.values import Value
from devlint.flow.observers.hints.mixed_operands import is_fresh
from devlint.flow.syntax import names
from devlint.immutable import replace
from devlint.sites.base import Operand, Scope
from devlint.sites.placement import Hint, HintKind

_ENOUGH = 3
"""So many on one device show that those of the object belong there."""


class PlacedSiblings(Observer):
    """What a method keeps in attributes of its object."""

    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._placed: dict[tuple[str, str], dict[ast.AST, tuple[str, Operand]]] = {}
        self._fresh: dict[tuple[str, str], dict[ast.AST, tuple[Scope, Operand]]] = {}

    def on_store(self, frame: Frame, target: ast.Attribute, base: Value, value: Value, node: ast.AST) -> None:
        """An attribute is given a tensor of a size, with a device or without."""
        # what a module keeps does not move with it, whatever is beside it
        module = frame.owner is not None and frame.owner.is_module
        if module or not names.of_self(target) or not isinstance(node, ast.Call):
            return
        path = frame.interpreter.index.resolve(names.called(node))
        if path.rpartition(".")[2] not in SIZED:
            return
        said = next((ast.unparse(word.value) for word in node.keywords if word.arg == "device"), "")
        name, key = names.dotted(target), (frame.name, path)
        operand = replace(frame.operand(node, value), text=name)
        if said:
            known = as_tensor(value).device.known
            place = operand.device if known else device.symbol(f"{frame.name}:{said}", said)
            self._placed.setdefault(key, {})[node] = said, replace(operand, device=place)
        elif _is_new(value) and not _is_moved(frame, name):
            self._fresh.setdefault(key, {})[node] = scope_of(frame), operand

    def sites(self) -> Iterator[Hint]:
        """A hint for each that is without a device where all others are told the same one."""
        for key, fresh in self._fresh.items():
            placed = self._placed.get(key, {})
            first, beside = next(iter(placed.items()), (None, ("", Operand(ast.Pass(), ""))))
            alike = {said for said, _ in placed.values()}
            if first is None or len(placed) < _ENOUGH or len(alike) > 1 or beside[1].device.accelerates() is False:
                continue
            for scope, stray in fresh.values():
                yield Hint(first, scope, HintKind.SIBLING, stray, beside[1])


def _is_new(value: Value) -> bool:
    """Whether it is a tensor of the default device, whatever keeps it by now."""
    tensor = as_tensor(value)
    return is_fresh(replace(tensor, origin=replace(tensor.origin, attribute=None)))


def _is_moved(frame: Frame, name: str) -> bool:
    """Whether a method of the class moves what an attribute holds."""
    inside = frame.owner.of(ast.Attribute) if frame.owner is not None else ()
    return any(node.attr in MOVERS and names.dotted(node.value) == name for node in inside)
