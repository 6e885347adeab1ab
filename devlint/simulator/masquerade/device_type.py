"""Classes in the place of torch's own, and that of `torch.device`: `torch.device(0)` is a device of CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devlint.auditor.patches import Patches


class _StandIn(type):
    make: Callable[..., Any]
    known: tuple[type, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.known)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, cls.known)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """What stands in makes."""
        return cls.make(*args, **kwargs)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.known[0]

    def __hash__(cls) -> int:
        return hash(cls.known[0])


def stand_in(native: Any, make: Callable[..., Any], *others: type) -> Any:
    """The class that takes the place of ``native``; its instances are those of that class, and of ``others``."""
    names = {"__doc__": native.__doc__, "__module__": "torch", "make": staticmethod(make), "known": (native, *others)}
    return _StandIn(native.__name__, (), names)


_Native: Any = torch.device


def _made(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and not kwargs and isinstance(args[0], int) and not isinstance(args[0], bool):
        return _Native("cuda", args[0])
    return _Native(*args, **kwargs)


def install(patches: Patches) -> None:
    """Replace `torch.device` by what makes the same devices."""
    patches.set(torch, "device", stand_in(_Native, _made))
