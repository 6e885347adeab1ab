"""Tensors of the script's own classes on a device: images of torchvision and fastai, whatever `as_subclass` is given.

A simulated tensor is of a class of its own already, so for each class there is another that is both.
"""

from __future__ import annotations

from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator.tensor import SimulatedTensor

_converted: Any = torch.Tensor.__torch_function__.__func__  # type: ignore[attr-defined]  # it is a class method
_simulated: dict[type, Any] = {}
_on_host: dict[type, type] = {SimulatedTensor: torch.Tensor}


class _Converting:
    """What functions return is of the class of their arguments, as `Tensor` has it and simulated tensors do not."""

    __slots__ = ()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # a function of its own: torch's, where it finds that, it takes for none
        return _converted(cls, func, types, args, kwargs)


def simulated(cls: Any) -> Any:
    """The class of simulated tensors that are of the script's class, too; it derives as that one does."""
    if cls is torch.Tensor:
        return SimulatedTensor
    known = _simulated.get(cls)
    if known is None:
        bases = [simulated(base) if issubclass(base, torch.Tensor) else base for base in cls.__bases__]
        if SimulatedTensor in bases:
            bases.insert(bases.index(SimulatedTensor), _Converting)
        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
        known = _simulated[cls] = type(cls)(cls.__name__, (cls, *bases), names)
        _on_host[known] = cls
    return known


def on_host(cls: type) -> type:
    """The class of the host's tensors that a simulated tensor of this class is one of."""
    return _on_host.get(cls, cls)


def become(tensor: Any, cls: type) -> None:
    """Let a simulated tensor be one of a class of the host's tensors; of parameters torch has a mark besides."""
    if issubclass(cls, torch.nn.Parameter):
        tensor.__dict__["_is_param"] = True
    tensor.__class__ = SimulatedTensor if cls is torch.nn.Parameter else simulated(cls)


def _dispatches(cls: Any) -> bool:
    """Whether the class says itself what becomes of an operation."""
    return "__torch_dispatch__" in {name for base in cls.__mro__ if base is not torch.Tensor for name in vars(base)}


def install(patches: Patches) -> None:
    """Let a simulated tensor become one of the script's classes."""
    tensor: Any = torch.Tensor
    as_its_own, make = tensor.as_subclass, tensor._make_subclass

    def as_subclass(self: torch.Tensor, cls: Any) -> Any:
        cls = on_host(cls)
        if not isinstance(self, SimulatedTensor) or _dispatches(cls):
            return as_its_own(self, cls)
        with torch._C.DisableTorchFunctionSubclass():
            result: Any = torch.ops.aten.alias(self)
        become(result, cls)
        return result

    def make_subclass(cls: Any, data: torch.Tensor, require_grad: bool = False, **options: Any) -> Any:
        cls = on_host(cls)
        if not isinstance(data, SimulatedTensor) or _dispatches(cls):
            return make(cls, data, require_grad, **options)
        with torch._C.DisableTorchFunctionSubclass():
            result: Any = data.detach().requires_grad_(require_grad)
        become(result, cls)
        return result

    patches.set(tensor, "as_subclass", as_subclass)
    patches.set(tensor, "_make_subclass", staticmethod(make_subclass))
