"""Memory that goes to other libraries and comes back: DLPack and the CUDA array interface.

What is handed out says that it is on a CUDA device, so that a library for the host refuses it as on a CUDA machine;
what torch gets back shares memory with the tensor that it was.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils import dlpack

from devlint.auditor.patches import Patches
from devlint.simulator import devices
from devlint.simulator.tensor import SimulatedTensor, wrap

_CPU, _CUDA = 1, 2
"""What DLPack calls the two types of devices."""
_OFFSETS = {b"dltensor": 8, b"dltensor_versioned": 40}
"""Where the device is in what a capsule of that name points to: `DLManagedTensor` and `DLManagedTensorVersioned` of
dlpack.h."""
_pointer: Any = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_is_valid: Any = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_native: Any = torch._C


def _device(capsule: Any) -> Any:
    """Type and index of the device that a capsule names, to be read and written; `None` if it has been used."""
    for name, offset in _OFFSETS.items():
        if _is_valid(capsule, name):
            return (ctypes.c_int32 * 2).from_address(_pointer(capsule, name) + offset)
    return None


def _exporting(original: Callable[..., Any]) -> Callable[..., Any]:
    def to_dlpack(tensor: torch.Tensor, *, dl_device: Any = None, copy: bool | None = None) -> Any:
        if not isinstance(tensor, SimulatedTensor):
            return original(tensor, dl_device=dl_device, copy=copy)
        index = tensor.get_device()
        target = (_CUDA, index) if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
        if target != (_CUDA, index):
            if copy is False:
                raise ValueError("cannot move (i.e. copy=False) tensor from one device to another")
            place = torch.device("cuda", target[1]) if target[0] == _CUDA else torch.device("cpu")
            return to_dlpack(tensor.to(place))
        capsule = original(tensor.host, copy=copy)
        _device(capsule)[:] = target
        return capsule

    return to_dlpack


def _importing(original: Callable[..., Any]) -> Callable[..., Any]:
    def from_dlpack(capsule: Any) -> torch.Tensor:
        place = _device(capsule)
        if place is None or place[0] != _CUDA:
            return original(capsule)  # type: ignore[no-any-return]  # a tensor
        index = devices.check_index(place[1])
        place[:] = _CPU, 0
        return wrap(original(capsule), index)

    return from_dlpack


def _named(original: Callable[..., Any]) -> Callable[..., Any]:
    def to_dl_device(device: torch.device) -> Any:
        index = devices.index_of(device)
        return original(device) if index is None else (dlpack.DLDeviceType.kDLCUDA, index)

    return to_dl_device


def _adopting(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch that makes a tensor of data, which may be the memory of a device."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if args and not isinstance(args[0], torch.Tensor) and hasattr(args[0], "__cuda_array_interface__"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # it is told that the data is a tensor, which it was not
                return original(_adopted(args[0]), *args[1:], **kwargs)
        return original(*args, **kwargs)

    return function


def _adopted(owner: Any) -> torch.Tensor:
    """The memory that an object of the CUDA array interface points to, which is alive as long as the object is."""
    import numpy as np

    described = SimpleNamespace(__array_interface__={**owner.__cuda_array_interface__, "version": 3}, owner=owner)
    return wrap(torch.from_numpy(np.asarray(described)), devices.current())


def install(patches: Patches) -> None:
    """Let simulated tensors be exchanged."""
    exporting = {name: _exporting(getattr(_native, name)) for name in ("_to_dlpack", "_to_dlpack_versioned")}
    for name, function in exporting.items():
        patches.set(_native, name, function)
    for owner in (torch, dlpack):
        patches.set(owner, "to_dlpack", exporting["_to_dlpack"])
    patches.set(_native, "_from_dlpack", _importing(_native._from_dlpack))
    patches.set(_native, "_torchDeviceToDLDevice", _named(_native._torchDeviceToDLDevice))
    for name in ("tensor", "as_tensor", "asarray"):
        patches.set(torch, name, _adopting(getattr(torch, name)))
