"""Runs torch functions on an accelerator that does not exist.

FakeTensor follows shapes and devices without data. torch's Python backend registers a device called `gpu` which, unlike
`cuda` in a CPU build, passes the C++ device guards: so every function can be asked where its result would live.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import torch.utils._pytree as pytree
import torch.utils.backend_registration
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorDeviceMismatchError,
    FakeTensorMode,
)
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.nn.utils.rnn import PackedSequence

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
torch.utils.backend_registration._setup_privateuseone_for_python_backend("gpu")

ACCELERATOR = torch.device("gpu:0")
CPU = torch.device("cpu")

# Raised where a result or its shape depends on data: the host would have to wait for it.
SYNCHRONISES = (DataDependentOutputException, DynamicOutputShapeException)

# How the checks written by hand in C++ and in decompositions say that devices differ.
_MISMATCH = re.compile(
    r"same device|is on cpu|different from other tensors|expected device|must be on|mismatching .* device",
    re.IGNORECASE,
)


class Mode(FakeTensorMode):  # type: ignore[no-untyped-call]
    """FakeTensor in which `torch.tensor(..., device="gpu")` never tries to initialise the device."""

    avoid_device_init = True


def strict_mode() -> Mode:
    """Functions whose result depends on data raise one of `SYNCHRONISES`."""
    return Mode(allow_fallback_kernels=False)


def lenient_mode() -> Mode:
    """Even functions whose result depends on data return something, so that its device can be seen."""
    shapes = ShapeEnv(allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True)
    return Mode(shape_env=shapes, allow_fallback_kernels=False)


@dataclass(frozen=True)
class Call:
    """A function with arguments on the CPU, of which each tensor can be put elsewhere."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of a call. `where` names the device of the result, see `device_of`."""

    kind: Literal["returned", "synchronised", "mismatch", "failed"]
    where: str = ""


class _UnsupportedInputError(Exception):
    """A layout that FakeTensor cannot move."""


def run(call: Call, devices: Sequence[torch.device], *, strict: bool) -> Outcome:
    """Call the function with its first tensor on the first device, and so on; one device may serve for all."""
    mode = strict_mode() if strict else lenient_mode()
    try:
        with mode:
            arguments, keywords = _placed(mode, call, devices)
            return Outcome("returned", device_of(call.function(*arguments, **keywords)))
    except SYNCHRONISES:
        return Outcome("synchronised")
    except FakeTensorDeviceMismatchError:
        return Outcome("mismatch")
    except (RuntimeError, ValueError) as error:
        return Outcome("mismatch" if _MISMATCH.search(str(error)) else "failed")
    except Exception:  # whatever a function does with input that was guessed, it says nothing
        return Outcome("failed")


def _placed(mode: Mode, call: Call, devices: Sequence[torch.device]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    leaves, structure = pytree.tree_flatten((call.arguments, call.keywords))
    remaining = iter(devices) if len(devices) > 1 else None
    whole = devices[0] if len(devices) == 1 else ACCELERATOR
    placed: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            placed.append(to_device(mode, leaf, next(remaining) if remaining else whole))
        elif isinstance(leaf, torch.device):
            placed.append(whole)
        elif isinstance(leaf, str) and leaf in ("cpu", "cuda"):
            placed.append(str(whole))
        else:
            placed.append(leaf)
    arguments, keywords = pytree.tree_unflatten(placed, structure)
    return arguments, keywords


def to_device(mode: Mode, tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The tensor's fake, on that device."""
    if isinstance(tensor, FakeTensor):
        return tensor
    if tensor.layout is not torch.strided or tensor.is_nested:
        raise _UnsupportedInputError
    fake: torch.Tensor = mode.from_tensor(tensor.detach() if tensor.requires_grad else tensor, static_shapes=True)
    return fake.to(device)


def device_of(result: object) -> str:
    """`gpu`, `cpu` or `cpu|gpu` for tensors, however nested; `nothing` for None; `python` for all else."""
    if isinstance(result, PackedSequence):
        return result.data.device.type
    devices = {leaf.device.type for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)}
    if devices:
        return "|".join(sorted(devices))
    return "nothing" if result is None else "python"
