"""Tensors that are sharded over processes (`DTensor`), as FSDP2 makes them: what torch has to know of them."""

from __future__ import annotations

import sys
from typing import Any

import torch

from devlint.auditor.patches import Patches

_known: set[type] = set()


def _introduce() -> None:
    """Let torch work with sharded tensors.

    What an operation makes of them is found out with tensors that have no data, for which torch wants a device that it
    was built for.  Random numbers it draws for all parts in agreement, by the state of CUDA's generators; here each
    process draws its own.
    """
    schemas: Any = sys.modules.get("torch.distributed.tensor._op_schema")
    if hasattr(schemas, "_rebuild_tensor_from_dtensor_meta"):
        schemas._rebuild_tensor_from_dtensor_meta = _rebuilt
    for name in ("_random", "_dispatch"):
        module: Any = sys.modules.get(f"torch.distributed.tensor.{name}")
        if hasattr(module, "is_rng_supported_mesh"):
            module.is_rng_supported_mesh = lambda mesh: False


def _rebuilt(spec: Any) -> torch.Tensor:
    """A tensor of the host, of the shape of a sharded one."""
    meta = spec.tensor_meta
    return torch.empty_strided(meta.shape, meta.stride, dtype=meta.dtype, device="cpu")


def install(patches: Patches) -> None:
    """Wait for the first sharded tensor: what makes them is slow to import, and few scripts do."""
    tensor: Any = torch.Tensor
    original = getattr(tensor, "_dtensor__new__", None)
    if original is None:
        return

    def new(kind: Any, *args: Any, **kwargs: Any) -> Any:
        if kind not in _known:
            _known.add(kind)
            _introduce()
        return original(kind, *args, **kwargs)

    patches.set(tensor, "_dtensor__new__", staticmethod(new))
