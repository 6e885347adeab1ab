"""`torch.device(0)`: a device given by its number alone is one of the accelerator, which is CUDA."""

from __future__ import annotations

from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator.masquerade.stand_ins import stand_in

_Native: Any = torch.device


def _made(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and not kwargs and isinstance(args[0], int) and not isinstance(args[0], bool):
        return _Native("cuda", args[0])
    return _Native(*args, **kwargs)


def install(patches: Patches) -> None:
    """Replace `torch.device` by what makes the same devices."""
    patches.set(torch, "device", stand_in(_Native, _made))
