"""Rows of the catalog: what a call does of which a row speaks, whoever defines what is called."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from devlint import device
from devlint.device import AVAILABLE, Device
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.concepts import ARRAY
from devlint.flow.catalog.schema import Row
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import CLASSES, MODELS, ObjectModel
from devlint.flow.domain.heap import DEVICE, ORIGIN
from devlint.flow.domain.objects import Class, Function, Module, Stateful
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.tensors import Batches, DeviceValue, Loader, Tensor, as_tensor, is_definite, named_place
from devlint.flow.domain.values import (
    UNKNOWN,
    Const,
    Managed,
    Mapping,
    Opaque,
    Sequence,
    Unknown,
    Value,
    is_none,
    is_number,
)
from devlint.flow.models.data.datasets import SampleCode
from devlint.flow.models.data.loaders import Loaders, wrapped
from devlint.flow.models.libraries import managed
from devlint.flow.models.libraries.unknown import told, unfollowed
from devlint.flow.models.nn import construction, forward
from devlint.flow.models.torch import moves, tensor_methods
from devlint.flow.program.identity import identity
from devlint.flow.transfer import containers, device_queue, placement
from devlint.flow.transfer.defaults import default_place
from devlint.immutable import replace
from devlint.sites.base import Act, Step
from devlint.sites.placement import OperationKind

_ARGUMENT = "argument:"
_MOVER = Row("", result="self", place="argument:device", parameters=("device",))
"""What the methods do that a class names under `moves`."""


def _call(frame: Frame, call: Call, path: str, row: Row, receiver: Value = UNKNOWN) -> Value:
    """The result of a call of what goes by ``path``, as its row says."""
    if not row.made.startswith(_ARGUMENT):
        unfollowed(frame, call)
    if row.made == "foreign":
        return UNKNOWN
    told(frame, call, path, row)
    if row.waits:
        device_queue.written(frame, call, path.rpartition(".")[2])
    result = _result(frame, call, path, row, receiver)
    return _manage(frame, call, row, result) if row.managed_by else result


def _of_method(frame: Frame, receiver: Value, name: str) -> tuple[str, Row] | None:
    """What a row says of a method of an object, and under which name."""
    if not isinstance(receiver, (Module, Stateful, Batches)) or not receiver.path:
        return None
    catalog = frame.interpreter.catalog
    path = f"{receiver.path}.{name}"
    row = catalog.method(path)
    if row is not None and row.speaks_of_calls:
        return path, row
    owner = catalog.row(receiver.path)
    return (path, _MOVER) if owner is not None and name in owner.moves else None


# -- results -----------------------------------------------------------------------------------------------------------


def _result(frame: Frame, call: Call, path: str, row: Row, receiver: Value) -> Value:
    made = row.made
    clash = bool(row.rejects_cpu) and "*" not in row.rejects_cpu and _meet(frame, call, path, row)
    if made == "":
        return placement.derive(frame, call, receiver)
    if made.startswith(_ARGUMENT):
        return _returned(frame, call, path, row, _argument(frame, call, row, made) or UNKNOWN, receiver)
    if made == "self":
        return _returned(frame, call, path, row, receiver, receiver)
    if made == "call":
        return forward.forward(frame, call, receiver) if isinstance(receiver, Module) else UNKNOWN
    result = _MAKERS[made](frame, call, path, row, _place(frame, call, row, receiver))
    return placement.stranded(result) if clash and isinstance(result, Tensor) else result


def _meet(frame: Frame, call: Call, path: str, row: Row) -> bool:
    """Whether tensors clash that have to be in one place."""
    rejected, accepted = frozenset(row.rejects_cpu), frozenset(row.accepts_cpu)
    entry = torch_table.Function(path, "same_as_input", row.parameters, rejects_cpu=rejected, accepts_cpu=accepted)
    operands = [one for one in tensor_methods.arguments(call, entry) if one[2] not in accepted]
    met = [one for one in operands if tensor_methods.matters(frame, one, entry)]
    return placement.meet(frame, call.node, path, OperationKind.OPERANDS, met)


def _returned(frame: Frame, call: Call, path: str, row: Row, value: Value, receiver: Value) -> Value:
    """Something that a call returns as it was given, or moved."""
    if not row.place:
        if isinstance(value, Sequence):
            # another list, with the same in it
            return containers.made(frame, replace(value, oid=0, mutable=True))
        return value if isinstance(value, (Loader, Batches, Tensor, Module, Opaque, Stateful)) else UNKNOWN
    place = _place(frame, call, row, receiver)
    if not place.known:
        return UNKNOWN
    frame.component(SampleCode).placed(frame, call.node, place)
    name = path.rpartition(".")[2]
    return _moved(frame, call, value, place, Step(call.node, f"`{name}` puts it on {place} here"))


def _moved(frame: Frame, call: Call, value: Value, place: Device, step: Step) -> Value:
    if isinstance(value, Module):
        moves.relocate(frame, value, place, step)
        return value
    if isinstance(value, Loader):
        return replace(value, batches=place, parts=())
    if isinstance(value, Batches):
        return replace(value, device=place, parts=(), origin=Origin((step,)))
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(_moved(frame, call, item, place, step) for item in value.items)
        item = UNKNOWN if value.item is UNKNOWN else _moved(frame, call, value.item, place, step)
        return containers.made(frame, Sequence(items, item, value.mutable))
    if isinstance(value, Mapping):
        held = tuple((key, _moved(frame, call, item, place, step)) for key, item in value.items)
        other = UNKNOWN if value.other is UNKNOWN else _moved(frame, call, value.other, place, step)
        return containers.made(frame, Mapping(held, other))
    if isinstance(value, Tensor) or (isinstance(value, Opaque) and value.hint == "tensor"):
        tensor = as_tensor(value)
        return tensor if tensor.device.same(place) else moves.moved(tensor, place, step)
    if isinstance(value, (Opaque, Unknown)) and getattr(value, "hint", "") == "":
        return Tensor(place, certain=False, origin=Origin((step,)))
    return value


def _tensor(frame: Frame, call: Call, path: str, row: Row, place: Device) -> Value:
    if not place.known:
        return UNKNOWN
    return Tensor(place, origin=Origin((Step(call.node, f"returned on {place} here"),)))


def _mapping(frame: Frame, call: Call, path: str, row: Row, place: Device) -> Value:
    return Batches((), place, certain=True, path=path)


def _module(frame: Frame, call: Call, path: str, row: Row, place: Device) -> Value:
    spread = "*" in row.accepts_cpu
    module = Module(identity(), path, text=path.rpartition(".")[2], has_state=not row.stateless, spread=spread)
    where, step = (
        (place, None) if row.place else construction.made_on(frame, call, module, row.device_argument or "device")
    )
    frame.put(module, where, step or Step(call.node, f"`{module.text}` is created on {where} here", Act.CREATED))
    return module


def _loader(frame: Frame, call: Call, path: str, row: Row, place: Device) -> Value:
    made = frame.component(Loaders).make(frame, call, path)
    return replace(made, batches=place, parts=()) if row.place else made


def _device(frame: Frame, call: Call, path: str, row: Row, place: Device) -> Value:
    return DeviceValue(place, call.node, form="made") if place.known else UNKNOWN


def _array(frame: Frame, call: Call, path: str, row: Row, place: Device) -> Value:
    values = call.values()
    plain = bool(values) and not call.starred and not call.open and all(map(is_number, values))
    return _number(frame, call, path, row, place) if row.elementwise and plain else Stateful(ARRAY)


def _number(frame: Frame, call: Call, path: str, row: Row, place: Device) -> Value:
    return Opaque(f"number@{frame.at(call.node)}", frame.interpreter.text(call.node), "number")


def _dataset(frame: Frame, call: Call, path: str, row: Row, place: Device) -> Value:
    frame.component(SampleCode).transforms(call, path)
    return Stateful(path)


def _transform(frame: Frame, call: Call, path: str, row: Row, place: Device) -> Value:
    frame.component(SampleCode).transforms(call, path)
    return UNKNOWN


def _object(frame: Frame, call: Call, path: str, row: Row, place: Device) -> Value:
    return Stateful(path, node=call.node)


def _unknown(frame: Frame, call: Call, path: str, row: Row, place: Device) -> Value:
    return UNKNOWN


_MAKERS: dict[str, Callable[[Frame, Call, str, Row, Device], Value]] = {
    "module": _module,
    "loader": _loader,
    "dataset": _dataset,
    "tensor": _tensor,
    "tensor-mapping": _mapping,
    "host-array": _array,
    "number": _number,
    "device": _device,
    "estimator": _object,
    "transform": _transform,
    "object": _object,
    "framework": _unknown,
    "unknown": _unknown,
}


# -- places ------------------------------------------------------------------------------------------------------------


def _place(frame: Frame, call: Call, row: Row, receiver: Value) -> Device:
    """Where a row says that the result is."""
    asked = (
        call.argument(_position(frame, row, row.device_argument), row.device_argument) if row.device_argument else None
    )
    if asked is not None and not is_none(asked):
        for observer in events.heard(frame, "on_device_use"):
            observer.on_device_use(frame, call.node, asked, False)
        return named_place(asked) or device.UNKNOWN
    stated = row.place
    if stated.startswith(_ARGUMENT):
        given = _argument(frame, call, row, stated)
        return device.UNKNOWN if given is None else _place_of(frame, given)
    if stated == "self":
        return _place_of(frame, receiver)
    if stated == "inputs" or (not stated and row.made in ("tensor", "tensor-mapping")):
        # an argument of which nothing else is known is a tensor if it comes first
        return placement.blend(*(_tensors(call.values()) or call.values()[:1])).device
    if stated == "default":
        return (None if call.open else default_place(frame)) or device.UNKNOWN
    if stated == "accelerator":
        return device.choice(AVAILABLE, device.accelerator("cuda"), device.CPU)
    return device.parse(stated) or device.UNKNOWN


def _place_of(frame: Frame, value: Value) -> Device:
    """The device that a value names, or on which it is."""
    if isinstance(value, Module):
        return frame.place_of(value)
    if is_definite(value):
        return frame.state.settled(as_tensor(value).device)
    if isinstance(value, Const) and isinstance(value.value, int):
        return device.accelerator("cuda", value.value)
    return named_place(value) or device.UNKNOWN


def _tensors(values: Iterable[Value]) -> list[Value]:
    """The tensors among values, those in lists and dicts included."""
    found: list[Value] = []
    for value in values:
        if isinstance(value, (Sequence, Mapping)):
            found += _tensors(value.parts())
        elif is_definite(value):
            found.append(value)
    return found


def _argument(frame: Frame, call: Call, row: Row, stated: str) -> Value | None:
    """What is given for a parameter, which a row calls by its name or by its position."""
    name = stated.removeprefix(_ARGUMENT)
    if name.isdigit():
        position = int(name)
        named = row.parameters or frame.interpreter.imports.parameters(row.path)
        return call.argument(position, named[position] if position < len(named) else "")
    return call.argument(_position(frame, row, name), name)


def _position(frame: Frame, row: Row, name: str) -> int:
    """The position of a parameter, -1 where it has none that is known."""
    named = row.parameters or frame.interpreter.imports.parameters(row.path)
    return named.index(name) if name in named else -1


# -- who places it -----------------------------------------------------------------------------------------------------


def _manage(frame: Frame, call: Call, row: Row, result: Value) -> Value:
    """The same, placed by a library: a move by hand is for nothing."""
    by = Managed(row.managed_by, Step(call.node, f"{row.managed_by} places it here"))
    if isinstance(result, Module):
        managed.MANAGED.put(frame.state.heap, result.oid, by)
    elif isinstance(result, Loader):
        frame.component(Loaders).manage((result,))
    elif isinstance(result, (Unknown, Opaque)) or (isinstance(result, Tensor) and not result.certain):
        thing = managed.thing(frame, call, by)
        if isinstance(result, Tensor):
            # called, it is a module
            DEVICE.put(frame.state.heap, thing.key, result.device)
            ORIGIN.put(frame.state.heap, thing.key, result.origin)
        return thing
    return result


def _named(frame: Frame, call: Call, path: str) -> Value:
    row = frame.interpreter.catalog.row(path)
    return UNKNOWN if row is None else wrapped(call, _call(frame, call, path, row))


class _Stated(ObjectModel):
    def called(self, frame: Frame, call: Call, value: Value) -> Value | None:
        """A function, or a class, of the project for which a user has written a row."""
        if not isinstance(value, (Function, Class)):
            return None
        catalog, receiver = frame.interpreter.catalog, value.bound if isinstance(value, Function) else None
        path = catalog.canonical(value.info.stated)
        row = catalog.row(path)
        told = row is not None and row.speaks_of_calls
        return _call(frame, call, path, row, receiver or UNKNOWN) if told and row is not None else None

    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value | None:
        stated = _of_method(frame, value, node.attr)
        return None if stated is None else _call(frame, call, *stated, value)


MODELS.stated = _named
CLASSES.stated = _Stated()
