"""`torch.device(0)`: a device given by its number alone is one of the accelerator, which is CUDA."""

from __future__ import annotations

from typing import Any

import torch

from devlint.auditor.patches import Patches

_Native: Any = torch.device


class _Kind(type):
    """The class of `torch.device`, which torch does not allow to be subclassed."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Native)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, _Native)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """The device."""
        if len(args) == 1 and not kwargs and isinstance(args[0], int) and not isinstance(args[0], bool):
            return _Native("cuda", args[0])
        return _Native(*args, **kwargs)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is _Native

    def __hash__(cls) -> int:
        return hash(_Native)


def install(patches: Patches) -> None:
    """Replace `torch.device` by what makes the same devices."""
    attributes = {"__doc__": _Native.__doc__, "__module__": "torch"}
    patches.set(torch, "device", _Kind("device", (), attributes))
