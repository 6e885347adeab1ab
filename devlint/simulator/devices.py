"""The virtual devices: what torch has to know of a private device type before tensors can live on it."""

from __future__ import annotations

import functools
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import torch

NAME = "devlintsim"
"""The private device type: ``torch.device(NAME, 1)`` is the second virtual device."""

_state = types.SimpleNamespace(count=0)
_of_thread = threading.local()
before_use: Callable[[], object] = bool
"""Called before a tensor is made on a device; it may raise where the device cannot be used."""


class DevicesError(RuntimeError):
    """The simulated accelerator cannot be set up in this process; the message is one line that says why."""


def count() -> int:
    """How many virtual devices there are; 0 before :func:`register`."""
    return int(_state.count)


def current() -> int:
    """The index of the device that a device without an index means; each thread has its own."""
    return getattr(_of_thread, "current", 0)


def set_current(index: int) -> None:
    """Choose the device that a device without an index means; raises ``RuntimeError`` if there is none such."""
    check_index(index)
    _of_thread.current = index


def check_index(index: int) -> int:
    """The index itself; raises ``RuntimeError`` with CUDA's text if there is no such device."""
    if not 0 <= index < _state.count:
        raise RuntimeError(
            "CUDA error: invalid device ordinal\n"
            "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
            "might be incorrect."
        )
    return index


@functools.cache
def device(index: int) -> torch.device:
    """The torch device of a virtual device, for the C++ side."""
    return torch.device(NAME, index)


def register(devices: int) -> None:
    """Tell torch of the private device type, or of more devices of it.

    Raises ``DevicesError`` where torch lacks what it takes (before 2.10), where another private device type is
    registered, or where there were more devices before.
    """
    if devices < max(1, _state.count):
        raise DevicesError(f"{_state.count} simulated devices are in use, so there cannot be {devices}")
    if not _state.count:
        _register_type()
    _state.count = devices


def _register_type() -> None:
    from torch.utils import backend_registration

    from devlint.simulator.backward import stash_pending_error

    set_up = getattr(backend_registration, "_setup_privateuseone_for_python_backend", None)
    if set_up is None:
        raise DevicesError(f"the simulated accelerator needs torch 2.10 or newer, this is {torch.__version__}")
    taken = torch._C._get_privateuse1_backend_name()
    if taken != "privateuseone":
        raise DevicesError(f"the device type {taken!r} of another package takes the place of the simulated one")
    accelerator: Any = torch._C._acc

    class Hooks(accelerator.PrivateUse1Hooks):  # type: ignore[misc]  # the base class is Any: torch types none of this
        def is_available(self) -> bool:
            return True

        def is_built(self) -> bool:
            return True

        def has_primary_context(self, index: int) -> bool:
            return True

    class Guard(accelerator.DeviceGuard):  # type: ignore[misc]  # as above
        def type_(self) -> Any:
            stash_pending_error()
            return torch._C._autograd.DeviceType.PrivateUse1

    set_up(NAME, backend_module=_module(), hook=Hooks(), device_guard=Guard())


def _module() -> types.ModuleType:
    """``torch.devlintsim``: what torch asks the module of a device type.  All random numbers are the host's."""
    module: Any = types.ModuleType(f"torch.{NAME}")
    module.is_initialized = module.is_available = lambda: True
    module._is_in_bad_fork = lambda: False
    module.device_count = count
    module.current_device = current
    module.set_device = set_current
    module.manual_seed = module.manual_seed_all = lambda seed: None
    module.get_rng_state = lambda device=None: torch.get_rng_state()
    module.set_rng_state = lambda state, device=None: torch.set_rng_state(state)
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    module._exchange_device = module._maybe_exchange_device = _exchange
    module.synchronize = lambda device=None: None
    sys.modules[module.__name__] = module
    return module  # type: ignore[no-any-return]  # Any, so that its attributes can be set


def _exchange(index: int) -> int:
    before = current()
    if index >= 0:
        set_current(index)
    return before
