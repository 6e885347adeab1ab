"""Which dispatch key to listen to, and how to reach the kernels that torch has there."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import torch

Library: Any = torch.library.Library
"""Typed as `Any`, since torch does not say the types of its methods."""
Kernel = Callable[..., Any]
"""Called with the keyset of the call, then the operator's own arguments."""

_UNUSED_KEY = "PrivateUse3"
"""No backend registers anything there, so that an operator with one kernel for all backends runs that one."""
_FOR_ALL_BACKENDS = frozenset({"copy_"})
_KEPT: list[Any] = []
_OVERRIDING = {"allow_override": True} if "allow_override" in signature(Library.impl).parameters else {}
"""Not every torch knows the option; some of those that do refuse without it, such as 2.11."""


class NoBackendError(Exception):
    """The audit cannot listen to this torch; the message is one line for the user."""


def find_key() -> str:
    """The dispatch key of the accelerator that torch was built for (``CUDA`` for ROCm too), empty for none.

    Asks only what torch was built with: whether a device is there is known to the driver, and asking it would
    initialise it.
    """
    if torch.version.cuda is not None or getattr(torch.version, "hip", None) is not None:
        return "CUDA"
    if torch.backends.mps.is_built():
        return "MPS"
    xpu = getattr(torch, "xpu", None)
    if xpu is not None and getattr(xpu, "_is_compiled", lambda: False)():
        return "XPU"
    # a backend that is none of torch's own has given itself a name
    return "" if torch._C._get_privateuse1_backend_name() == "privateuseone" else "PrivateUse1"


class Originals:
    """The kernels at a dispatch key as they were before anybody overrode them.

    ``given`` are Python kernels by operator name, which take no keyset: one of them cannot be looked up at its key,
    since there it would find whoever overrode it.
    """

    def __init__(self, key: str, given: Mapping[str, Callable[..., Any]]) -> None:
        self.key = key
        self._given = given
        self.looks_up = hasattr(torch.library, "get_kernel")
        """Whether torch can hand its kernels out; it can since 2.9."""
        if not self.looks_up and not hasattr(torch._ops.OpOverload, "redispatch"):
            raise NoBackendError(f"torch {torch.__version__} is too old for the audit, which needs torch 2.2 or newer")

    def find(self, name: str) -> Kernel | None:
        """The kernel of an operator (``repeat_interleave.Tensor``), ``None`` where it has none that can be reached."""
        given = self._given.get(name)
        if given is not None:
            return _without_keyset(given)
        if self._given:  # the device is made of Python kernels, and has none for this
            return None
        return self.find_at(name, self.key)

    def find_at(self, name: str, key: str) -> Kernel | None:
        """The same at another key, and only among torch's own kernels."""
        if self.looks_up:
            try:
                kernel: Kernel = torch.library.get_kernel(f"aten::{name}", key).call_boxed
            except RuntimeError:
                return None
            return kernel
        return _redispatched(name) if name in _FOR_ALL_BACKENDS else None


def override(library: Any, name: str, kernel: Kernel, key: str) -> None:
    """Put a kernel in the place of an operator's own."""
    _register(library, name, kernel, key, with_keyset=True)


def restore(libraries: list[Any], key: str, given: Mapping[str, Callable[..., Any]]) -> None:
    """Take back the kernels of the libraries; what they replaced is in force again.

    ``given`` are the Python kernels among what was replaced: for a tensor of a Python class torch would go on to call
    the function which was registered last, even after that is gone, so they are registered once more.
    """
    while libraries:
        libraries.pop()._destroy()
    if given:
        library = Library("aten", "IMPL")
        _KEPT.append(library)
        for name, kernel in given.items():
            _register(library, name, kernel, "CPU" if name == "_pin_memory" else key)


def _register(library: Any, name: str, kernel: Callable[..., Any], key: str, **options: bool) -> None:
    """Register a kernel, without torch's warning, or its refusal, where Python has registered one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl(name, kernel, key, **options, **_OVERRIDING)


def _without_keyset(kernel: Callable[..., Any]) -> Kernel:
    def original(_: object, *args: Any, **kwargs: Any) -> Any:
        return kernel(*args, **kwargs)

    return original


def _redispatched(name: str) -> Kernel:
    """The kernel which an operator has for all backends, for a torch that does not hand kernels out."""
    operator = getattr(torch.ops.aten, name).default
    keyset = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _UNUSED_KEY))

    def original(_: object, *args: Any, **kwargs: Any) -> Any:
        return operator.redispatch(keyset, *args, **kwargs)

    return original
