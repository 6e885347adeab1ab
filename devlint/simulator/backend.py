"""The simulated accelerator's own layer: a device type on which every tensor is a tensor of the host.

``install(devices=2)`` gives torch the device ``devlintsim``; it cannot be taken away again, so it belongs into a
process of its own.  Every operation checks its tensors' devices as CUDA does, with CUDA's words, and is then computed
on the host, so that results equal those on the CPU.  What copies between host and device (``KERNELS``) goes through the
dispatch key ``PrivateUse1``, as it goes through ``CUDA`` on a real machine.
"""

from __future__ import annotations

import warnings

from devlint.simulator import backward, device_type, dispatch, tensor
from devlint.simulator.device_type import DevicesError
from devlint.simulator.devices import NAME, count, watch_forks
from devlint.simulator.operations import attention, autocast, implicit_transfers, kernels, rnn, sync_batch_norm
from devlint.simulator.operations.kernels import KERNELS
from devlint.simulator.tensor import SimulatedTensor

__all__ = ["KERNELS", "KEY", "NAME", "DevicesError", "SimulatedTensor", "install"]

KEY = "PrivateUse1"
"""The dispatch key of the simulated device."""


def install(devices: int = 1) -> None:
    """Give torch that many virtual devices; later calls may add devices.

    Raises ``DevicesError`` if torch is older than 2.10, another private device type is there, or fewer devices are
    asked for than there are.
    """
    installed = count() > 0
    device_type.register(devices)
    if installed:
        return
    watch_forks()
    tensor.dispatch = dispatch.dispatch
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of every kernel that takes the place of another
        for part in (kernels, implicit_transfers, autocast, attention, rnn, backward, sync_batch_norm):
            part.install()
