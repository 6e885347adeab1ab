"""What the tests over torch's tables share: the device, samples on it, and comparing with the CPU."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

DEVICE = os.environ.get("SUITE_DEVICE", "cpu")
"""Where the tests run, ``cpu`` or ``cuda``."""
EVERY = int(os.environ.get("SUITE_EVERY", "1"))
"""One of so many operators is tried, in the order of the table, so that a run takes minutes."""
SAMPLES = 4
"""So many samples of an operator are tried."""
_NOT_DETERMINED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}


def moved(value: Any, device: str | None) -> Any:
    """The tensors in a value as new leaves on the device, or where they are."""

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(device or tensor.device, copy=True).requires_grad_(tensor.requires_grad)

    return pytree.tree_map_only(torch.Tensor, move, value)


def placed(sample: Any, device: str | None = None) -> Any:
    """A sample with its tensors on the device, and what is made of it, too; or a copy of it where it is."""
    there = sample.transform(lambda value: moved(value, device))
    if device is not None and there.kwargs.get("device") is not None:
        there.kwargs = {**there.kwargs, "device": device}
    return there


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in a value."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def operators(wanted: Callable[[Any], bool] = lambda op: True) -> list[Any]:
    """The table of operators, without those whose results are whatever was in memory."""
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db[::EVERY] if op.name not in _NOT_DETERMINED and wanted(op)]


def named(op: Any) -> str:
    """An operator's name with its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def usual_dtype(op: Any) -> torch.dtype | None:
    """The dtype to try an operator with: the first of a few that it has on the CPU and on CUDA."""
    both = op.supported_dtypes("cpu") & op.supported_dtypes("cuda")
    usual = (torch.float32, torch.int64, torch.bool, torch.complex64, torch.float64)
    return next((dtype for dtype in usual if dtype in both), None)


def first(samples: Any, number: int = SAMPLES) -> Iterator[Any]:
    """The first of the samples."""
    return itertools.islice(samples, number)


def same(got: Any, expected: Any) -> None:
    """Fail unless the tensors, and what else is in them, are those of the CPU, and on the device of the test."""
    ours, theirs = tensors(got), tensors(expected)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.detach().cpu(), other.detach().cpu(), equal_nan=True)
