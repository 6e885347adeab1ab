"""Tracers and higher-order operators, for which a simulated tensor is a plain tensor of its device and no subclass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch.fx.experimental import proxy_tensor
from torch.utils import _python_dispatch

from devlint.auditor.patches import Patches
from devlint.simulator.tensor import SimulatedTensor

_ops: Any = torch._ops
_Key: Any = torch._C.DispatchKey
_AUTOGRAD = (_Key.AutogradPrivateUse1, _Key.AutogradCPU)
"""With nobody to trace its branches an operator runs them, and autograd sees each operation in them by itself."""


def _keys(tensors: Any, mask: Any) -> Any:
    """The dispatch keys by which a higher-order operator finds its implementation.

    What such an operator does on a device, as `flex_attention` and `cond`, is written in operations that simulated
    tensors take.
    """
    keys: Any = torch._C._dispatch_tls_local_include_set()
    for tensor in tensors:
        own: Any = torch._C._dispatch_keys(tensor)
        keys = keys | (own.remove(_Key.Python) if isinstance(tensor, SimulatedTensor) else own)
    traced = _python_dispatch._get_current_dispatch_mode() is not None
    for key in (_Key.AutocastPrivateUse1, *(() if traced else _AUTOGRAD)):  # that of CUDA is passed over, too
        keys = keys.remove(key)
    return (keys - torch._C._dispatch_tls_local_exclude_set()) & mask


def _unless_simulated(original: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, SimulatedTensor) and original(value)


def install(patches: Patches) -> None:
    """Let fake tensors, tracers and higher-order operators take simulated tensors."""
    fake, proxy = vars(fake_tensor), vars(proxy_tensor)
    patches.set(_ops, "key_extractor", _keys)
    patches.set(fake_tensor, "_check_for_subclass_arg", _unless_simulated(fake["_check_for_subclass_arg"]))
    patches.set(proxy_tensor, "HANDLED_TYPES", (*proxy["HANDLED_TYPES"], SimulatedTensor))
