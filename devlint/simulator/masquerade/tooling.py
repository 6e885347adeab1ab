"""Compilers and profilers: everything around them is as ever, and what they would do with CUDA is left out.

`torch.compile` runs code uncompiled: a compiler has nothing to compile for a simulated device, and would only hide
which line copies what.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch
from torch.jit import _builtins

from devlint.auditor.patches import Patches


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


def let_scripts_find_replacements(patches: Patches) -> None:
    """Let `torch.jit` know its operations by the functions that took the places of torch's own, too.

    It knows them by identity, and would compile what it does not know.
    """
    jit: Any = _builtins
    known = dict(jit._get_builtin_table())
    patches.set(jit, "_builtin_table", None)  # the next call looks at all of torch again
    patches.set(jit, "_builtin_table", known | jit._get_builtin_table())


def install(patches: Patches) -> None:
    """Let `torch.compile` leave code as it is, and profilers run without the tools that only a CUDA build has."""
    profiler = torch.autograd.profiler
    original = profiler.profile.__init__

    def compile_(model: Any = None, **options: Any) -> Any:
        return _uncompiled if model is None else _uncompiled(model)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs["use_device"] = None
        if kwargs.pop("use_cuda", False):
            text = "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead."
            warnings.warn(text, FutureWarning, stacklevel=2)
        original(self, *args, **kwargs)

    patches.set(torch, "compile", compile_)
    patches.set(profiler.profile, "__init__", init)
    patches.set(profiler.emit_nvtx, "__enter__", lambda self: self)
    patches.set(profiler.emit_nvtx, "__exit__", lambda self, *exception: False)
