"""Legacy types such as `torch.cuda.FloatTensor`, of which simulated tensors are instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator.tensor import SimulatedTensor

NAMES = tuple(f"{name}Tensor" for name in "Byte Char Short Int Long Half BFloat16 Float Double Bool".split())
_OWNERS: dict[str, Any] = {module.__name__: module for module in (torch, torch.sparse, torch.cuda, torch.cuda.sparse)}
"""The modules with legacy types, by name."""


class _CudaType(type):
    """The class of `torch.cuda.FloatTensor`: calling it makes a tensor, and `isinstance` asks for device and dtype."""

    dtype: torch.dtype
    layout: torch.layout

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, SimulatedTensor):
            return False
        return (instance.dtype, instance.layout) == (cls.dtype, cls.layout)

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        """A tensor of the sizes given, or of the numbers given."""
        device = kwargs.pop("device", "cuda")
        if cls.layout is torch.sparse_coo:
            sized = not args or isinstance(args[0], (int, torch.Size))
            args = (args if args and isinstance(args[0], torch.Size) else (args or (0,),)) if sized else args
            return torch.sparse_coo_tensor(*args, dtype=cls.dtype, device=device, **kwargs)
        if len(args) == 1 and not isinstance(args[0], (int, torch.Size)):
            return torch.tensor(args[0], dtype=cls.dtype, device=device, **kwargs)
        size = args[0] if args and isinstance(args[0], torch.Size) else args or (0,)
        return torch.empty(size, dtype=cls.dtype, device=device, **kwargs)


def meaning(kind: Any) -> tuple[bool, torch.dtype]:
    """Whether a legacy type, or its name, is one of a CUDA device, and its dtype; raises what torch raises."""
    if isinstance(kind, str):
        place, _, name = kind.rpartition(".")
        owner = _OWNERS.get(place)
        kind = getattr(owner, name, None)
        if owner is None or not isinstance(getattr(kind, "dtype", None), torch.dtype):
            raise ValueError(f"invalid type: '{place}.{name}'" if place else f"invalid type: '{name}'")
    if not isinstance(getattr(kind, "dtype", None), torch.dtype):
        raise TypeError("dtype must be a type, str, or dtype object")
    return isinstance(kind, _CudaType), kind.dtype


def _default_type(original: Callable[..., None], set_device: Callable[..., None]) -> Callable[..., None]:
    in_force = False

    def set_default_tensor_type(t: Any, /) -> None:
        nonlocal in_force
        on_device, dtype = meaning(t)
        if on_device:
            torch.set_default_dtype(dtype)
            set_device("cuda")
        else:
            original(t)
            if in_force:
                set_device(None)
        in_force = on_device

    return set_default_tensor_type


def install(patches: Patches) -> None:
    """Replace the types in `torch.cuda`, which are nobody's in a build without CUDA."""
    for owner, layout in ((torch.cuda, torch.strided), (torch.cuda.sparse, torch.sparse_coo)):
        sparse = layout is not torch.strided
        shared = {"__module__": owner.__name__, "layout": layout, "is_cuda": True, "is_sparse": sparse}
        for name in NAMES:
            before = getattr(owner, name, None)
            if before is not None:
                kind = _CudaType(name, (), {**shared, "__doc__": before.__doc__, "dtype": before.dtype})
                patches.set(owner, name, kind)
    default_type = _default_type(torch.set_default_tensor_type, torch.set_default_device)
    patches.set(torch, "set_default_tensor_type", default_type)
