"""What has another name, or is at another place, in the older ones of the versions of torch that an audit takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import Variable

from devlint.auditor.patches import Patches

_Run = Callable[..., Any]
_NAME = "_engine_run_backward"

is_compiling: Callable[[], bool] = getattr(torch.compiler, "is_compiling", torch._utils.is_compiling)
"""Whether torch.compile reads the code that asks, which it answers by the identity of the function."""


def old_autocast_dtype(device_type: str) -> torch.dtype | None:
    """The dtype that autocast casts to, ``None`` where it is off, by the functions of one type of device.

    Before 2.4 there were no others.
    """
    enabled, dtype = (
        ("is_autocast_enabled", "get_autocast_gpu_dtype")
        if device_type == "cuda"
        else (f"is_autocast_{device_type}_enabled", f"get_autocast_{device_type}_dtype")
    )
    on: bool = getattr(torch, enabled, bool)()
    found: torch.dtype | None = getattr(torch, dtype)() if on else None
    return found


def wrap_backward(patches: Patches, wrapped: Callable[[_Run], _Run]) -> None:
    """Have each backward call what ``wrapped`` makes of the function that runs it, with the same arguments.

    Newer versions of torch call a function of their own for that, older ones a method of the engine.
    """
    original = vars(torch.autograd.graph).get(_NAME)
    if original is None:
        engine: Any = Variable._execution_engine
        patches.set(Variable, "_execution_engine", _Engine(engine, wrapped(engine.run_backward)))
        return
    run = wrapped(original)
    for module in (torch.autograd.graph, torch.autograd):
        if vars(module).get(_NAME) is original:
            patches.set(module, _NAME, run)


class _Engine:
    """An engine, of which one method is another."""

    def __init__(self, engine: Any, run_backward: _Run) -> None:
        self._engine = engine
        self.run_backward = run_backward

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
