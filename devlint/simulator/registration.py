"""Kernels registered with torch's dispatcher, for as long as the process lives."""

from __future__ import annotations

from typing import Any

import torch

_kept: list[Any] = []


def library(namespace: str = "aten") -> Any:
    """A library to register kernels in; they stay registered."""
    make: Any = torch.library.Library
    _kept.append(make(namespace, "IMPL"))
    return _kept[-1]


def operator(name: str) -> Any:
    """torch's operator of a name with its overload, such as ``index.Tensor``; ``None`` if this torch has none."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
