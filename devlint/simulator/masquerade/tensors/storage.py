"""Storages of simulated tensors: what `torch.save` writes and `torch.load` reads is what it would be with CUDA.

The memory of a simulated tensor is a storage of the host.  torch's pickling and loading ask a storage for its device
and move it; the storages below answer as those of a GPU, so that checkpoints say `cuda:0` where CUDA would.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator import devices
from devlint.simulator.tensor import SimulatedTensor, wrap


class SimulatedStorage(torch.UntypedStorage):
    """The storage of a simulated tensor's host tensor, which says that it is on the device."""

    index: int

    @property
    def device(self) -> torch.device:  # type: ignore[override]  # an attribute in torch's stub
        """The virtual device."""
        return devices.device(self.index)

    @property
    def is_cuda(self) -> bool:
        """Always true."""
        return True

    def is_shared(self) -> bool:
        """Always true, as for memory of a GPU."""
        return True

    def share_memory_(self, *args: Any, **kwargs: Any) -> SimulatedStorage:
        """Nothing is to do for memory of a GPU."""
        return self

    def cpu(self) -> torch.UntypedStorage:
        """A copy on the host, made by ``copy_`` of tensors."""
        return _copied(self, None, False)

    def clone(self) -> torch.UntypedStorage:
        """A copy on the same device."""
        return _copied(self, self.index, False)

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Any:
        """Take the bytes of a storage on the host or a device."""
        _bytes(self).copy_(_bytes(source), bool(non_blocking))
        return self

    def _write_file(self, *args: Any) -> None:
        host: Any = self.cpu()
        host._write_file(*args)


def of(tensor: SimulatedTensor) -> torch.UntypedStorage:
    """The storage of a simulated tensor."""
    storage: Any = tensor.host.untyped_storage()
    # There is one Python object for a storage as long as the storage lives, so the class stays.
    storage.__class__ = SimulatedStorage
    storage.index = tensor.device.index
    return storage  # type: ignore[no-any-return]  # its class has just been changed


def _typed_storage(tensor: SimulatedTensor) -> Any:
    """The same with a dtype."""
    make: Any = torch.storage.TypedStorage
    return make(wrap_storage=of(tensor), dtype=tensor.dtype, _internal=True)


def _bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    """A storage as a tensor of bytes, on the storage's device."""
    host = torch.empty(0, dtype=torch.uint8)
    host.set_(storage)
    return wrap(host, storage.index) if isinstance(storage, SimulatedStorage) else host


def _copied(storage: torch.UntypedStorage, index: int | None, non_blocking: bool) -> torch.UntypedStorage:
    """A copy of a storage on a virtual device, or on the host."""
    target: Any
    if index is None:
        pinned = non_blocking and isinstance(storage, SimulatedStorage)
        target = torch.empty(storage.nbytes(), dtype=torch.uint8, pin_memory=pinned)
    else:
        target = torch.empty(storage.nbytes(), dtype=torch.uint8, device=devices.behind(index))
    if storage.nbytes():
        target.copy_(_bytes(storage), non_blocking)
    result: torch.UntypedStorage = target.untyped_storage()
    return result


def _made(original: Any) -> Any:
    """What makes a storage, also on a device."""

    def new(cls: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        index = devices.index_of(device)
        if index is None:
            return original(cls, *args, **kwargs, **({} if device is None else {"device": device}))
        devices.behind(index)
        storage: Any = original(torch.UntypedStorage, *args, **kwargs)
        storage.__class__ = SimulatedStorage
        storage.index = index
        return storage

    return new


def _reduce(self: SimulatedTensor, protocol: Any) -> Any:
    """How a simulated tensor is pickled: as a tensor of a GPU."""
    if getattr(self, "_is_param", False):
        return torch._utils._rebuild_parameter, (self.data, self.requires_grad, OrderedDict())
    if self.layout is not torch.strided:
        by_parts: Any = torch.Tensor._reduce_ex_internal
        return by_parts(self, protocol)
    storage = _typed_storage(self)
    shape = (self.storage_offset(), tuple(self.size()), self.stride())
    return torch._utils._rebuild_tensor_v2, (storage, *shape, self.requires_grad, OrderedDict())


def rebuild(host: torch.Tensor, index: int, requires_grad: bool, parameter: bool) -> torch.Tensor:
    """A simulated tensor that another process sent; its memory is shared."""
    tensor = wrap(host, devices.behind(index).index, requires_grad)
    return torch.nn.Parameter(tensor, requires_grad) if parameter else tensor


def _send(tensor: SimulatedTensor) -> Any:
    """How a simulated tensor goes to another process: its memory is shared, as that of a GPU is."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    storage: Any = tensor.host.untyped_storage()
    storage.__class__ = torch.UntypedStorage
    parameter = getattr(tensor, "_is_param", False)
    return rebuild, (tensor.host, tensor.device.index, tensor.requires_grad, parameter)


def install(patches: Patches) -> None:
    """Let simulated tensors have such storages, and storages move to them."""
    from multiprocessing.reduction import ForkingPickler

    import torch.multiprocessing  # so that its own rules are there before those below

    patches.set(SimulatedTensor, "untyped_storage", of)
    patches.set(SimulatedTensor, "_typed_storage", _typed_storage)
    patches.set(SimulatedTensor, "__reduce_ex__", _reduce)
    original = torch.UntypedStorage.to

    def to(self: torch.UntypedStorage, *, device: Any, non_blocking: bool = False) -> Any:
        index, simulated = devices.index_of(device), isinstance(self, SimulatedStorage)
        if index is None and not (simulated and torch.device(device).type == "cpu"):
            return original(self, device=device, non_blocking=non_blocking)
        if isinstance(self, SimulatedStorage) and self.index == index:
            return self
        return _copied(self, index, non_blocking)

    patches.set(torch.UntypedStorage, "to", to)
    patches.set(torch.UntypedStorage, "__new__", staticmethod(_made(torch.UntypedStorage.__new__)))
    ForkingPickler.register(SimulatedTensor, _send)
