"""Optimizers made of a module's parameters, or given their state, before the module is moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint import device
from devlint.device import Device, Kind
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.registry import CLASSES, MODELS, ObjectModel
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import DEVICE
from devlint.flow.domain.objects import Module, Stateful
from devlint.flow.domain.tensors import names_device
from devlint.flow.domain.values import UNKNOWN, Opaque, Value
from devlint.flow.syntax import names, nodes
from devlint.immutable import immutable, replace
from devlint.sites.base import Act, Scope, Step
from devlint.sites.distributed import Optimize
from devlint.sites.transfers import Transfer

_ROOT = "torch.optim."
_EAGER = frozenset({"torch.optim.Adagrad"})
"""Optimizers that allocate their state when they are made."""
_STATELESS = "torch.optim.SGD"
"""An optimizer that has no state unless it is told of a momentum."""
_GIVES = frozenset({"parameters", "named_parameters"})
"""Methods that yield a module's parameters."""


@immutable(frozen=True, slots=True)
class _Known:
    path: str
    module: int | str
    """The module's identity, or the key of what has parameters and is otherwise unknown."""
    made: Device
    scope: Scope
    loaded: Step | None = None
    moved: Step | None = None
    stepped: Device | None = None


class Optimizers(Observer):
    """The optimizers of a file whose module was made on the CPU, or which nobody has moved yet."""

    shared = True
    wants_inlined = True
    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._known: dict[ast.AST, _Known] = {}

    def make(self, frame: Frame, call: Call, path: str) -> Stateful:
        """The value of ``torch.optim.X(model.parameters())``."""
        source = call.argument_node(0, "params")
        module = _module(frame, source)
        if module is not None:
            key = module.oid if isinstance(module, Module) else module.key
            for node, known in list(self._known.items()):
                if known.module == key and known.moved is not None and node is not call.node:
                    # made again after the move
                    del self._known[node]
            place = frame.place_of(module) if isinstance(module, Module) else device.UNKNOWN
            unmoved = isinstance(module, Opaque) and (key, DEVICE) not in frame.state.heap
            unmoved = unmoved and (path != _STATELESS or "momentum" in call.keywords)
            before = self._known.get(call.node)
            if (place.kind is Kind.CPU or unmoved) and (before is None or before.moved is None):
                # made anew where a function is followed once more, with nothing loaded yet
                self._known[call.node] = _Known(path, key, place, scope_of(frame))
        return Stateful(path, node=call.node)

    def restore(self, frame: Frame, optimizer: Stateful, call: Call) -> None:
        """``optimizer.load_state_dict(...)``."""
        node = optimizer.node
        known = self._known.get(node) if node is not None else None
        if known is None or known.moved is not None or node is None:
            return
        # of what is unknown, only one function can say what comes first
        here = isinstance(known.module, int) or scope_of(frame).function == known.scope.function
        if here and not _takes_along(frame, call.node.func):
            self._known[node] = replace(known, loaded=Step(call.node, "its state is loaded here"))

    def on_move(self, frame: Frame, transfer: Transfer, receiver: Value, call: Call) -> None:
        """What has parameters, and is otherwise unknown, goes to another device."""
        if transfer.target is not None and isinstance(receiver, Opaque) and receiver.hint != "tensor":
            step = Step(transfer.node, f"`{transfer.value.text}` is moved to {transfer.target} here", Act.MOVED)
            self._moved(frame, receiver, transfer.target, step)

    def on_relocation(self, frame: Frame, module: Module, place: Device, step: Step) -> None:
        """A module goes to another device."""
        self._moved(frame, module, place, step)

    def _moved(self, frame: Frame, module: Module | Opaque, target: Device, step: Step) -> None:
        key = module.oid if isinstance(module, Module) else module.key
        for node, known in self._known.items():
            if known.module != key or known.moved is not None:
                continue
            late = known.loaded is not None and scope_of(frame).function == known.scope.function
            if target.differs(known.made) if isinstance(key, int) else late and target.accelerates() is not False:
                self._known[node] = replace(known, moved=step, stepped=target)

    def sites(self) -> Iterator[Optimize]:
        """A site for each optimizer that was made too early."""
        for node, known in self._known.items():
            if known.moved is not None and known.stepped is not None:
                eager = known.path in _EAGER or known.loaded is not None
                name = known.path.rpartition(".")[2]
                yield Optimize(node, known.scope, name, known.made, known.stepped, known.moved, eager, known.loaded)


def _takes_along(frame: Frame, method: ast.expr) -> bool:
    """Whether the function moves the state of an optimizer itself, or hands it on together with a device."""
    name = names.dotted(method).rpartition(".")[0]
    for node in frame.inside:
        if isinstance(node, ast.Attribute) and node.attr == "state" and names.dotted(node.value) == name:
            return True
        if isinstance(node, ast.Call) and any(names.dotted(part) == name for part in node.args):
            others = (part for part in node.args if isinstance(part, ast.Name))
            if any(names_device(frame.lookup(part.id)) for part in others):
                return True
    return False


def _module(frame: Frame, source: ast.expr | None) -> Module | Opaque | None:
    """The one module whose ``parameters()`` an expression is made of: filtered, listed or in groups.

    Or something unknown that has parameters.
    """
    found: dict[int | str, Module | Opaque] = {}
    for node in nodes.walk(source) if source is not None else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _GIVES:
            continue
        holder = node.func.value
        value = frame.evaluate(holder) if isinstance(holder, (ast.Name, ast.Attribute)) else None
        if not isinstance(value, (Module, Opaque)):
            return None
        found[value.oid if isinstance(value, Module) else value.key] = value
    return next(iter(found.values())) if len(found) == 1 else None


class _Optimizer(ObjectModel):
    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value:
        if isinstance(value, Stateful) and node.attr == "load_state_dict":
            frame.component(Optimizers).restore(frame, value, call)
        return UNKNOWN


def _made(frame: Frame, call: Call, path: str) -> Value:
    return frame.component(Optimizers).make(frame, call, path)


MODELS.register({_ROOT: _made})
CLASSES.register({_ROOT: _Optimizer()})
