"""What a copy between the host and a device, or between devices, says of itself.

======================================  ======================================================================
a copy                                  and the host
======================================  ======================================================================
``non_blocking=False``                  waits until it is done, pinned or not
to the device, asynchronous, pinned     goes on
to the device, asynchronous, pageable   waits for a part of it at least, for how long is the driver's business
to the host, asynchronous, pinned       goes on, and must not read the result before it has waited
to the host, asynchronous, pageable     waits until it is done
from device to device                   goes on
======================================  ======================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import torch

HOST = "cpu"


class Transfer(NamedTuple):
    """A copy between two devices, as the kernel that does it sees it."""

    source: str
    target: str
    bytes: int
    pinned: bool | None
    blocking: bool | None
    """``None`` where the host may have waited."""

    @property
    def to_device(self) -> bool:
        """Whether it starts on the host."""
        return self.source == HOST

    @property
    def to_host(self) -> bool:
        """Whether it ends on the host."""
        return self.target == HOST


def transfer_of(target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> Transfer:
    """What the copy that a kernel was asked to do is."""
    start, end = str(source.device), str(target.device)
    host = source if start == HOST else target
    size = host.numel() * host.element_size()
    if HOST not in (start, end):
        return Transfer(start, end, size, None, False)
    pinned = is_pinned(host)
    return Transfer(start, end, size, pinned, _is_blocking(end == HOST, non_blocking, pinned))


def is_pinned(tensor: torch.Tensor) -> bool | None:
    """Whether a tensor of the host is in pinned memory, ``None`` where torch cannot tell."""
    try:
        return tensor.is_pinned()
    except (RuntimeError, NotImplementedError):
        return None


def _is_blocking(to_host: bool, non_blocking: bool, pinned: bool | None) -> bool | None:
    if not non_blocking:
        return True
    if pinned:
        return False
    return True if to_host and pinned is False else None
