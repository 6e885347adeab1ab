"""Where a value is that a function was given, keeps or returns: what is remembered of it, and of many of them."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import nn

from devlint.auditor.introspection.tensors import all_tensors, device_of, fields, is_placed, members
from devlint.observation import Sight, SightKind

_MOST_DEVICES = 4
"""What has been on more devices than this is wherever its caller keeps it."""
_MOST_TENSORS = 2_000
"""A module of more tensors is not asked for all of them, and so not at all."""
_CONTAINERS = (list, tuple, dict, UserDict)
_UNREAL = frozenset({"DTensor", "FlatParameter", "FakeTensor", "FunctionalTensor"})
_TYPES = frozenset({"cpu", "cuda", "mps", "xpu", "hpu", "npu", "xla", "mtia"})


class Look(NamedTuple):
    """One look at a value."""

    kind: SightKind
    devices: tuple[str, ...] = ()
    scalar: bool = False


_NONE, _OTHER = Look("none"), Look("other")


def look(value: Any) -> Look:
    """What a value is, and where; no code of the script runs for it, as ``isinstance`` might."""
    if value is None:
        return _NONE
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        return _OTHER if _is_unreal(value) else Look("tensor", (device_of(value),), value.dim() == 0)
    if issubclass(kind, nn.Module):
        return _module(value)
    if kind is torch.device:
        return Look("device", (str(value),))
    if kind is str:
        return Look("device", (value,)) if value.partition(":")[0] in _TYPES else _OTHER
    return _container(value) if issubclass(kind, _CONTAINERS) else _OTHER


def _module(module: nn.Module) -> Look:
    """A module is where what it registers is."""
    found: dict[str, None] = {}
    for number, (_, tensor) in enumerate(all_tensors(module)):
        if number >= _MOST_TENSORS or _is_unreal(tensor):
            return _OTHER
        if is_placed(tensor):
            found[device_of(tensor)] = None
    return Look("module", tuple(found)) if len(found) <= _MOST_DEVICES else _OTHER


def _container(value: object) -> Look:
    """A list, tuple or dict is where the tensors directly in it are."""
    tensors = [item for _, _, item in members(value) if issubclass(type(item), torch.Tensor)]
    if not tensors or any(map(_is_unreal, tensors)):
        return _OTHER
    devices = tuple(dict.fromkeys(map(device_of, tensors)))[: _MOST_DEVICES + 1]
    return Look("tensors", devices, any(tensor.dim() == 0 for tensor in tensors))


def _is_unreal(tensor: torch.Tensor) -> bool:
    """Whether its device says nothing of where data are: there are none, or they are spread over several."""
    return tensor.device.type == "meta" or type(tensor).__name__ in _UNREAL


def attributes(value: object) -> Iterator[tuple[str, Any]]:
    """What an object keeps under names of its own, but for what every module has; nothing that torch registers."""
    module = issubclass(type(value), nn.Module)
    for name, held in fields(value).items():
        if type(name) is str and not (module and name in _OF_EVERY_MODULE):
            yield name, held


_OF_EVERY_MODULE = frozenset(fields(nn.Module()))


class Sights:
    """All looks at what one name held."""

    __slots__ = ("calls", "devices", "kinds", "scalar")

    def __init__(self) -> None:
        self.calls = 0
        self.kinds: dict[SightKind, None] = {}
        self.devices: dict[str, None] = {}
        self.scalar = False

    def add(self, seen: Look) -> None:
        """One more look."""
        self.calls += 1
        self.kinds[seen.kind] = None
        if len(self.devices) <= _MOST_DEVICES:
            self.devices.update(dict.fromkeys(seen.devices))
        self.scalar = self.scalar or seen.scalar

    def described(self, name: str) -> Sight | None:
        """What the record says, ``None`` where nothing was anywhere."""
        if not self.devices:
            return None
        return Sight(
            name=name, kinds=tuple(self.kinds), devices=tuple(self.devices), scalar=self.scalar, calls=self.calls
        )
