"""Autocast: where no type of device is said, what is set and asked is that of the simulated device."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator.devices import NAME

_BY_TYPE = ("is_autocast_enabled", "set_autocast_enabled", "get_autocast_dtype", "set_autocast_dtype")
"""Functions of torch whose first argument is a device type."""
_OF_CUDA = {f"{verb}_autocast_gpu_dtype": f"{verb}_autocast_dtype" for verb in ("get", "set")}
"""Their predecessors, which speak of CUDA without saying so."""


def _of_cuda(original: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and not any(isinstance(argument, str) for argument in args):
            args = (NAME, *args)
        return original(*args, **kwargs)

    return wrapper


def _deprecated(name: str, successor: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any) -> Any:
        text = f"torch.{name}() is deprecated. Please use torch.{successor}('cuda') instead."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return function("cuda", *args)

    return wrapper


def install(patches: Patches) -> None:
    """Say the type of device to the functions of autocast; the one that torch means is that of a GPU."""
    for name in _BY_TYPE:
        patches.set(torch, name, _of_cuda(getattr(torch, name)))
    for name, successor in _OF_CUDA.items():
        patches.set(torch, name, _deprecated(name, successor, getattr(torch, successor)))
