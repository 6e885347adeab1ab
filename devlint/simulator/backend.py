"""The simulated accelerator's own layer: a device type on which every tensor is a tensor of the host.

``install(devices=2)`` gives torch the device ``devlintsim``; it cannot be taken away again, so it belongs into a
process of its own.  Every operation checks its tensors' devices as CUDA does, with CUDA's words, and is then computed
on the host, so that results equal those on the CPU.  What copies between host and device (``KERNELS``) goes through the
dispatch key ``PrivateUse1``, as it goes through ``CUDA`` on a real machine.
"""

from __future__ import annotations

import os
import sys
import types
import warnings
from typing import Any

import torch

from devlint.simulator import backward, dispatch, tensor
from devlint.simulator.backward import stash_pending_error
from devlint.simulator.devices import NAME, after_fork, count, current, exchange, set_count, set_current
from devlint.simulator.operations import attention, autocast, implicit_transfers, kernels, rnn, sync_batch_norm
from devlint.simulator.operations.kernels import KERNELS
from devlint.simulator.tensor import SimulatedTensor

__all__ = ["KERNELS", "KEY", "NAME", "DevicesError", "SimulatedTensor", "install"]

KEY = "PrivateUse1"
"""The dispatch key of the simulated device."""


class DevicesError(RuntimeError):
    """The simulated accelerator cannot be set up in this process; the message is one line that says why."""


def install(devices: int = 1) -> None:
    """Give torch that many virtual devices; later calls may add devices.

    Raises ``DevicesError`` if torch is older than 2.10, another private device type is there, or fewer devices are
    asked for than there are.
    """
    before = count()
    if devices < max(1, before):
        raise DevicesError(f"{before} simulated devices are in use, so there cannot be {devices}")
    if before:
        set_count(devices)
        return
    _register_type()
    set_count(devices)
    os.register_at_fork(after_in_child=after_fork)
    tensor.dispatch = dispatch.dispatch
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of every kernel that takes the place of another
        for part in (kernels, implicit_transfers, autocast, attention, rnn, backward, sync_batch_norm):
            part.install()


def _register_type() -> None:
    from torch.utils import backend_registration

    set_up = getattr(backend_registration, "_setup_privateuseone_for_python_backend", None)
    if set_up is None:
        raise DevicesError(f"the simulated accelerator needs torch 2.10 or newer, this is {torch.__version__}")
    taken = torch._C._get_privateuse1_backend_name()
    if taken != "privateuseone":
        raise DevicesError(f"the device type {taken!r} of another package takes the place of the simulated one")
    accelerator: Any = torch._C._acc

    class Hooks(accelerator.PrivateUse1Hooks):  # type: ignore[misc]  # the base class is Any: torch types none of this
        def is_available(self, index: int = 0) -> bool:
            return True

        is_built = has_primary_context = is_available

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
    module._exchange_device = module._maybe_exchange_device = exchange
    module.synchronize = lambda device=None: None
    sys.modules[module.__name__] = module
    return module  # type: ignore[no-any-return]  # Any, so that its attributes can be set
