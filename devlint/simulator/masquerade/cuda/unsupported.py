"""What of `torch.cuda` is not simulated: each raises one error that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch

from devlint.auditor.patches import Patches

_MEASURED = "there is no card to ask"
_ADDRESSES = "memory of the host is behind the devices"
FUNCTIONS = {
    **dict.fromkeys("device_memory_used memory_usage utilization temperature power_draw clock_rate".split(), _MEASURED),
    "list_gpu_processes": _MEASURED,
    **dict.fromkeys("caching_allocator_alloc caching_allocator_delete change_current_allocator".split(), _ADDRESSES),
    **dict.fromkeys(("current_blas_handle", "current_solver_handle"), "no library of CUDA is behind the devices"),
}
"""Functions of `torch.cuda`, and why they are not."""

CLASSES = {"GreenContext": "there are no multiprocessors to share", "CUDAPluggableAllocator": _ADDRESSES}
"""Classes of `torch.cuda` of which no instance can be made, and why."""

JITERATOR = "it compiles C++ for a card, and there is none"


def refusing(name: str, why: str) -> Callable[..., NoReturn]:
    """What takes the place of something of `torch.cuda` with that name, and says that it is not simulated, and why."""

    def wrapper(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"devlint does not simulate torch.cuda.{name}: {why}")

    return wrapper


def install(patches: Patches) -> None:
    """Replace what cannot work by what says so."""
    for name, why in FUNCTIONS.items():
        original, replacement = getattr(torch.cuda, name, None), refusing(name, why)
        for owner in (torch.cuda, torch.cuda.memory, torch.cuda.graphs):
            if original is not None and getattr(owner, name, None) is original:
                patches.set(owner, name, replacement)
    patches.set(torch._C, "_cuda_jiterator_compile_and_launch_kernel", refusing("jiterator", JITERATOR))
    for name, why in CLASSES.items():
        kind = getattr(torch.cuda, name, None)
        if kind is not None:
            patches.set(kind, "__new__", staticmethod(refusing(name, why)))
