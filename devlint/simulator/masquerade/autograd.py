"""Checks of autograd that torch makes for its own tensors only, not for those of a subclass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator.backend import SimulatedTensor


def _same_device(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
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


def install(patches: Patches) -> None:
    """Refuse gradients of another device where a backward pass starts."""
    patches.set(torch.autograd, "_make_grads", _same_device(torch.autograd._make_grads))
