"""The methods of tensors that take or tell a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch

from devlint.auditor.patches import Patches
from devlint.simulator import devices, errors
from devlint.simulator.devices import NAME
from devlint.simulator.masquerade.tensors import legacy_types
from devlint.simulator.tensor import SimulatedTensor

Uninitialized: Any = vars(torch.nn.parameter)["UninitializedTensorMixin"]
_TAKE_DEVICE = (
    "new_empty new_empty_strided new_full new_ones new_tensor new_zeros new pin_memory is_pinned to_sparse".split()
)
"""Methods with a keyword `device`."""


def with_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose keyword `device` may name a CUDA device."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") is not None:
            kwargs["device"] = devices.behind(kwargs["device"])
        return function(*args, **kwargs)

    return wrapper


def _to(original: Callable[..., Any]) -> Callable[..., Any]:
    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], (str, torch.device, int)):
            args = (devices.behind(args[0]), *args[1:])
        elif kwargs.get("device") is not None:
            kwargs["device"] = devices.behind(kwargs["device"])
        return original(self, *args, **kwargs)

    return to


def _cuda(original: Callable[..., Any]) -> Callable[..., Any]:
    def cuda(
        self: torch.Tensor,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: torch.memory_format = torch.preserve_format,
    ) -> Any:
        if isinstance(device, bool):
            raise TypeError("cuda(): argument 'device' (position 1) must be torch.device, not bool")
        target = devices.behind("cuda" if device is None else device)
        if isinstance(target, str) or target.type == "cpu":
            raise RuntimeError("Invalid device, must be cuda device")
        return self.to(target, non_blocking=non_blocking, memory_format=memory_format)

    return cuda


def _type(original: Callable[..., Any], to: Callable[..., Any]) -> Callable[..., Any]:
    def type_(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if dtype is None:
            return errors.type_name(self) if isinstance(self, SimulatedTensor) else original(self)
        if isinstance(dtype, torch.dtype):
            return to(self, dtype, non_blocking=non_blocking)
        on_device, element = legacy_types.meaning(dtype)
        if not on_device:
            return to(self, "cpu", element, non_blocking=non_blocking)
        keeps = isinstance(self, SimulatedTensor)
        return to(self, self.device if keeps else "cuda", element, non_blocking=non_blocking)

    return type_


def _pin_memory(self: SimulatedTensor, device: Any = None) -> NoReturn:
    raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")


_OF_SIMULATED: dict[str, Any] = {
    "is_shared": lambda self: True,
    "share_memory_": lambda self: self,
    "pin_memory": _pin_memory,
}
"""What simulated tensors say of themselves."""


def install(patches: Patches) -> None:
    """Let the methods of all tensors know CUDA devices, and simulated tensors say that they are on one."""
    tensor: Any = torch.Tensor
    # a tensor of a class that wraps another is on the device, too
    patches.set(tensor, "is_cuda", property(lambda self: self.device.type == NAME))
    patches.set(tensor, "is_privateuseone", property(lambda self: False))
    to = _to(tensor.to)
    patches.set(tensor, "type", _type(tensor.type, to))
    patches.set(tensor, "cuda", _cuda(tensor.cuda))
    patches.set(tensor, "to", to)
    for name in _TAKE_DEVICE:
        patches.set(tensor, name, with_device(getattr(tensor, name)))
    for name, value in _OF_SIMULATED.items():
        patches.set(SimulatedTensor, name, value)
