"""torch's C interface to CUDA, in Python.

`torch.cuda` is mostly Python code on top of functions such as `torch._C._cuda_getDevice`, which a build without CUDA
lacks.  They are given here; all that `torch.cuda` says, checks and raises on top of them is torch's own code.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator.masquerade import card, devices
from devlint.simulator.masquerade.cuda import generators, memory, streams

_sync_debug_mode = 0
_memory_fraction: dict[int, float] = {}
_CUBLAS_WORKSPACE = 8_519_680
_BENCHMARK_LIMIT = 10


def _set_sync_debug_mode(mode: int) -> None:
    global _sync_debug_mode
    _sync_debug_mode = mode


def _initialise() -> None:
    """What C code adds to `torch.cuda` when CUDA is initialised."""
    devices.found()
    vars(torch.cuda).update(default_generators=generators.defaults(), _get_device_properties=card.properties)


def _nothing(*args: object, **kwargs: object) -> None:
    """What has nothing to do on a simulated device."""


def _always(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def functions() -> dict[str, Callable[..., Any]]:
    """The functions by their names in `torch._C`."""
    return {
        "_cuda_init": _initialise,
        "_cuda_getDeviceCount": devices.found,
        "_cuda_getDevice": devices.current,
        "_cuda_setDevice": devices.select,
        "_cuda_exchangeDevice": devices.exchange,
        "_cuda_maybeExchangeDevice": devices.exchange,
        "_cuda_isInBadFork": devices.in_bad_fork,
        "_cuda_synchronize": _nothing,
        "_cuda_sleep": _nothing,
        "_cuda_ipc_collect": _nothing,
        "_cuda_canDeviceAccessPeer": _always(True),
        "_cuda_getArchFlags": _always(card.ARCHITECTURES),
        "_cuda_getCompiledVersion": _always(card.DRIVER_VERSION),
        "_cuda_getDriverVersion": _always(card.DRIVER_VERSION),
        "_cuda_getCurrentStream": streams.current_stream,
        "_cuda_getCurrentRawStream": lambda index: streams.current_stream(index)[0],
        "_cuda_getDefaultStream": streams.default_stream,
        "_cuda_setStream": streams.set_stream,
        "_cuda_set_sync_debug_mode": _set_sync_debug_mode,
        "_cuda_get_sync_debug_mode": lambda: _sync_debug_mode,
        "_cuda_emptyCache": _nothing,
        "_cuda_memoryStats": memory.statistics,
        "_cuda_resetPeakMemoryStats": memory.reset_peak,
        "_cuda_resetAccumulatedMemoryStats": memory.reset_accumulated,
        "_cuda_hostMemoryStats": dict,
        "_cuda_resetPeakHostMemoryStats": _nothing,
        "_cuda_resetAccumulatedHostMemoryStats": _nothing,
        "_cuda_memorySnapshot": memory.snapshot,
        "_cuda_record_memory_history": _nothing,
        "_cuda_record_memory_history_legacy": _nothing,
        "_cuda_allocationTraceback": _always(""),
        "_cuda_setMemoryFraction": lambda fraction, index: _memory_fraction.__setitem__(index, fraction),
        "_cuda_getMemoryFraction": lambda index: _memory_fraction.get(index, 1.0),
        "_cuda_setMemoryMetadata": _nothing,
        "_cuda_getMemoryMetadata": _always(""),
        "_cuda_getAllocatorBackend": _always("native"),
        "_cuda_cudaCachingAllocator_is_enabled": _always(True),
        "_cuda_cudaCachingAllocator_enable": _nothing,
        "_cuda_setCublasWorkspaceSize": _nothing,
        "_cuda_getCublasWorkspaceSize": _always(_CUBLAS_WORKSPACE),
        "_cuda_setCublasLtWorkspaceSize": _nothing,
        "_cuda_getCublasLtWorkspaceSize": _always(_CUBLAS_WORKSPACE),
        "_cuda_get_cudnn_benchmark_limit": _always(_BENCHMARK_LIMIT),
        "_cuda_set_cudnn_benchmark_limit": _nothing,
        "_nccl_version": lambda: card.NCCL_VERSION[0] << 32 | card.NCCL_VERSION[1] << 16 | card.NCCL_VERSION[2],
        "_nccl_version_suffix": _always(b""),
    }


class _CudaError(int):
    """A status of the CUDA runtime."""

    success = 0


def _runtime() -> SimpleNamespace:
    """`torch.cuda.cudart()`."""
    return SimpleNamespace(
        cudaError=_CudaError,
        cudaGetErrorString=_always("no error"),
        cudaMemGetInfo=memory.free_and_total,
        cudaHostRegister=_always(0),
        cudaHostUnregister=_always(0),
        cudaStreamCreate=_always(0),
        cudaStreamDestroy=_always(0),
        cudaProfilerStart=_always(0),
        cudaProfilerStop=_always(0),
        cudaDeviceSynchronize=_always(0),
    )


class _Ranges:
    """NVTX: ranges and marks that no profiler reads."""

    def __init__(self) -> None:
        self._depth = 0

    def rangePushA(self, message: str) -> int:  # NVTX's spelling
        """Open a range; its depth."""
        self._depth += 1
        return self._depth - 1

    def rangePop(self) -> int:  # NVTX's spelling
        """Close a range; its depth."""
        self._depth = max(self._depth - 1, 0)
        return self._depth

    def rangeStartA(self, message: str) -> int:  # NVTX's spelling
        """Open a range that is closed by its number."""
        return 0

    def rangeEnd(self, number: int) -> None:  # NVTX's spelling
        """Close a range by its number."""

    def markA(self, message: str) -> None:  # NVTX's spelling
        """Mark a moment."""

    deviceRangeStart = rangeStartA  # noqa: N815  # NVTX's spelling
    deviceRangeEnd = rangeEnd  # noqa: N815  # NVTX's spelling


def install(patches: Patches) -> None:
    """Make `torch._C` look like that of a build with CUDA, and tell the modules that have looked already."""
    made = functions()
    for name, function in made.items():
        function = _named(name, function)
        patches.set(torch._C, name, function)
    cuda = torch.cuda
    patches.set(cuda, "_exchange_device", made["_cuda_exchangeDevice"])
    patches.set(cuda, "_maybe_exchange_device", made["_cuda_maybeExchangeDevice"])
    patches.set(cuda, "_is_in_bad_fork", made["_cuda_isInBadFork"])
    patches.set(cuda, "_device_count_nvml", devices.count)
    patches.set(cuda, "_cached_device_count", None)
    patches.set(cuda, "_cudart", _runtime())
    patches.set(torch._C, "_CudaDeviceProperties", card.Properties)
    patches.set(cuda, "_CudaDeviceProperties", card.Properties)
    patches.set(cuda.graphs, "_cuda_isCurrentStreamCapturing", _always(False))
    patches.set(torch._C, "_cuda_isCurrentStreamCapturing", _always(False))
    patches.set(cuda.nvtx, "_nvtx", _Ranges())
    patches.set(torch._C, "_has_cuda", True)
    patches.set(torch._C, "_has_cudnn", True)
    if torch.version.cuda is None:
        patches.set(torch.version, "cuda", card.CUDA_VERSION)
    cudnn: Any = torch.backends.cudnn
    patches.set(cudnn.m, "_init", _always(True))
    patches.set(cudnn.m, "__cudnn_version", card.CUDNN_VERSION)
    patches.set(cudnn.m, "is_acceptable", _always(False))


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under torch's name, where it has none of its own."""
    if getattr(function, "__name__", "") == "<lambda>":
        function.__name__ = function.__qualname__ = name
    return function
