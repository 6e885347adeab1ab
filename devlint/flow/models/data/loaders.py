"""Data loaders, and where their batches go."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from devlint import device
from devlint.device import Device, Kind
from devlint.flow.catalog.concepts import DISTRIBUTED_SAMPLER
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.registry import MODELS
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import ARGUMENTS
from devlint.flow.domain.objects import PARTIAL, Function, Instance, Module, Stateful
from devlint.flow.domain.tensors import Batches, Loader, Tensor, as_tensor, tensor_away
from devlint.flow.domain.values import UNKNOWN, Const, Named, Opaque, Sequence, Unknown, Value, is_literal
from devlint.flow.models.data.datasets import SampleCode, hands_on, note_draw
from devlint.flow.models.data.samplers import DataShares
from devlint.flow.program.identity import identity
from devlint.flow.program.type_hints import is_device_name
from devlint.flow.syntax import names
from devlint.flow.transfer import containers
from devlint.flow.transfer.defaults import on_host
from devlint.flow.transfer.escapes import Escapes
from devlint.immutable import replace
from devlint.sites.base import Scope, Step
from devlint.sites.loaders import Load
from devlint.sites.transfers import Transfer

_T = TypeVar("_T")


@dataclass
class _Known:
    node: ast.Call
    scope: Scope
    name: str
    call: Call
    batches: Device
    custom: bool
    moves: dict[ast.AST, Transfer] = field(default_factory=dict)
    managed: bool = False
    anywhere: bool = False


_MANAGERS = frozenset({"prepare", "prepare_data_loader", "setup_dataloaders", "fit", "validate", "test", "predict"})
"""Methods of training frameworks that take a loader and place its batches themselves."""


def wrapped(call: Call, result: Value) -> Value:
    """The result of an unknown call, which may be a loader again where it is given one and nothing like it."""
    first = call.first
    if not isinstance(first, Loader) or not isinstance(result, Unknown):
        return result
    if any(isinstance(value, (Loader, Module)) for value in call.values()[1:]):
        return UNKNOWN
    return replace(first, batches=device.UNKNOWN, certain=False, wrapped=True)


class Loaders(Observer):
    """The loaders of a file, followed from their construction to the transfers of their batches."""

    shared = True
    wants_inlined = True
    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._escapes = interpreter.component(Escapes)
        self._samples = interpreter.component(SampleCode)
        self.sharing = DataShares(interpreter.own_text, self._escapes)
        self._by_oid: dict[int, _Known] = {}
        self._by_node: dict[ast.AST, int] = {}

    def make(self, frame: Frame, call: Call, name: str) -> Loader:
        """The value of a ``DataLoader(...)`` call; the same loader each time the call is interpreted."""
        dataset = call.argument(0, "dataset")
        batches = _dataset_device(frame, dataset)
        tensors = isinstance(dataset, Stateful) and bool(dataset.tensors)
        oid = self._by_node.get(call.node)
        if oid is None:
            oid = self._by_node[call.node] = identity()
            # numbers and arrays of samples become tensors on the default device
            custom = _custom(frame, call) or not (tensors or on_host(frame))
            managed = _is_managed(frame)
            known = _Known(call.node, scope_of(frame), name, call, batches, custom, managed=managed)
            known.anywhere = not batches.known and not _probably_on_host(dataset)
            self._by_oid[oid] = known
        frame.component(SampleCode).loader(frame, call, _workers(call))
        self.sharing.make(frame, call, oid)
        if isinstance(call.argument(-1, "collate_fn"), Function) or (self._by_oid[oid].custom and not tensors):
            # whoever makes the batches may put them anywhere
            return Loader((oid,), device.UNKNOWN)
        return Loader((oid,), batches, tensors, parts=() if batches.known else _sample_places(dataset))

    def on_rounds(self, frame: Frame, node: ast.For | ast.AsyncFor, item: Value) -> None:
        """A loop may go through the batches of a loader, and train with them."""
        self.sharing.loop(frame, node, item)

    def on_move(self, frame: Frame, transfer: Transfer, receiver: Value, call: Call) -> None:
        """A transfer, perhaps of (a part of) a batch."""
        if transfer.target is None:
            return
        value = receiver
        oids = value.loaders if isinstance(value, Batches) else value.batch if isinstance(value, Tensor) else ()
        for known in self._known(oids):
            # only the last round of a loop knows what does not change in it
            if transfer.invariant or transfer.node not in known.moves:
                known.moves[transfer.node] = transfer

    def moved(self, oids: tuple[int, ...]) -> bool:
        """Whether some part of the loaders' batches is moved: then the rest is tensors on the host, too."""
        return bool(oids) and all(known.moves and not known.custom for known in self._known(oids))

    def collates(self, oids: tuple[int, ...]) -> bool:
        """Whether torch itself makes the batches of the loaders."""
        return all(
            not known.custom and not known.call.open and "collate_fn" not in known.call.keywords
            for known in self._known(oids)
        )

    def pins(self, oids: tuple[int, ...]) -> Step | None:
        """Where the loaders are told to pin their batches, ``None`` where they are not, or not surely."""
        asked = [known.call.keywords.get("pin_memory") for known in self._known(oids)]
        if not self.collates(oids) or not all(is_literal(value, True) for value in asked):
            return None
        return next((Step(known.node, "pinned by this loader") for known in self._known(oids)), None)

    def made(self, oids: tuple[int, ...]) -> list[ast.Call]:
        """The calls that made the loaders."""
        return [known.node for known in self._known(oids)]

    def _known(self, oids: tuple[int, ...]) -> list[_Known]:
        return [self._by_oid[oid] for oid in oids]

    def hand_over(self, values: Iterable[Value], method: str) -> None:
        """Loaders among ``values`` go into a method of a stranger, perhaps of a framework that takes care of them."""
        given = tuple(values)
        self._escapes.data(given)
        if method in _MANAGERS:
            self.manage(given)

    def manage(self, values: Iterable[Value]) -> None:
        """A framework takes care of the loaders among values, and of one beside what it is to be trained with."""
        for value in values:
            if isinstance(value, Loader):
                for known in self._known(value.oids):
                    known.managed = True
            elif isinstance(value, Sequence) and not all(isinstance(item, Loader) for item in value.items or ()):
                self.manage(value.items or ())

    def sites(self) -> Iterator[Load]:
        """A site for each loader whose batches are the code's own business."""
        for oid, known in self._by_oid.items():
            if known.managed:
                continue
            place, put = self._samples.put(known.node, "collate_fn" in known.call.keywords) or (known.batches, None)
            yield Load(
                known.node,
                known.scope,
                known.name,
                known.call.named(),
                known.call.open or known.call.starred or len(known.call.positional) > 6,
                place,
                tuple(known.moves.values()),
                known.custom,
                oid in self._escapes.loaders,
                _literal(known.call.keywords.get("pin_memory"), bool),
                _workers(known.call),
                self.sharing.training(oid),
                put,
                known.anywhere,
                oid in self._escapes.released,
            )


def _workers(call: Call) -> int | None:
    """How many processes make the batches: none unless the call asks for some, ``None`` where that is not known."""
    if "num_workers" in call.keywords or call.open or call.starred or len(call.positional) > 5:
        return _literal(call.keywords.get("num_workers"), int)
    return 0


def _literal(value: Value | None, kind: type[_T]) -> _T | None:
    return value.value if isinstance(value, Const) and type(value.value) is kind else None


def _dataset_device(frame: Frame, dataset: Value | None) -> Device:
    """Where the samples of a data set live: with its tensors where they are known."""
    if isinstance(dataset, Instance) and hands_on(dataset.cls):
        given = ARGUMENTS.of(frame.state.heap, dataset.oid) or ()
        return device.CPU if any(map(_on_cpu, given)) else device.UNKNOWN
    if isinstance(dataset, Stateful) and dataset.tensors:
        places = _sample_places(dataset)
        return places[0] if places and all(place.same(places[0]) for place in places) else device.UNKNOWN
    if isinstance(dataset, Tensor) or (isinstance(dataset, Opaque) and dataset.hint == "tensor"):
        # of one tensor, the rows
        return replace(as_tensor(dataset).device, implied=False)
    if isinstance(dataset, Sequence) and not _on_cpu(dataset.item):
        return device.UNKNOWN
    if isinstance(dataset, Opaque) and _is_own_list(frame, dataset):
        return device.UNKNOWN
    made = isinstance(dataset, Unknown) or (isinstance(dataset, Opaque) and dataset.derived)
    if made and frame.interpreter.index.mentions("import *"):
        # it may be a class of the project that keeps what it is given
        return device.UNKNOWN
    return device.CPU


def _is_own_list(frame: Frame, dataset: Opaque) -> bool:
    """Whether a data set is a list that methods of the class make or fill: its tensors stay where they were made."""
    kept = names.of_self(dataset.node) if isinstance(dataset.node, ast.Attribute) else ""
    if not kept or frame.owner is None:
        return False
    for method in (method for info in frame.owner.linearization() for method in info.methods.values()):
        grown = (call for call in method.calls if names.method(call) in containers.FILLING)
        made = (node for node in method.of(ast.Assign) if isinstance(node.value, (ast.List, ast.ListComp)))
        filled = (call.func.value for call in grown if isinstance(call.func, ast.Attribute))
        if any(names.of_self(node) == kept for node in (*filled, *(one for node in made for one in node.targets))):
            return True
    return False


def _sample_places(dataset: Value | None) -> tuple[Device, ...]:
    """Where the tensors of a data set are, in the order in which its samples have them; empty where one is unknown."""
    tensors = dataset.tensors if isinstance(dataset, Stateful) else ()
    places = tuple(replace(value.device, implied=False) for value in tensors if isinstance(value, Tensor))
    return places if len(places) == len(tensors) else ()


def _probably_on_host(dataset: Value | None) -> bool:
    """Whether some tensor of a data set is on the host, or probably is: then all of them are."""
    tensors = dataset.tensors if isinstance(dataset, Stateful) else ()
    held = [value for value in tensors if isinstance(value, Tensor)]
    return any(value.device.kind is Kind.CPU or value.near.kind is Kind.CPU for value in held)


def _on_cpu(item: Value) -> bool:
    """Whether an item of a list that serves as a data set is known to be on the CPU."""
    if isinstance(item, Sequence):
        return item.items is not None and all(_on_cpu(part) for part in item.items)
    return isinstance(item, Const) or (isinstance(item, Tensor) and item.device.accelerates() is False)


def _is_managed(frame: Frame) -> bool:
    """Whether the loader is made in a class of Lightning, which moves the batches itself."""
    lineage = frame.owner.lineage() if frame.owner else ()
    return not {"LightningModule", "LightningDataModule"}.isdisjoint(lineage)


def _custom(frame: Frame, call: Call) -> bool:
    """Whether code of the user makes the batches, so that their type or device may be anything."""
    if "collate_fn" in call.keyword_nodes and _is_own(frame, call.keyword_nodes["collate_fn"]):
        return True
    dataset = call.argument(0, "dataset")
    if isinstance(dataset, Stateful) and any(tensor_away(value) for value in dataset.tensors):
        # what is on an accelerator cannot be pinned
        return True
    if not isinstance(dataset, Instance):
        return False
    if any(tensor_away(value) for value in ARGUMENTS.of(frame.state.heap, dataset.oid) or ()):
        return True
    return any(_places(node) for node in dataset.cls.nodes)


def _is_own(frame: Frame, node: ast.expr) -> bool:
    """Whether a function is the project's own, or one of those that its name may stand for is.

    What is chosen beside torch's own makes the same of a batch.
    """
    if isinstance(node, ast.IfExp):
        return _is_own(frame, node.body) and _is_own(frame, node.orelse)
    with frame.interpreter.quiet():
        value = frame.evaluate(node)
    if isinstance(value, (Function, Instance)) or (isinstance(value, Stateful) and value.path == PARTIAL):
        return True
    named = names.called(node) or names.dotted(node)
    if isinstance(node, ast.Call) and names.is_class(named):
        # an object that makes batches of a kind of its own
        return True
    path = value.path if isinstance(value, Named) else frame.interpreter.index.resolve(named)
    if isinstance(node, ast.Lambda) or ("." in path and frame.interpreter.imports.parameters(path)):
        return True
    assigned = (other for other in frame.inside if isinstance(other, ast.Assign) and isinstance(node, ast.Name))
    bound = [other.value for other in assigned if any(names.is_name(target, named) for target in other.targets)]
    return any(_is_own(frame, other) for other in bound if named not in names.inside(other))


def _places(node: ast.AST) -> bool:
    """Whether a node of a data set's class puts something on a device."""
    if isinstance(node, ast.keyword):
        return node.arg == "device"
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "to" and node.args:
        return is_device_name(names.dotted(node.args[0]).rpartition(".")[2])
    return node.func.attr == "cuda"


def _loader(frame: Frame, call: Call, path: str) -> Value:
    note_draw(frame, call, path)
    return frame.component(Loaders).make(frame, call, path)


def _sampler(frame: Frame, call: Call, path: str) -> Value:
    note_draw(frame, call, path)
    return frame.component(Loaders).sharing.sampler(frame, call, path)


MODELS.register({"torch.utils.data.DataLoader": _loader, DISTRIBUTED_SAMPLER: _sampler})
