"""Orders of data sets that are drawn: with which generator, and whether that is where numbers are drawn."""

from __future__ import annotations

from devlint import device
from devlint.device import Device
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import MODELS
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.values import (
    UNKNOWN,
    Const,
    DeviceValue,
    Value,
)
from devlint.flow.transfer.defaults import generator_place, held
from devlint.flow.transfer.escapes import Escapes
from devlint.sites.base import Step
from devlint.sites.loaders import Draw

_LOADER = "torch.utils.data.DataLoader"
_DISTRIBUTED = "torch.utils.data.distributed.DistributedSampler"
_OWN = frozenset({"torch.utils.data.random_split", "torch.utils.data.RandomSampler", _DISTRIBUTED, _LOADER})
"""What draws with a generator of the CPU where none is given."""
_SAMPLERS = frozenset({"torch.utils.data.RandomSampler", "torch.utils.data.SubsetRandomSampler"})


def note(frame: Frame, call: Call, path: str) -> None:
    """Record a call that draws, where it is known with what."""
    if call.open or call.starred:
        return
    given = call.keywords.get("generator")
    if given is None or (isinstance(given, Const) and given.value is None):
        if path in _OWN and _draws(call, path):
            _emit(frame, call, path, device.CPU)
    elif (place := generator_place(given)) is not None:
        _emit(frame, call, path, place)


def _emit(frame: Frame, call: Call, path: str, place: Device) -> None:
    default = held(frame)
    where, step = device.CPU, None
    if isinstance(default, DeviceValue):
        where = default.device
        step = Step(default.node, "the default device is set here") if default.node is not None else None
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


def _sampler(frame: Frame, call: Call, path: str) -> Value:
    note(frame, call, path)
    frame.component(Escapes).data(call.values())
    return UNKNOWN


MODELS.register(dict.fromkeys(_SAMPLERS, _sampler))
