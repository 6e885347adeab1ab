"""What can be set of CUDA's libraries: it is kept and told again, and changes nothing, since the host computes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch

from devlint.auditor.patches import Patches

_TUNABLE: dict[str, Any] = {
    "_cuda_tunableop_enable": ("_cuda_tunableop_is_enabled", False),
    "_cuda_tunableop_tuning_enable": ("_cuda_tunableop_tuning_is_enabled", True),
    "_cuda_record_untuned_enable": ("_cuda_record_untuned_is_enabled", False),
    "_cuda_tunableop_set_max_tuning_duration": ("_cuda_tunableop_get_max_tuning_duration", 30),
    "_cuda_tunableop_set_max_tuning_iterations": ("_cuda_tunableop_get_max_tuning_iterations", 100),
    "_cuda_tunableop_set_rotating_buffer_size": ("_cuda_tunableop_get_rotating_buffer_size", 0),
}
"""What sets a value of `torch.cuda.tunable`, by its name in `torch._C`: what tells it, and what it is at first."""
_FUSED = ("flash", "mem_efficient", "cudnn")
"""Kernels of attention that only a build for CUDA has."""
_PLANS = 4096
"""How many plans the cache of cuFFT holds, unless told otherwise."""


def _kept(value: Any) -> tuple[Callable[[Any], None], Callable[[], Any]]:
    """A setting: what sets it, and what tells it."""
    cell = [value]
    return lambda new: cell.__setitem__(0, new), lambda: cell[0]


class _OfDevice:
    """A property of the plan cache of a device: an attribute of torch's class, whose C++ a build for the CPU lacks."""

    def __init__(self, value: int, read_only: str = "") -> None:
        self._values: defaultdict[int, int] = defaultdict(lambda: value)
        self._read_only = read_only

    def __get__(self, cache: Any, owner: Any) -> int:
        return self._values[cache.device_index]

    def __set__(self, cache: Any, value: int) -> None:
        if self._read_only:
            raise RuntimeError(self._read_only)
        self._values[cache.device_index] = value


def install(patches: Patches) -> None:
    """Give torch what keeps these settings."""
    for setter, (getter, value) in _TUNABLE.items():
        kept = _kept(value)
        patches.set(torch._C, setter, kept[0])
        patches.set(torch._C, getter, kept[1])
    name = ["tunableop_results.csv"]
    tunable = {
        "set_filename": lambda filename, insert_device_ordinal=False: name.__setitem__(0, filename),
        "get_filename": lambda: name[0],
        "get_results": lambda: (),
        "get_validators": lambda: (("PT_VERSION", torch.__version__.partition("+")[0]),),
        "read_file": lambda filename=None: False,
        "set_numerical_check_tolerances": lambda enable, atol=1e-5, rtol=1e-5: None,
    }
    for suffix, function in tunable.items():
        patches.set(torch._C, f"_cuda_tunableop_{suffix}", function)
    for attention in _FUSED:
        patches.set(torch._C, f"_can_use_{attention}_attention", lambda params, debug=False: False)
    set_linalg, get_linalg = _kept(torch._C._get_linalg_preferred_backend())
    patches.set(torch._C, "_set_linalg_preferred_backend", set_linalg)
    patches.set(torch._C, "_get_linalg_preferred_backend", get_linalg)
    cache = torch.backends.cuda.cuFFTPlanCache
    patches.set(cache, "size", _OfDevice(0, vars(cache)["size"].setter))
    patches.set(cache, "max_size", _OfDevice(_PLANS))
    patches.set(cache, "clear", lambda self: None)
