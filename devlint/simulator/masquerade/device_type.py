"""Classes in the place of torch's own, and what torch says of private device types."""

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


def install(patches: Patches) -> None:
    """Let code that asks torch for a private device type find none, as on a CUDA machine."""
    for owner in (torch._C, torch.utils.backend_registration, torch.profiler.profiler, torch.autograd.profiler):
        patches.set(owner, "_get_privateuse1_backend_name", lambda: "privateuseone")
