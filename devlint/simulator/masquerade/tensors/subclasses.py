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
        bases = [simulated(base) for base in cls.__bases__ if issubclass(base, torch.Tensor)]
        if SimulatedTensor in bases:
            bases.insert(bases.index(SimulatedTensor), _Converting)
        others = [base for base in cls.__bases__ if not issubclass(base, torch.Tensor)]
        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
        known = _simulated[cls] = type(cls)(cls.__name__, (cls, *bases, *others), names)
        _on_host[known] = cls
    return known


def _dispatches(cls: Any) -> bool:
    """Whether the class says itself what becomes of an operation."""
    return "__torch_dispatch__" in {name for base in cls.__mro__ if base is not torch.Tensor for name in vars(base)}


def install(patches: Patches) -> None:
    """Let a simulated tensor become one of the script's classes."""
    tensor: Any = torch.Tensor
    as_its_own, make = tensor.as_subclass, tensor._make_subclass

    def as_subclass(self: torch.Tensor, cls: Any) -> Any:
        cls = _on_host.get(cls, cls)
        if not isinstance(self, SimulatedTensor) or _dispatches(cls):
            return as_its_own(self, cls)
        with torch._C.DisableTorchFunctionSubclass():
            result: Any = torch.ops.aten.alias(self)
        result.__class__ = simulated(cls)
        return result

    def make_subclass(cls: Any, data: torch.Tensor, require_grad: bool = False, **options: Any) -> Any:
        cls = _on_host.get(cls, cls)
        if not isinstance(data, SimulatedTensor) or _dispatches(cls) or issubclass(cls, torch.nn.Parameter):
            return make(cls, data, require_grad, **options)
        with torch._C.DisableTorchFunctionSubclass():
            result: Any = data.detach()
        result.__class__ = simulated(cls)
        return result.requires_grad_(require_grad)

    patches.set(tensor, "as_subclass", as_subclass)
    patches.set(tensor, "_make_subclass", staticmethod(make_subclass))
