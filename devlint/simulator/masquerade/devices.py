"""Which device is meant: the spellings of CUDA devices, and what each thread and process may use."""

from __future__ import annotations

import os
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator import devices as backend

_Device = torch.device
_cuda: Any = torch.cuda
_forked = False
_found: list[int] = []
"""How many devices the driver found when it was first asked; empty as long as nothing has asked it."""
_hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
"""What hid real devices from the process does not hide simulated ones; what the script sets afterwards does."""


def count() -> int:
    """How many devices there are; the script may hide some by `CUDA_VISIBLE_DEVICES`."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None or visible == _hidden:
        return backend.count()
    return min(backend.count(), len(torch.cuda._parse_visible_devices()))


def found() -> int:
    """How many devices the driver finds: it looks once, and a process forked afterwards cannot use it."""
    if not _found:
        _found.append(count())
    return _found[0]


current = backend.current


def select(index: int) -> None:
    """Make a device the current one; a negative index means none."""
    if index >= 0:
        backend.set_current(index)


def exchange(index: int) -> int:
    """Make a device the current one and return the one before; -1 if `index` is negative."""
    if index < 0:
        return -1
    before = current()
    backend.set_current(index)
    return before


def cuda(index: int) -> torch.device:
    """The device as it is shown to the script."""
    return _Device("cuda", index)


def index_of(spelled: Any) -> int | None:
    """The index of the CUDA device that is meant by a string, a number or a device, `None` if it is of another type."""
    if isinstance(spelled, int) and not isinstance(spelled, bool):
        return spelled
    if isinstance(spelled, str):
        if not spelled.startswith(("cuda", backend.NAME)):
            return None
        spelled = _Device(spelled)
    if not isinstance(spelled, _Device) or spelled.type not in ("cuda", backend.NAME):
        return None
    return current() if spelled.index is None else int(spelled.index)


def behind(spelled: Any) -> Any:
    """The device on which tensors really live, where a CUDA device is meant; anything else as it is.

    Like every first use of a CUDA device, it initialises CUDA, and raises in a forked child of a process that did.
    """
    index = index_of(spelled)
    if index is None:
        return spelled
    use()
    return backend.device(backend.check_index(index))


def use() -> None:
    """Initialise CUDA, if that has not been done; raises ``RuntimeError`` in a child forked after it."""
    _cuda._lazy_init()


def in_bad_fork() -> bool:
    """Whether CUDA was in use when this process was forked, so that it cannot be used here."""
    return _forked


def _after_fork() -> None:
    global _forked
    _forked = _forked or bool(_cuda._initialized) or bool(_found)


def install(patches: Patches) -> None:
    """Watch for forks, and initialise CUDA at the first use of a device."""
    patches.set(backend, "before_use", use)
    os.register_at_fork(after_in_child=_after_fork)
