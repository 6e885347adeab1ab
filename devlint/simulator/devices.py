"""The virtual devices: how many there are, how they are spelled, and which one each thread and process may use."""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

import torch

from devlint.simulator import errors

NAME = "cuda"
"""The type of the virtual devices: ``torch.device(NAME, 1)`` is the second one."""

_INVALID_DEVICE = 101
"""``cudaErrorInvalidDevice``."""
_count = 0
_of_thread = threading.local()
_Device = torch.device
_cuda: Any = torch.cuda
_forked = False
_found: list[int] = []
"""How many devices the driver found when it was first asked; empty as long as nothing has asked it."""
_hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
"""What hid real devices from the process does not hide simulated ones; what the script sets afterwards does."""


def count() -> int:
    """How many virtual devices there are; 0 before torch knows of the device type."""
    return _count


def visible() -> int:
    """How many of them the script sees; it may hide some by `CUDA_VISIBLE_DEVICES`."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    return _count if shown is None or shown == _hidden else min(_count, len(torch.cuda._parse_visible_devices()))


def found() -> int:
    """How many devices the driver finds: it looks once, and a process forked afterwards cannot use it."""
    if not _found:
        _found.append(visible())
    return _found[0]


def set_count(devices: int) -> None:
    """Say how many virtual devices there are."""
    global _count
    _count = devices


def current() -> int:
    """The index of the device that a device without an index means; each thread has its own."""
    return getattr(_of_thread, "current", 0)


def set_current(index: int) -> None:
    """Choose the device that a device without an index means; raises ``RuntimeError`` if there is none such.

    A negative index chooses none.
    """
    if index >= 0:
        _of_thread.current = check_index(index)


def check_index(index: int) -> int:
    """The index itself; raises what CUDA does, a ``RuntimeError``, if there is no such device."""
    if not 0 <= index < _count:
        hint = "GPU device may be out of range, do you have enough GPUs?"
        raise errors.of_driver(_INVALID_DEVICE, "invalid device ordinal", hint)
    return index


@functools.cache
def device(index: int) -> torch.device:
    """The torch device of a virtual device."""
    return _Device(NAME, index)


def exchange(index: int) -> int:
    """Make a device the current one and return the one before; -1 if `index` is negative."""
    before = current() if index >= 0 else -1
    set_current(index)
    return before


def index_of(spelled: Any) -> int | None:
    """The index of the CUDA device that is meant by a string, a number or a device, `None` if it is of another type."""
    if isinstance(spelled, int) and not isinstance(spelled, bool):
        return spelled
    if isinstance(spelled, str):
        if not spelled.startswith(NAME):
            return None
        spelled = _Device(spelled)
    if not isinstance(spelled, _Device) or spelled.type != NAME:
        return None
    return current() if spelled.index is None else int(spelled.index)


def behind(spelled: Any) -> Any:
    """The device with its index, where a CUDA device is meant; anything else as it is.

    Like every first use of a CUDA device, it initialises CUDA, and raises in a forked child of a process that did.
    """
    index = index_of(spelled)
    if index is None:
        return spelled
    use()
    return device(check_index(index))


def use() -> None:
    """Initialise CUDA, if that has not been done; raises ``RuntimeError`` in a child forked after it."""
    if _forked or not _cuda._initialized:
        _cuda._lazy_init()


def in_bad_fork() -> bool:
    """Whether CUDA was in use when this process was forked, so that it cannot be used here."""
    return _forked


def after_fork() -> None:
    """Notice that this process is forked, which an initialised CUDA does not survive."""
    global _forked
    _forked = _forked or bool(_cuda._initialized) or bool(_found)
