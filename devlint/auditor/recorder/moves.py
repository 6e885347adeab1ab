"""``.to``, ``.cuda`` and their like which returned their input, since it was there already."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

import torch
from torch import nn

from devlint.auditor.compatibility import is_compiling
from devlint.auditor.history import What
from devlint.auditor.introspection.tensors import all_tensors
from devlint.auditor.session import Listener, Session

_METHODS = "to cuda cpu xpu".split()
_PLACES = (str, int, torch.device, torch.Tensor)
_PLAIN = frozenset({torch.Tensor, nn.Parameter})
"""Classes that do not hear what their tensors are asked."""
_modes: Callable[[], int] = torch._C._len_torch_function_stack

State = list[tuple[torch.device, torch.dtype]]
_Site = tuple[int, int, torch.device, str]


class Moves(Listener):
    """Wraps the methods of tensors and modules which move them.

    Only what the project or a library calls is counted, not what torch calls itself, and only calls that name a device.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._local = threading.local()
        # by the calling instruction and the device: the caller is the project's own, so that the place is known by it
        self._known: dict[_Site, What] = {}

    def install(self) -> None:
        """Wrap the methods."""
        for name in _METHODS:
            if hasattr(torch.Tensor, name):
                self._session.patches.set(torch.Tensor, name, self._tensor_method(name, getattr(torch.Tensor, name)))
            if hasattr(nn.Module, name):
                self._session.patches.set(nn.Module, name, self._module_method(name, getattr(nn.Module, name)))
        # a parameter without a shape yet lets only listed methods through, which it compares by identity
        lazy: Any = getattr(nn.parameter, "UninitializedTensorMixin", None)
        allowed = getattr(lazy, "_allowed_methods", None)
        if allowed is not None:
            ours = [getattr(torch.Tensor, name) for name in _METHODS if hasattr(torch.Tensor, name)]
            self._session.patches.set(lazy, "_allowed_methods", [*allowed, *ours])

    def _tensor_method(self, name: str, original: Any) -> Callable[..., Any]:
        session, named, count = self._session, name != "to", self._count_tensor

        def method(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if result is self and session.alive and (named or _names_device(args, kwargs)):
                count(name, self, sys._getframe(1))
            return result

        return method

    def _module_method(self, name: str, original: Any) -> Callable[..., Any]:
        session, named, local, count = self._session, name != "to", self._local, self._count_module

        def method(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if (
                is_compiling()
                or not session.alive
                or getattr(local, "inside", False)
                or not (named or _names_device(args, kwargs))
            ):
                return original(self, *args, **kwargs)
            before = session.guarded(_state, self)
            local.inside = True
            try:
                result = original(self, *args, **kwargs)
            finally:
                local.inside = False
            if before and result is self:
                session.guarded(count, name, self, before, sys._getframe(1))
            return result

        return method

    def _count_tensor(self, name: str, tensor: torch.Tensor, caller: FrameType) -> None:
        session = self._session
        try:
            # what `guarded` does, by itself: loops do this often, and a call more would take as long as the rest
            if type(tensor) in _PLAIN and not _modes():
                device = tensor.device
            else:
                with session.unheard():
                    device = tensor.device
            key = (id(caller.f_code), caller.f_lasti, device, name)
            what = self._known.get(key) or self._open(key, name, device, caller)
            if what is not None:
                session.ledger.tally(what).calls += 1
        except Exception as error:
            session.fail(error)

    def _open(self, key: _Site, name: str, device: torch.device, caller: FrameType) -> What | None:
        """What is counted at a place where nothing was so far, unless torch itself is there."""
        frames = self._session.frames
        if frames.is_internal(caller.f_code):
            return None
        what = self._what(name, device, caller, "tensor")
        if frames.is_project(caller.f_code):
            self._known[key] = what
        return what

    def _count_module(self, name: str, module: nn.Module, before: State, caller: FrameType) -> None:
        devices = {device for device, _ in before}
        if len(devices) > 1 or _state(module) != before or self._session.frames.is_internal(caller.f_code):
            return
        self._session.ledger.tally(self._what(name, devices.pop(), caller, "module")).calls += 1

    def _what(self, name: str, device: torch.device, caller: FrameType, subject: Literal["tensor", "module"]) -> What:
        return What("move", name, self._session.frames.at(caller), target=str(device), subject=subject)


def _names_device(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the arguments of ``to`` name a device, be it that of another tensor."""
    if args and type(args[0]) is not torch.dtype and isinstance(args[0], _PLACES):
        return True
    return bool(kwargs) and (kwargs.get("device") is not None or kwargs.get("other") is not None)


def _state(module: nn.Module) -> State:
    """Where the parameters and buffers of a module are, and their dtypes."""
    return [(tensor.device, tensor.dtype) for _, tensor in all_tensors(module)]
