"""Autocast: what is set and asked for "cuda" is that of the simulated device."""

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


def _translated(original: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device_type") == "cuda":
            kwargs["device_type"] = NAME
        elif args and args[0] == "cuda":
            args = (NAME, *args[1:])
        elif not kwargs and not any(isinstance(argument, str) for argument in args):
            args = (NAME, *args)  # without a device type, CUDA is meant
        return original(*args, **kwargs)

    return wrapper


def _deprecated(name: str, successor: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any) -> Any:
        text = f"torch.{name}() is deprecated. Please use torch.{successor}('cuda') instead."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return function("cuda", *args)

    return wrapper


def install(patches: Patches) -> None:
    """Translate the device type in the functions of autocast."""
    translated = {name: _translated(getattr(torch, name)) for name in _BY_TYPE}
    for name, function in translated.items():
        patches.set(torch, name, function)
    for name, successor in _OF_CUDA.items():
        patches.set(torch, name, _deprecated(name, successor, translated[successor]))
