"""The virtual devices: how many there are, and which one each thread means."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

import torch

NAME = "devlintsim"
"""The private device type: ``torch.device(NAME, 1)`` is the second virtual device."""

_count = 0
_of_thread = threading.local()
before_use: Callable[[], object] = bool
"""Called before a tensor is made on a device; it may raise where the device cannot be used."""


def count() -> int:
    """How many virtual devices there are; 0 before torch knows of the device type."""
    return _count


def set_count(devices: int) -> None:
    """Say how many virtual devices there are."""
    global _count
    _count = devices


def current() -> int:
    """The index of the device that a device without an index means; each thread has its own."""
    return getattr(_of_thread, "current", 0)


def set_current(index: int) -> None:
    """Choose the device that a device without an index means; raises ``RuntimeError`` if there is none such."""
    check_index(index)
    _of_thread.current = index


def check_index(index: int) -> int:
    """The index itself; raises ``RuntimeError`` with CUDA's text if there is no such device."""
    if not 0 <= index < _count:
        raise RuntimeError(
            "CUDA error: invalid device ordinal\n"
            "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
            "might be incorrect."
        )
    return index


@functools.cache
def device(index: int) -> torch.device:
    """The torch device of a virtual device, for the C++ side."""
    return torch.device(NAME, index)
