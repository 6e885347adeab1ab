"""The simulated accelerator's own layer: a device type on which every tensor is a tensor of the host.

``install(devices=2)`` gives torch a device type that is called "cuda" and is not CUDA's own; it cannot be taken away
again, so it belongs into a process of its own.  Every operation checks its tensors' devices as CUDA does, with CUDA's
words, and is then computed on the host, so that results equal those on the CPU.  What copies between host and device
(``KERNELS``) goes through the dispatch key ``PrivateUse1``, as it goes through ``CUDA`` on a real machine.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import torch

from devlint.simulator import backward, dispatch, tensor
from devlint.simulator.backward import stash_pending_error
from devlint.simulator.devices import NAME, after_fork, count, set_count
from devlint.simulator.operations import (
    attention,
    autocast,
    device_only,
    implicit_transfers,
    kernels,
    linalg,
    outputs,
    rnn,
    sparse,
    sync_batch_norm,
)
from devlint.simulator.operations.kernels import KERNELS
from devlint.simulator.tensor import SimulatedTensor

__all__ = ["KERNELS", "KEY", "NAME", "DevicesError", "SimulatedTensor", "install"]

KEY = "PrivateUse1"
"""The dispatch key of the simulated device."""
_PRIVATE = "privateuseone"
"""What torch calls the type of that key's devices until it gets another name."""


class DevicesError(RuntimeError):
    """The simulated accelerator cannot be set up in this process; the message is one line that says why."""


def install(devices: int = 1) -> None:
    """Give torch that many virtual devices; later calls may add devices.

    Raises ``DevicesError`` if torch is older than 2.10 or keeps the name "cuda" for itself, another private device type
    is there, or fewer devices are asked for than there are.
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
        early = (kernels, linalg, sparse, implicit_transfers, device_only, outputs)
        for part in (*early, autocast, attention, rnn, backward, sync_batch_norm):
            part.install()


def _register_type() -> None:
    """Let ``torch.device("cuda")`` be of the type of that key, in all of torch.

    torch refuses to call a private type "cuda", but takes "CUDA", and spells every type in small letters: see
    ``register_privateuse1_backend`` and ``get_privateuse1_backend`` in c10/core/DeviceType.cpp.  Of two types with one
    name, ``parse_type`` in c10/core/Device.h takes the private one.
    """
    from torch.utils import backend_registration

    if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
        raise DevicesError(f"the simulated accelerator needs torch 2.10 or newer, this is {torch.__version__}")
    taken = torch._C._get_privateuse1_backend_name()
    if taken != _PRIVATE:
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

    torch._C._rename_privateuse1_backend(NAME.upper())
    if torch.device(NAME) != torch.device(_PRIVATE):
        raise DevicesError(f"torch {torch.__version__} does not let another device take the name of CUDA")
    accelerator.register_python_privateuseone_hook(Hooks())
    accelerator.register_python_privateuseone_device_guard(Guard())
