"""What autograd calls tensors of the simulated device in its errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator.devices import NAME

_TYPE = re.compile(f"{NAME}([A-Za-z0-9]+)Type")
"""What the engine calls a type of tensors of the simulated device: ``devlintsimFloatType``."""


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
    """Name the device in what a backward pass raises."""
    run_backward = _named(torch.autograd.graph._engine_run_backward)
    for owner in (torch.autograd.graph, torch.autograd):
        patches.set(owner, "_engine_run_backward", run_backward)
