"""`torch.compile`: everything around it is as ever, and the code runs uncompiled.

A compiler has nothing to compile for a simulated device, and would only hide which line copies what.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

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


def install(patches: Patches) -> None:
    """Let `torch.compile` leave code as it is."""

    def compile_(model: Any = None, **options: Any) -> Any:
        return _uncompiled if model is None else _uncompiled(model)

    patches.set(torch, "compile", compile_)
