"""Random numbers, and orders of data sets: which generator they are drawn with, and on which device."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import Device, Kind
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import Field
from devlint.flow.domain.values import Const, DeviceValue, Named, Stateful, Tensor, Value, as_tensor, named_place
from devlint.flow.transfer.placement import blend, meet, stranded
from devlint.immutable import replace
from devlint.sites.base import Step
from devlint.sites.loaders import Draw

GENERATOR = "torch.Generator"
"""The canonical name of torch's generators of random numbers."""
_LOADER = "torch.utils.data.DataLoader"
_DISTRIBUTED = "torch.utils.data.distributed.DistributedSampler"
_OWN = frozenset({"torch.utils.data.random_split", "torch.utils.data.RandomSampler", _DISTRIBUTED, _LOADER})
"""What draws with a generator of the CPU where none is given."""
DRAWERS = _OWN | {"torch.utils.data.SubsetRandomSampler"}
"""What draws numbers on the default device."""
_PROCESS = 0
"""What all code has in common, as an object."""
_DEFAULT: Field[Value] = Field("default device", Value)


def default(frame: Frame, call: Call, place: Device) -> None:
    """The default device is ``place`` from here on."""
    _DEFAULT.put(frame.state.heap, _PROCESS, DeviceValue(place, call.node))


def default_type(frame: Frame, call: Call) -> None:
    """``torch.set_default_tensor_type``: tensors are made where that type lives."""
    given = call.argument(0, "t")
    name = given.value if isinstance(given, Const) else given.path if isinstance(given, Named) else ""
    if isinstance(name, str) and name.startswith("torch."):
        default(frame, call, device.accelerator("cuda") if name.startswith("torch.cuda.") else device.CPU)


def left(frame: Frame) -> object:
    """The default device that the top level of a file leaves to its functions."""
    return _DEFAULT.of(frame.state.heap, _PROCESS)


def on_host(frame: Frame) -> bool:
    """Whether nothing says that the default device is another one than the CPU."""
    held = _held(frame)
    return not isinstance(held, DeviceValue) or held.device.kind is Kind.CPU


def made(frame: Frame, call: Call) -> Stateful:
    """A ``torch.Generator``, which stays where it is made."""
    given = call.argument(0, "device")
    place = device.CPU
    if call.open or call.starred:
        place = device.UNKNOWN
    elif given is not None and not (isinstance(given, Const) and given.value is None):
        place = named_place(given) or device.UNKNOWN
    return Stateful(GENERATOR, (DeviceValue(place, call.node),), call.node)


def seeded(frame: Frame, call: Call, path: str) -> Stateful:
    """``torch.manual_seed``, which returns the generator of the CPU."""
    return Stateful(GENERATOR, (DeviceValue(device.CPU, call.node),), call.node)


def numbers(frame: Frame, call: Call, operator: str, met: tuple[ast.AST, Value], result: Value) -> Value:
    """Numbers are drawn where ``met`` is, a tensor and its node: the generator has to be there, too.

    Returns the result, which is where it was meant to be if that surely fails.
    """
    node, tensor = met
    given = call.keywords.get("generator")
    place = None if given is None else _place(given)
    if given is None or place is None or not isinstance(tensor, Tensor):
        return result
    made_at = given.node if isinstance(given, Stateful) else None
    story = () if made_at is None else (Step(made_at, f"the generator is made on {place} here"),)
    generator = Tensor(place, many=True, certain=True, story=story)
    operands = ((call.keyword_nodes["generator"], generator, "generator"), (node, tensor, ""))
    clash = meet(frame, call.node, operator, "generator", operands)
    return replace(stranded(as_tensor(result)), device=blend(generator, tensor).device) if clash else result


def note(frame: Frame, call: Call, path: str) -> None:
    """Record a call that draws, where it is known with what."""
    if call.open or call.starred:
        return
    given = call.keywords.get("generator")
    if given is None or (isinstance(given, Const) and given.value is None):
        if path in _OWN and _draws(call, path):
            _emit(frame, call, path, device.CPU)
    elif (place := _place(given)) is not None:
        _emit(frame, call, path, place)


def _held(frame: Frame) -> object:
    return _DEFAULT.of(frame.state.heap, _PROCESS) or frame.interpreter.default_device


def _emit(frame: Frame, call: Call, path: str, place: Device) -> None:
    held = _held(frame)
    where, step = device.CPU, None
    if isinstance(held, DeviceValue):
        where = held.device
        step = Step(held.node, "the default device is set here") if held.node is not None else None
    elif frame.interpreter.default_changed:
        return
    node = call.keyword_nodes.get("generator")
    frame.emit(Draw(call.node, scope_of(frame), path, node, place, where, step))


def _draws(call: Call, path: str) -> bool:
    """Whether a call without a generator of its own draws at all."""
    shuffle = call.keywords.get("shuffle")
    if path == _DISTRIBUTED:
        return shuffle is None
    if path != _LOADER:
        return True
    chosen = {"sampler", "batch_sampler"} & set(call.keywords) or len(call.positional) > 2
    return isinstance(shuffle, Const) and shuffle.value is True and not chosen


def _place(given: Value) -> Device | None:
    """Where a generator is."""
    if isinstance(given, Named):
        return device.CPU if given.path in ("torch.default_generator", "torch.random.default_generator") else None
    if not isinstance(given, Stateful) or given.path != GENERATOR or not given.tensors:
        return None
    (place,) = given.tensors
    return place.device if isinstance(place, DeviceValue) and place.device.known else None
