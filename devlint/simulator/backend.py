"""The simulated accelerator's own layer: a device type on which every tensor is a tensor of the host.

``install(devices=2)`` gives torch the device ``devlintsim``; it cannot be taken away again, so it belongs into a
process of its own.  Every operation checks its tensors' devices as CUDA does, with CUDA's words, and is then computed
on the host, so that results equal those on the CPU.  What copies between host and device (``KERNELS``) goes through the
dispatch key ``PrivateUse1``, as it goes through ``CUDA`` on a real machine.
"""

from __future__ import annotations

import types
import warnings
import weakref

import torch

from devlint.simulator import autocast, backward, devices, dispatch, implicit, kernels, rnn, tensor
from devlint.simulator.devices import NAME, DevicesError
from devlint.simulator.kernels import KERNELS
from devlint.simulator.tensor import SimulatedTensor

__all__ = ["KERNELS", "KEY", "NAME", "DevicesError", "SimulatedTensor", "install", "installed", "move"]

KEY = "PrivateUse1"
"""The dispatch key of the simulated device."""

_done: list[bool] = []


def installed() -> bool:
    """Whether this process has the simulated accelerator."""
    return bool(_done)


def install(devices: int = 1) -> None:
    """Give torch that many virtual devices; later calls may add devices.

    Raises ``DevicesError`` if torch is older than 2.10, another private device type is there, or fewer devices are
    asked for than there are.
    """
    _register(devices)
    if _done:
        return
    _done.append(True)
    tensor.set_dispatch(dispatch.dispatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of every kernel that takes the place of another
        for part in (kernels, implicit, autocast, rnn, backward):
            part.install()
    _keep_parameters()


def move(value: torch.Tensor, index: int, non_blocking: bool = False) -> torch.Tensor:
    """The tensor on the virtual device ``index``, itself if it is there already; differentiable."""
    return value.to(torch.device(NAME, devices.check_index(index)), non_blocking=non_blocking)


_register = devices.register


def _keep_parameters() -> None:
    """Let ``Module.to`` change parameters in place, as it does between the CPU and CUDA.

    torch does so by swapping the contents of the two tensors, and refuses where a parameter is weakly referenced; that
    is harmless here, since such a reference is meant to follow the parameter.
    """
    torch.__future__.set_swap_module_params_on_conversion(True)
    original = torch.utils.swap_tensors
    unreferenced = types.SimpleNamespace(**vars(weakref))
    unreferenced.getweakrefs = lambda value: []
    names = {**original.__globals__, "weakref": unreferenced}
    torch.utils.swap_tensors = types.FunctionType(original.__code__, names, original.__name__)
