"""Pinned memory: which host tensors pretend to be in it."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import torch

_pinned: dict[int, weakref.finalize[..., Any]] = {}
"""By address of the storage; an entry goes when its storage does, before the address can be used again."""


def mark(tensor: torch.Tensor) -> torch.Tensor:
    """Let the tensor's storage count as pinned; returns the tensor."""
    storage = tensor.untyped_storage()
    address = storage.data_ptr()
    if address and address not in _pinned:
        _pinned[address] = weakref.finalize(storage, _pinned.pop, address, None)
        _pinned[address].atexit = False
    return tensor


def is_pinned(tensor: torch.Tensor, device: Any = None) -> bool:
    """Whether a host tensor counts as pinned."""
    if device is not None:
        text = "The argument 'device' of Tensor.is_pinned() is deprecated. Please do not pass this argument."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
    return bool(_pinned) and tensor.untyped_storage().data_ptr() in _pinned


def pin(tensor: torch.Tensor, device: Any = None) -> torch.Tensor:
    """A pinned copy of a host tensor."""
    return mark(tensor.clone())
