"""Who runs an operation on the simulated device: handlers of simulated tensors, and kernels in torch's dispatcher."""

from __future__ import annotations

from typing import Any

import torch

from devlint.simulator import dispatch
from devlint.simulator.dispatch import Handler

_kept: list[Any] = []


def library(namespace: str = "aten") -> Any:
    """A library to register kernels in; they stay registered for as long as the process lives."""
    make: Any = torch.library.Library
    _kept.append(make(namespace, "IMPL"))
    return _kept[-1]


def operator(name: str) -> Any:
    """torch's operator of a name with its overload, such as ``index.Tensor``; ``None`` if this torch has none."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)


def kernel(op: Any, handler: Handler | None = None) -> Any:
    """What torch's dispatcher calls with the arguments of an operation that the handler runs, or :func:`run`."""
    return lambda *args, **kwargs: dispatch.handled(handler or dispatch.run, op, args, kwargs)


def handle(name: str, handler: Handler, key: str = "") -> None:
    """Let the handler run the operation of that name on simulated tensors, and at the dispatch key if one is given."""
    op = operator(name)
    if op is not None:
        dispatch.HANDLERS[op] = handler
        if key:
            library().impl(name, kernel(op, handler), key)
