"""Tensors that change their device in place: `parameter.data = ...`, and so `Module.cuda()`.

On a CUDA machine a parameter stays the same object when its module moves.  A simulated tensor is of another class than
one of the host, so its class and its implementation are exchanged together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator.masquerade.tensors import subclasses
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
    kind = subclasses.on_host(type(tensor))
    if type(tensor) is SimulatedTensor and own.get("_is_param"):
        kind = torch.nn.Parameter
    torch._C._swap_tensor_impl(tensor, fresh)
    if isinstance(fresh, SimulatedTensor):
        own["host"] = fresh.host
        subclasses.become(tensor, kind)
    else:
        for name in OWN:
            own.pop(name, None)
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


def _materialize(original: Callable[..., None]) -> Callable[..., None]:
    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        original(self, shape, device, dtype)
        if "host" in self.__dict__:
            subclasses.become(self, type(self))

    return materialize


def _parameter(original: Callable[..., Any]) -> Callable[..., Any]:
    def new(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        if type(data) is SimulatedTensor:
            return torch.Tensor._make_subclass(cls, data, requires_grad)
        return original(cls, data, requires_grad)

    return new


def install(patches: Patches) -> None:
    """Let `data` be set across devices, and modules move with it."""
    data = property(lambda self: _native.__get__(self), _set_data, doc=_native.__doc__)
    patches.set(torch.Tensor, "data", data)
    patches.set(torch.utils, "swap_tensors", _swap(torch.utils.swap_tensors))
    compatible = _compatible(torch._has_compatible_shallow_copy_type)
    patches.set(torch, "_has_compatible_shallow_copy_type", compatible)
    patches.set(torch.nn.Parameter, "__new__", staticmethod(_parameter(torch.nn.Parameter.__new__)))
    patches.set(Uninitialized, "materialize", _materialize(Uninitialized.materialize))
    # What a parameter without a shape allows is listed by function.
    Uninitialized._allowed_methods.extend([torch.Tensor.to, torch.Tensor.cuda, compatible])
