"""What of `torch.cuda` is not simulated: each raises one error that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch.utils import dlpack

from devlint.auditor.patches import Patches
from devlint.simulator.tensor import SimulatedTensor

FUNCTIONS = """
caching_allocator_alloc caching_allocator_delete change_current_allocator current_blas_handle current_solver_handle
get_stream_from_external graph_pool_handle list_gpu_processes make_graphed_callables device_memory_used memory_usage
utilization temperature power_draw clock_rate use_mem_pool
""".split()
"""Functions of `torch.cuda`."""

METHODS = ("__dlpack__", "__dlpack_device__")
"""Methods of tensors on a simulated device; the property `__cuda_array_interface__` besides."""

CLASSES = "CUDAGraph GreenContext MemPool CUDAPluggableAllocator".split()
"""Classes of `torch.cuda`: no instance can be made."""


def refusing(name: str) -> Callable[..., NoReturn]:
    """What takes the place of something with that name, and says that it is not simulated."""

    def wrapper(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"devlint does not simulate {name}")

    return wrapper


def install(patches: Patches) -> None:
    """Replace what cannot work by what says so."""
    for name in FUNCTIONS:
        original, replacement = getattr(torch.cuda, name, None), refusing(f"torch.cuda.{name}")
        for owner in (torch.cuda, torch.cuda.memory, torch.cuda.graphs):
            if original is not None and getattr(owner, name, None) is original:
                patches.set(owner, name, replacement)
    for name in METHODS:
        patches.set(SimulatedTensor, name, refusing(f"torch.Tensor.{name}"))
    interface = "__cuda_array_interface__"
    patches.set(SimulatedTensor, interface, property(refusing(f"torch.Tensor.{interface}")))
    convert = vars(dlpack)["to_dlpack"]

    def to_dlpack(tensor: torch.Tensor) -> Any:
        return tensor.__dlpack__() if isinstance(tensor, SimulatedTensor) else convert(tensor)

    for owner in (torch, dlpack):
        patches.set(owner, "to_dlpack", to_dlpack)
    for name in CLASSES:
        kind = getattr(torch.cuda, name, None)
        if kind is not None:
            patches.set(kind, "__new__", staticmethod(refusing(f"torch.cuda.{name}")))
