"""A simulated accelerator: real data, real device errors, no GPU."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devlint.auditor.session import Backend

MOST_DEVICES = 16
"""So many devices can be asked for."""


def installed() -> bool:
    """Whether this process has the simulated accelerator."""
    devices = sys.modules.get("devlint.simulator.devices")
    return devices is not None and bool(devices.count())


def install(devices: int = 1) -> Backend:
    """Let this process believe that it has so many CUDA devices; to be called when torch has just been imported.

    Unmodified scripts then run on `devlint.simulator.backend`, which computes on the host: `torch.cuda` answers as on
    a CUDA machine, and what raises there raises here.  It cannot be undone, and a second call does nothing.  An audit
    listens to the backend that is returned.

    Raises ``DevicesError`` with one line that says why, where this torch cannot do it, or where a CUDA device is
    present: a process has one accelerator, and a simulated run must not touch it.
    """
    import torch

    from devlint.auditor.session import Backend
    from devlint.simulator import backend

    found = Backend(backend.KEY, backend.KERNELS)
    if installed():
        return found
    if torch.cuda.device_count() > 0:
        raise backend.DevicesError(
            "a CUDA device is present: audit it without simulating one, or hide it with CUDA_VISIBLE_DEVICES=''"
        )
    backend.install(devices)

    from devlint.simulator import masquerade

    masquerade.install()
    return found
