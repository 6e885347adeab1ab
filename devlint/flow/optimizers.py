"""Optimizers made of a module's parameters before the module is moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.device import Device, Kind
from devlint.flow import nodes
from devlint.flow.values import Module, Stateful, Value
from devlint.immutable import immutable, replace
from devlint.sites import Optimize, Scope, Step

if TYPE_CHECKING:
    from devlint.flow.frame import Call, Frame

_EAGER = frozenset({"torch.optim.Adagrad"})
"""Optimizers that allocate their state when they are made."""
_GIVES = frozenset({"parameters", "named_parameters"})
"""Methods that yield a module's parameters."""


@immutable(frozen=True, slots=True)
class _Known:
    path: str
    module: int
    made: Device
    scope: Scope
    loaded: Step | None = None
    moved: Step | None = None
    stepped: Device | None = None


class Optimizers:
    """The optimizers of a file whose module was made on the CPU."""

    def __init__(self) -> None:
        self._known: dict[ast.AST, _Known] = {}

    def make(self, frame: Frame, call: Call, path: str) -> Stateful:
        """The value of ``torch.optim.X(model.parameters())``."""
        source = call.argument_node(0, "params")
        module = _module(frame, source)
        if module is not None:
            for node, known in list(self._known.items()):
                if known.module == module.oid and known.moved is not None and node is not call.node:
                    # made again after the move
                    del self._known[node]
            place = frame.place_of(module)
            if place.kind is Kind.CPU:
                self._known.setdefault(call.node, _Known(path, module.oid, place, frame.scope()))
        return Stateful(path, node=call.node)

    def method(self, receiver: Value, call: Call, name: str) -> None:
        """A method call, perhaps ``optimizer.load_state_dict(...)``."""
        node = receiver.node if isinstance(receiver, Stateful) and name == "load_state_dict" else None
        known = self._known.get(node) if node is not None else None
        if known is not None and known.moved is None and node is not None:
            self._known[node] = replace(known, loaded=Step(call.node, "its state is loaded here"))

    def move(self, module: Module, target: Device, step: Step) -> None:
        """A module goes to another device."""
        for node, known in self._known.items():
            if known.module == module.oid and known.moved is None and target.differs(known.made):
                self._known[node] = replace(known, moved=step, stepped=target)

    def sites(self) -> Iterator[Optimize]:
        """A site for each optimizer that was made too early."""
        for node, known in self._known.items():
            if known.moved is not None and known.stepped is not None:
                eager = known.path in _EAGER or known.loaded is not None
                name = known.path.rpartition(".")[2]
                yield Optimize(node, known.scope, name, known.made, known.stepped, known.moved, eager, known.loaded)


def _module(frame: Frame, source: ast.expr | None) -> Module | None:
    """The one module whose ``parameters()`` an expression is made of: filtered, listed or in groups."""
    found: dict[int, Module] = {}
    for node in nodes.walk(source) if source is not None else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _GIVES:
            continue
        holder = node.func.value
        value = frame.evaluate(holder) if isinstance(holder, (ast.Name, ast.Attribute)) else None
        if not isinstance(value, Module):
            return None
        found[value.oid] = value
    return next(iter(found.values())) if len(found) == 1 else None
