"""Checks of autograd that torch makes for its own tensors only, and the names by which it calls them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator.devices import NAME
from devlint.simulator.tensor import SimulatedTensor

_TYPE = re.compile(f"{NAME}([A-Za-z0-9]+)Type")
"""What the engine calls a type of tensors of the simulated device: ``devlintsimFloatType``."""


def _same_device(original: Callable[..., Any]) -> Callable[..., Any]:
    def make_grads(outputs: Any, grads: Any, *args: Any, **kwargs: Any) -> Any:
        for index, (output, grad) in enumerate(zip(outputs, grads, strict=False)):
            if not isinstance(output, SimulatedTensor) or not isinstance(grad, torch.Tensor):
                continue
            if grad.dim() and grad.device != output.device:
                raise RuntimeError(
                    f"invalid gradient at index {index} - expected device {output.device} but got {grad.device}"
                )
        return original(outputs, grads, *args, **kwargs)

    return make_grads


def _named(original: Callable[..., Any]) -> Callable[..., Any]:
    """The engine, which calls the tensors in its errors as it calls those of CUDA."""

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except RuntimeError as error:
            if error.args and NAME in str(error.args[0]):
                named = _TYPE.sub(r"torch.cuda.\1Tensor", str(error.args[0])).replace(NAME, "cuda")
                error.args = (named, *error.args[1:])
            raise

    return run_backward


def install(patches: Patches) -> None:
    """Refuse gradients of another device where a backward pass starts, and name the device in what it raises."""
    run_backward = _named(torch.autograd.graph._engine_run_backward)
    for owner in (torch.autograd.graph, torch.autograd):
        patches.set(owner, "_engine_run_backward", run_backward)
    patches.set(torch.autograd, "_make_grads", _same_device(torch.autograd._make_grads))
