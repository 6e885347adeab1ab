"""Profilers: what they would see of CUDA is left out, as there is none to be seen."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from devlint.auditor.patches import Patches


def install(patches: Patches) -> None:
    """Let profilers run without the tools that only a CUDA build has."""
    profiler = torch.autograd.profiler
    original = profiler.profile.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs["use_device"] = None
        if kwargs.pop("use_cuda", False):
            text = "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead."
            warnings.warn(text, FutureWarning, stacklevel=2)
        original(self, *args, **kwargs)

    patches.set(profiler.profile, "__init__", init)
    patches.set(profiler.emit_nvtx, "__enter__", lambda self: self)
    patches.set(profiler.emit_nvtx, "__exit__", lambda self, *exception: False)
