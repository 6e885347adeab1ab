"""Which dispatch key to listen to, and how to reach the kernels that torch has there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch.torch_version import TorchVersion

from devlint.auditor.warning_filter import unwarned

Kernel = Callable[..., Any]
"""Called with the keyset of the call, then the operator's own arguments."""

_OLDEST = "2.3"
_FOR_ALL_BACKENDS = frozenset({"copy_"})
"""Operators with one kernel, which torch has registered for every backend."""
_KEPT: list[Any] = []


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
        if TorchVersion(torch.__version__) < _OLDEST:
            raise NoBackendError(
                f"torch {torch.__version__} is too old for the audit, which needs torch {_OLDEST} or newer"
            )

    def find(self, name: str, key: str = "") -> Kernel | None:
        """The kernel of an operator (``repeat_interleave.Tensor``), ``None`` where it has none that can be reached.

        It is that at ``key`` where the operator has it at another key than the device's.
        """
        given = self._given.get(name)
        if given is not None:
            return lambda _, *args, **kwargs: given(*args, **kwargs)
        if self._given:  # the device is made of Python kernels, and has none for this
            return None
        return self.find_at(name, key or self.key)

    def find_at(self, name: str, key: str) -> Kernel | None:
        """The same at another key, and only among torch's own kernels."""
        if self.looks_up:
            try:
                kernel: Kernel = torch.library.get_kernel(f"aten::{name}", key).call_boxed
            except RuntimeError:
                return None
            return kernel
        return _for_all_backends(name) if name in _FOR_ALL_BACKENDS else None


class Overrides:
    """Kernels of ours in the places of operators' own, until they are taken out.

    Those of another audit may be put in on top of them, and are taken out before.
    """

    def __init__(self, kernels: Mapping[str, Kernel], key: str) -> None:
        self._kernels = kernels
        self._key = key
        self._libraries: list[Any] = []

    def put_in(self) -> None:
        """Put the kernels in, if they are not there."""
        if not self._libraries:
            self._libraries = [_register(self._kernels, self._key, with_keyset=True)]
            _IN_FORCE.append(self)

    def take_out(self, given: Mapping[str, Callable[..., Any]] = MappingProxyType({})) -> None:
        """What they replaced is in force again.

        ``given`` are the Python kernels among that: for a tensor of a Python class torch would go on to call the
        function which was registered last, even after that is gone, so they are registered once more.
        """
        if not self._libraries:
            return
        while self._libraries:
            self._libraries.pop().reset()
        _IN_FORCE.remove(self)
        again = set(self._kernels)
        for below in reversed(_IN_FORCE):
            own = {name: kernel for name, kernel in below._kernels.items() if name in again}
            if own and below._key == self._key:
                below._libraries.append(_register(own, self._key, with_keyset=True))
                again -= own.keys()
        found = {name: given[name] for name in self._kernels if name in again and name in given}
        if found:
            _KEPT.append(_register(found, self._key, with_keyset=False))


_IN_FORCE: list[Overrides] = []
"""Those that were put in and not taken out, in this order."""


def _register(kernels: Mapping[str, Callable[..., Any]], key: str, with_keyset: bool) -> Any:
    """What holds the kernels where they are as long as it lives.

    It is what ``torch.library.Library`` wraps, which takes longer, and would let no script register the same.
    """
    library: Any = torch._C._dispatch_library("IMPL", "aten", "", __file__, 0)
    with unwarned():
        for name, kernel in kernels.items():
            try:
                library.impl(f"aten::{name}", key, kernel, with_keyset)
            except TypeError:  # torch 2.3 has no keyset to hand over; nor does a kernel need one that it hands out
                library.impl(f"aten::{name}", key, partial(kernel, None) if with_keyset else kernel)
    return library


def _for_all_backends(name: str) -> Kernel:
    """The kernel which an operator has for all backends, for a torch that does not hand kernels out."""
    call = getattr(torch.ops.aten, name).default._op_dk
    key = torch._C.DispatchKey.CompositeExplicitAutograd
    return lambda _, *args, **kwargs: call(key, *args, **kwargs)
