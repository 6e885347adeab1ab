"""Observations: what a value is that a call returned, in the words of rows, and where it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Number
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

_ITEMS = 64


def kind(value: Any) -> str:
    """What it is: one of the words that `is` and `result` take, `object` for anything else."""
    if isinstance(value, torch.device):
        return "device"
    for what, classes in (
        ("tensor", torch.Tensor), ("module", nn.Module), ("loader", DataLoader), ("dataset", Dataset),
    ):  # fmt: skip
        if isinstance(value, classes):
            return what
    if callable(value) and not isinstance(value, type) and any(isinstance(part, nn.Module) for part in _held(value)):
        return "module"
    if isinstance(value, Number):
        return "number"
    if type(value).__module__.partition(".")[0] == "numpy":
        return "host-array"
    if hasattr(value, "to") and hasattr(value, "keys") and hasattr(value, "__getitem__"):
        return "tensor-mapping"
    if hasattr(value, "dataset") and hasattr(value, "__iter__"):
        return "loader"
    plain = isinstance(value, (str, bytes, list, tuple, dict, set))
    return "dataset" if hasattr(value, "__getitem__") and hasattr(value, "__len__") and not plain else "object"


def place(value: Any, exact: bool = False) -> str:
    """Where its tensors are: "cpu", "cuda" ("cuda:0" if exact), "cpu and cuda", empty where it has none."""
    return " and ".join(sorted({str(device) if exact else device.type for device in _devices(value)}))


def wraps(value: Any, module: nn.Module) -> bool:
    """Whether something is a module, has it as a part, or calls it."""
    parts = value.modules() if isinstance(value, nn.Module) else _held(value) if callable(value) else ()
    return any(part is module for part in parts)


def takes_all(value: Any) -> bool:
    """Whether something with parameters can be called with a tensor that is elsewhere."""
    elsewhere = {"cpu": "cuda", "cuda": "cpu"}.get(place(value))
    try:
        value(torch.ones(4, 4, device=elsewhere))
    except Exception:
        return False
    return elsewhere is not None


def _held(value: Any) -> list[Any]:
    return [*getattr(value, "__dict__", {}).values()]


def _devices(value: Any) -> Iterable[torch.device]:
    if isinstance(value, torch.device):
        return [value]
    if isinstance(value, torch.Tensor):
        return [value.device]
    if isinstance(value, nn.Module):
        return [part.device for part in (*value.parameters(), *value.buffers())]
    if kind(value) == "loader":
        return _devices(next(iter(value), None))
    if isinstance(value, Mapping) or kind(value) == "tensor-mapping":
        return _inside([value[key] for key in list(value.keys())])
    if isinstance(value, (list, tuple, set)):
        return _inside(value)
    return _inside(part for part in _held(value) if isinstance(part, (torch.Tensor, nn.Module)))


def _inside(values: Iterable[Any]) -> list[torch.device]:
    found: list[torch.device] = []
    for _, value in zip(range(_ITEMS), values, strict=False):
        found += _devices(value)
    return found
