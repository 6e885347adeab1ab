"""The audit's own code is none of `torch.compile`'s business."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import torch

from devlint.auditor.session import Listener


class Uncompiled(Listener):
    """Keeps Dynamo from compiling the functions of the audit, which run below and between those of the script.

    Only the functions themselves are left alone: what they call, and what inlines them, is not.  The marks stay, since
    they concern nobody else's code.
    """

    def install(self) -> None:
        """Mark every function of the audit that has been imported by now; this does not import Dynamo."""
        skip = _skip()
        if skip is None:
            return
        for name, module in list(sys.modules.items()):
            if name.startswith("devlint.auditor."):
                for code in _codes(vars(module), name):
                    skip(code)


def _skip() -> Callable[[CodeType], object] | None:
    """What marks a code object, ``None`` where torch has no such thing."""
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):
        actions = frames._FrameAction
        strategy = frames._FrameExecStrategy(actions.SKIP, actions.DEFAULT)
        return lambda code: frames.set_code_exec_strategy(code, strategy)
    return getattr(frames, "skip_code", None)  # before torch 2.7


def _codes(namespace: dict[str, Any], module: str) -> Iterator[CodeType]:
    """The code objects of the functions in a module or a class, those made inside of them included."""
    for value in list(namespace.values()):
        value = getattr(value, "fget", getattr(value, "__func__", value))
        if isinstance(value, FunctionType):
            yield from _nested(value.__code__)
        elif isinstance(value, type) and value.__module__ == module:
            yield from _codes(dict(vars(value)), module)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
