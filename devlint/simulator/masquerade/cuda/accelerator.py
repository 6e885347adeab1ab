"""`torch.accelerator`: the accelerator of this machine is CUDA, and what it answers is what `torch.cuda` answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator import devices
from devlint.simulator.masquerade.cuda import memory, streams

_DTYPES = (
    "uint8 int8 int16 int32 int64 bool float16 bfloat16 float32 float64 "
    "complex32 complex64 complex128 uint16 uint32 uint64 float8_e4m3fn float8_e5m2"
).split()


def _stream(index: int) -> Any:
    stream_id, device_index, device_type = streams.current_stream(index)
    make: Any = torch.cuda.Stream
    return make(stream_id=stream_id, device_index=device_index, device_type=device_type)


def _nothing(*args: object) -> None:
    """What has nothing to do on a simulated device."""


def _device(check: Any = None) -> torch.device:
    return torch.device("cuda")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_get_accelerator": _device,
    "_accelerator_getAccelerator": _device,
    "_accelerator_getDeviceIndex": devices.current,
    "_accelerator_setDeviceIndex": devices.set_current,
    "_accelerator_exchangeDevice": devices.exchange,
    "_accelerator_maybeExchangeDevice": devices.exchange,
    "_accelerator_getDeviceCapability": lambda index: {"supported_dtypes": {getattr(torch, n) for n in _DTYPES}},
    "_accelerator_getStream": _stream,
    "_accelerator_setStream": lambda stream: streams.set_stream(stream.stream_id, stream.device_index),
    "_accelerator_synchronizeDevice": _nothing,
    "_accelerator_isAllocatorInitialized": lambda: bool(torch.cuda._initialized),
    "_accelerator_emptyCache": _nothing,
    "_accelerator_emptyHostCache": _nothing,
    "_accelerator_getDeviceStats": memory.statistics,
    "_accelerator_resetPeakStats": memory.reset_peak,
    "_accelerator_resetAccumulatedStats": memory.reset_accumulated,
    "_accelerator_getMemoryInfo": memory.free_and_total,
    "_accelerator_setAllocatorSettings": _nothing,
}
"""The functions under `torch.accelerator`, by their names in `torch._C`."""


def install(patches: Patches) -> None:
    """Answer for CUDA where torch asks its C library for the accelerator."""
    for name, function in _FUNCTIONS.items():
        if hasattr(torch._C, name):
            patches.set(torch._C, name, function)
