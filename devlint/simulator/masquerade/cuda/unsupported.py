"""What of `torch.cuda` is not simulated: each raises one error that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch

from devlint.auditor.patches import Patches

FUNCTIONS = """
caching_allocator_alloc caching_allocator_delete change_current_allocator current_blas_handle current_solver_handle
list_gpu_processes device_memory_used memory_usage
utilization temperature power_draw clock_rate
""".split()
"""Functions of `torch.cuda`."""

CLASSES = "GreenContext CUDAPluggableAllocator".split()
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
    patches.set(torch._C, "_cuda_jiterator_compile_and_launch_kernel", refusing("torch.cuda.jiterator"))
    for name in CLASSES:
        kind = getattr(torch.cuda, name, None)
        if kind is not None:
            patches.set(kind, "__new__", staticmethod(refusing(f"torch.cuda.{name}")))
