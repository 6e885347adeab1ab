"""Tensors that change their device in place: `parameter.data = ...`, and so `Module.cuda()`.

On a CUDA machine a parameter stays the same object when its module moves.  A simulated tensor is of another class than
one of the host, so its class and its implementation are exchanged together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator import devices
from devlint.simulator.masquerade.tensors.methods import Uninitialized
from devlint.simulator.tensor import OWN, SimulatedTensor

_native: Any = torch.Tensor.data


def become(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Let a tensor hold the data of one on another kind of device; its identity and attributes stay."""
    own: dict[str, Any] = tensor.__dict__
    grad = tensor.grad
    tensor.grad = None
    fresh: Any = value.detach()
    if fresh is value:
        fresh = value.view_as(value)
    fresh.requires_grad_(tensor.requires_grad)
    if isinstance(fresh, SimulatedTensor):
        own.update(host=fresh.host, _class_on_host=type(tensor))
        if isinstance(tensor, torch.nn.Parameter):
            own["_is_param"] = True
        kind: type = SimulatedTensor
    else:
        kind = own.get("_class_on_host", torch.nn.Parameter if own.get("_is_param") else torch.Tensor)
        for name in OWN:
            own.pop(name, None)
    torch._C._swap_tensor_impl(tensor, fresh)
    tensor.__class__ = kind
    if grad is not None:
        tensor.grad = grad.to(value.device)


def _set_data(self: torch.Tensor, value: torch.Tensor) -> None:
    if isinstance(self, SimulatedTensor) != isinstance(value, SimulatedTensor):
        become(self, value)
        return
    _native.__set__(self, value)
    if isinstance(self, SimulatedTensor) and isinstance(value, SimulatedTensor):
        self.host = value.host


def _swap(original: Callable[..., None]) -> Callable[..., None]:
    def swap_tensors(t1: torch.Tensor, t2: torch.Tensor) -> None:
        if isinstance(t1, SimulatedTensor) or isinstance(t2, SimulatedTensor):
            t1.data = t2
        else:
            original(t1, t2)

    return swap_tensors


def _compatible(original: Callable[..., bool]) -> Callable[..., bool]:
    def has_compatible_shallow_copy_type(tensor: torch.Tensor, other: torch.Tensor) -> bool:
        if isinstance(tensor, SimulatedTensor) or isinstance(other, SimulatedTensor):
            return tensor.layout == other.layout
        return original(tensor, other)

    return has_compatible_shallow_copy_type


def _traceable(original: Callable[..., bool]) -> Callable[..., bool]:
    def is_traceable_wrapper_subclass(value: object) -> bool:
        # one on CUDA is no subclass: a module that is to get new parameters gets them
        overwrites = torch.__future__.get_overwrite_module_params_on_conversion()
        return original(value) and not (overwrites and isinstance(value, SimulatedTensor))

    return is_traceable_wrapper_subclass


def _materialize(original: Callable[..., None]) -> Callable[..., None]:
    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        place = self.__dict__.pop("_simulated", None) if device is None else device
        if devices.index_of(place) is None:
            original(self, shape, device, dtype)
            return
        kind = self.cls_to_become
        self.cls_to_become = SimulatedTensor
        original(self, shape, place, dtype)
        del self.cls_to_become
        self._class_on_host = kind

    return materialize


def install(patches: Patches) -> None:
    """Let `data` be set across devices, and modules move with it."""
    data = property(lambda self: _native.__get__(self), _set_data, doc=_native.__doc__)
    patches.set(torch.Tensor, "data", data)
    patches.set(torch.utils, "swap_tensors", _swap(torch.utils.swap_tensors))
    compatible = _compatible(torch._has_compatible_shallow_copy_type)
    patches.set(torch, "_has_compatible_shallow_copy_type", compatible)
    modules: Any = torch.nn.modules.module
    patches.set(modules, "is_traceable_wrapper_subclass", _traceable(modules.is_traceable_wrapper_subclass))
    patches.set(Uninitialized, "materialize", _materialize(Uninitialized.materialize))
    # What a parameter without a shape allows is listed by function.
    Uninitialized._allowed_methods.extend([torch.Tensor.to, torch.Tensor.cuda, compatible])
