"""Compilers and profilers: everything around them is as ever, and what they would do with CUDA is left out.

`torch.compile` runs code uncompiled: a compiler has nothing to compile for a simulated device, and would only hide
which line copies what.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from devlint.auditor.patches import Patches

_NO_DYNAMO = (
    "devlint does not simulate TorchDynamo: torch.compile runs code as it is, and torch.export.export takes it with "
    "strict=False"
)
_POOL_STATE = "_cuda_CUDAAllocator_AllocatorState"
"""A class that TorchDynamo imports where there is CUDA, before it can be refused."""


def _uncompiled(model: Any) -> Any:
    """What `torch.compile` returns for a module or a function, without a compiler in it."""
    if isinstance(model, torch.nn.Module):
        from torch._dynamo import eval_frame  # imported by the first use of torch.compile only, as by torch

        return eval_frame.OptimizedModule(model, eval_frame.DisableContext())

    @functools.wraps(model)
    def function(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    function._torchdynamo_orig_callable = model  # type: ignore[attr-defined]  # where torch keeps it
    return function


def _uncaptured(original: Callable[..., Any]) -> Callable[..., Any]:
    def set_eval_frame(callback: Any) -> Any:
        if callable(callback):
            raise NotImplementedError(_NO_DYNAMO)
        return original(callback)

    return set_eval_frame


def _not_strict(original: Callable[..., Any]) -> Callable[..., Any]:
    def export(*args: Any, strict: bool = False, **options: Any) -> Any:
        if strict:
            raise NotImplementedError(_NO_DYNAMO)
        return original(*args, **options)

    return export


def install(patches: Patches) -> None:
    """Let `torch.compile` leave code as it is, and profilers run without the tools that only a CUDA build has."""
    profiler = torch.autograd.profiler
    native: Any = torch._C
    if not hasattr(native, _POOL_STATE):
        patches.set(native, _POOL_STATE, type(_POOL_STATE, (), {}))
    for owner in (native._dynamo.eval_frame, sys.modules.get("torch._dynamo.eval_frame")):
        if owner is not None:
            patches.set(owner, "set_eval_frame", _uncaptured(owner.set_eval_frame))
    patches.set(torch.export, "export", _not_strict(torch.export.export))
    original = profiler.profile.__init__

    def compile_(model: Any = None, **options: Any) -> Any:
        return _uncompiled if model is None else _uncompiled(model)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.update(use_device=None, use_cpu=True)  # what is done for a device is done on the host
        if kwargs.pop("use_cuda", False):
            text = "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead."
            warnings.warn(text, FutureWarning, stacklevel=2)
        original(self, *args, **kwargs)

    patches.set(torch, "compile", compile_)
    patches.set(profiler.profile, "__init__", init)
    patches.set(profiler.emit_nvtx, "__enter__", lambda self: self)
    patches.set(profiler.emit_nvtx, "__exit__", lambda self, *exception: False)
