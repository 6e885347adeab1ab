"""A simulated accelerator: real data, real device errors, no GPU."""

from __future__ import annotations

import os
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


def install(devices: int = 1, memory: int | str | None = None) -> Backend:
    """Let this process believe that it has so many CUDA devices; to be called when torch has just been imported.

    Unmodified scripts then run on `devlint.simulator.backend`, which computes on the host: `torch.cuda` answers as on
    a CUDA machine, and what raises there raises here.  It cannot be undone, and a second call does nothing.  An audit
    listens to the backend that is returned.

    Each device has so much memory, in bytes or spelled such as `8GiB`; else as much as the environment variable
    `DEVLINT_SIMULATED_MEMORY` says, else 80 GiB.  What goes beyond raises ``torch.cuda.OutOfMemoryError``.

    Raises ``DevicesError`` with one line that says why, where this torch cannot do it, or where a CUDA device is
    present: a process has one accelerator, and a simulated run must not touch it.  So does a size that is none.
    """
    import torch

    from devlint.auditor.session import Backend
    from devlint.simulator import backend
    from devlint.simulator.masquerade import card

    found = Backend(backend.KEY, backend.KERNELS)
    if installed():
        return found
    if torch.cuda.device_count() > 0:
        raise backend.DevicesError(
            "a CUDA device is present: use it without simulating one, or hide it with CUDA_VISIBLE_DEVICES=''"
        )
    try:
        card.set_memory(memory or os.environ.get(card.MEMORY_VARIABLE) or card.memory)
    except ValueError as error:
        raise backend.DevicesError(f"{'' if memory else card.MEMORY_VARIABLE + ': '}{error}") from None
    backend.install(devices)

    from devlint.simulator import masquerade

    masquerade.install()
    return found
