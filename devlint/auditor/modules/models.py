"""What was seen of the modules that ran: as much as advice needs."""

from __future__ import annotations

import sys
import weakref
from types import FrameType

import torch
from torch import nn

from devlint.auditor.compatibility import old_autocast_dtype
from devlint.auditor.explanation.trail import is_wrapper
from devlint.auditor.frames import Frames
from devlint.auditor.introspection.tensors import children, device_of, dtype_name, fields, own_tensors, path_of, walk
from devlint.record import Models

_LOW = (torch.float16, torch.bfloat16)
_ALIGNED = 8
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_MOST = 32
_MANAGERS = {"FullyShardedDataParallel": "FSDP", "FSDPModule": "FSDP", "DeepSpeedEngine": "DeepSpeed"}


class Observed:
    """Collects facts about modules; keeps none of them alive."""

    def __init__(self) -> None:
        self._outermost: dict[str, int] = {}
        self._sizes: dict[int, tuple[weakref.ref[nn.Module], dict[int, int]]] = {}
        """The elements of the parameters of the outermost modules, both by identity."""
        self._parts: dict[str, tuple[weakref.ref[nn.Module], frozenset[int]]] = {}
        """The latest of each class among the outermost modules, and all modules in it, by identity."""
        self._parameters = 0
        self._devices: dict[str, tuple[str, ...]] = {}
        self._dtypes: dict[str, None] = {}
        self._autocast = ""
        self._unaligned: dict[str, int] = {}
        self._managed = ""

    def outermost(self, module: nn.Module) -> None:
        """A module was called from outside any module; those without parameters, such as losses, do not count."""
        self._managed = self._managed or _manager(module)
        while is_wrapper(module):
            inner = [child for _, child in children(module)]
            if len(inner) != 1:
                break
            module = inner[0]
        module = self._whole(module)
        parameters = {id(one): one for _, part in walk(module) for _, one in own_tensors(part, ("_parameters",))}
        if not parameters:
            return
        self._add_up(module, {number: one.numel() for number, one in parameters.items()})
        name = type(module).__name__
        if name not in self._outermost and len(self._outermost) >= _MOST:
            return
        self._take(name, module)
        self._outermost[name] = max(self._outermost.get(name, 0), sum(one.numel() for one in parameters.values()))
        self._devices[name] = tuple(sorted({device_of(one) for one in parameters.values()}))
        self._dtypes |= dict.fromkeys(dtype_name(one.dtype) for one in parameters.values())

    def _whole(self, module: nn.Module) -> nn.Module:
        """The model that a module is a part of, itself if it is of none: parts may be called one by one."""
        for reference, parts in self._parts.values():
            root = reference()
            if root is not None and id(module) in parts and any(one is module for _, one in walk(root)):
                return root
        return module

    def _take(self, name: str, module: nn.Module) -> None:
        """A model, in whose place parts of it may have been taken for one."""
        parts = frozenset(id(one) for _, one in walk(module))
        for other, (reference, _) in list(self._parts.items()):
            root = reference()
            if root is not None and root is not module and id(root) in parts:
                del self._parts[other], self._outermost[other], self._devices[other]
        self._parts[name] = weakref.ref(module), parts

    def _add_up(self, module: nn.Module, sizes: dict[int, int]) -> None:
        """Count the parameters of all modules that are there, what they share once."""
        alive = {number: known for number, known in self._sizes.items() if known[0]() is not None}
        if len(alive) < _MOST:
            alive[id(module)] = (weakref.ref(module), sizes)
        self._sizes = alive
        together: dict[int, int] = {}
        for _, known in alive.values():
            together |= known
        self._parameters = max(self._parameters, sum(together.values()))

    def layer(self, module: nn.Module, root: nn.Module) -> None:
        """A module with parameters or buffers of its own ran."""
        weight = dict(own_tensors(module, ("_parameters",))).get("weight")
        if weight is None:
            return
        cast = autocast_dtype(weight.device.type)
        if cast is not None:
            self._autocast = self._autocast or dtype_name(cast)
        dtype = cast if cast is not None and weight.dtype == torch.float32 else weight.dtype
        sizes = _sizes(module)
        if dtype in _LOW and any(size > _ALIGNED and size % _ALIGNED for size in sizes):
            shape = " -> ".join(f"{size:,}" for size in sizes)
            path = path_of(root, module) or type(root).__name__
            text = f"{path} ({type(module).__name__} {shape}, {dtype_name(dtype)})"
            if text in self._unaligned or len(self._unaligned) < _MOST:
                self._unaligned[text] = weight.numel()

    def describe(self) -> Models:
        """What was seen so far; the largest come first."""
        order = sorted(self._outermost, key=lambda name: -self._outermost[name])
        devices = dict.fromkeys(device for name in order for device in self._devices[name])
        return Models(
            outermost=tuple(order),
            devices=tuple(devices),
            parameters=self._parameters,
            dtypes=tuple(self._dtypes),
            autocast=self._autocast,
            unaligned=tuple(sorted(self._unaligned, key=lambda text: -self._unaligned[text])),
            managed=self._managed,
        )


def holder(module: nn.Module, frames: Frames) -> nn.Module:
    """The project's own module in whose method a module is called, if it is a part of that; else the module itself.

    Frameworks call a method such as ``training_step``, so that the model itself is never called.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_varnames[:1] == ("self",) and code.co_argcount and frames.is_project(code):
            owner = frame.f_locals.get("self")
            if isinstance(owner, nn.Module) and any(one is module for _, one in walk(owner)):
                return owner
        frame = frame.f_back
    return module


def autocast_dtype(device_type: str) -> torch.dtype | None:
    """The dtype that autocast casts to on a type of device, ``None`` where it is off."""
    if not hasattr(torch, "get_autocast_dtype"):
        return old_autocast_dtype(device_type)
    try:
        return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else None
    except (RuntimeError, TypeError):  # a device without autocast
        return None


def _sizes(module: nn.Module) -> tuple[int, ...]:
    """The dimensions of a layer's matmul that the layer decides about, inputs before outputs."""
    if isinstance(module, nn.Linear):
        return module.in_features, module.out_features
    if isinstance(module, _CONVOLUTIONS) and module.groups == 1:
        return module.in_channels, module.out_channels
    return ()


def _manager(root: nn.Module) -> str:
    """What places the parts of a model, empty if nobody does."""
    for _, module in walk(root):
        own = fields(module)
        if "hf_device_map" in own or "_hf_hook" in own:
            return "accelerate"
        for cls in type(module).__mro__:
            if cls.__name__ in _MANAGERS:
                return _MANAGERS[cls.__name__]
    return ""
