"""`torch.distributed` with the backend "nccl": gloo does the work, on the host's side of simulated tensors.

A group says that it is one of NCCL, and refuses tensors of the CPU as such a group does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from devlint.auditor.patches import Patches
from devlint.simulator import dispatch
from devlint.simulator.tensor import SimulatedTensor

METHODS = """
allreduce allreduce_coalesced reduce broadcast allgather _allgather_base allgather_coalesced gather scatter
allgather_into_tensor_coalesced reduce_scatter _reduce_scatter_base reduce_scatter_tensor_coalesced alltoall
alltoall_base send recv
""".split()
"""Methods of a process group that take tensors."""
FLAT = ("_allgather_base_", "_reduce_scatter_base_")
"""Collectives on one tensor for all ranks."""


class _Options:
    """`ProcessGroupNCCL.Options`."""

    def __init__(self, is_high_priority_stream: bool = False) -> None:
        self.is_high_priority_stream = is_high_priority_stream
        self.config = SimpleNamespace()
        self._timeout = timedelta(minutes=10)


def _nccl(gloo: Any) -> Any:
    """A class that is `ProcessGroupNCCL` by name and gloo's by work."""

    class ProcessGroupNCCL(gloo):  # type: ignore[misc]  # the base class is Any: it is not in every build
        """A backend of NCCL, on gloo."""

        Options = _Options

        def __init__(self, store: Any, rank: int, size: int, options: Any = None) -> None:
            super().__init__(store, rank, size, timeout=(options or _Options())._timeout)

    ProcessGroupNCCL.__module__ = "torch.distributed.distributed_c10d"
    return ProcessGroupNCCL


_CPU = torch.device("cpu")
_kept: list[Any] = []
"""The backends made, so that C++ code hands out these objects and not new ones of gloo's class."""
_device_types: Callable[[Any], list[torch.device]] = list


def _knows_cpu(group: Any) -> bool:
    return any(device.type == "cpu" for device in _device_types(group))


def _only_cuda(group: Any) -> bool:
    """Whether the group is registered for the CPU only since the host's tensors are what reaches it."""
    return _knows_cpu(group) and any(group._get_backend(_CPU) is backend for backend in _kept)


def _registering(original: Callable[..., None], nccl: type) -> Callable[..., None]:
    def register_backend(self: Any, device: torch.device, kind: Any, backend: Any = None) -> None:
        original(self, device, kind, backend)
        if isinstance(backend, nccl) and not _knows_cpu(self):
            _kept.append(backend)
            original(self, _CPU, kind, backend)

    return register_backend


def _refusing(original: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _only_cuda(self):
            for tensor in pytree.tree_leaves((args, kwargs)):
                if isinstance(tensor, torch.Tensor) and not isinstance(tensor, SimulatedTensor):
                    raise RuntimeError(f"No backend type associated with device type {tensor.device.type}")
        return original(self, *args, **kwargs)

    return method


def _shown(group: Any) -> list[torch.device]:
    """The types of devices of a group, as one of NCCL tells them."""
    hidden = _only_cuda(group)
    return [device for device in _device_types(group) if not (hidden and device.type == "cpu")]


def _flat(op: Any, args: Any, kwargs: Any) -> Any:
    """Run a collective on flat tensors: NCCL fills memory in order, gloo wants a first dimension to be split."""
    flat = [argument.view(-1) if isinstance(argument, SimulatedTensor) else argument for argument in args]
    return (args[0], *dispatch.run(op, flat, kwargs)[1:])


def _reduced(op: Any, args: Any, kwargs: Any) -> Any:
    """Run a reduction whose work ends with the simulated tensors: DDP takes the gradients from there."""
    from torch._C._distributed_c10d import (  # type: ignore[attr-defined]  # the stubs leave it out
        Work,
        _create_work_from_future,
    )

    tensors = args[0]
    *_, work = dispatch.run(op, args, kwargs)
    future = Work.unbox(work).get_future().then(lambda done: (done.wait(), tensors)[1])
    return tensors, _create_work_from_future(future).boxed()


def install(patches: Patches) -> None:
    """Let process groups be made with the backend "nccl", where this torch has gloo."""
    global _device_types
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        return
    c10d: Any = torch.distributed.distributed_c10d
    nccl = _nccl(c10d.ProcessGroupGloo)
    group = c10d.ProcessGroup
    _device_types = vars(group)["_device_types"].__get__
    for owner in (c10d, torch.distributed):
        patches.set(owner, "ProcessGroupNCCL", nccl)
    patches.set(c10d, "_NCCL_AVAILABLE", True)
    patches.set(c10d, "default_pg_nccl_timeout", timedelta(minutes=10))
    patches.set(group, "_register_backend", _registering(group._register_backend, nccl))
    for name in METHODS:
        if hasattr(group, name):
            patches.set(group, name, _refusing(getattr(group, name)))
    patches.set(group, "_device_types", property(_shown))
    for name in FLAT:
        dispatch.HANDLERS[getattr(torch.ops.c10d, name).default] = _flat
    dispatch.HANDLERS[torch.ops.c10d.allreduce_.default] = _reduced
