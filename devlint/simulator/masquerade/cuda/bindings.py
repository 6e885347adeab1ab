"""torch's C interface to CUDA, in Python.

`torch.cuda` and `torch.accelerator` are mostly Python code on top of functions such as `torch._C._cuda_getDevice`,
which a build without CUDA lacks, or answers otherwise.  They are given here; all that is said, checked and raised on
top of them is torch's own code.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator import devices
from devlint.simulator.masquerade import card
from devlint.simulator.masquerade.cuda import capture, generators, memory, streams

_sync_debug_mode = 0
_CUBLAS_WORKSPACE = 8_519_680
_DTYPES = (
    "uint8 int8 int16 int32 int64 bool float16 bfloat16 float32 float64 "
    "complex32 complex64 complex128 uint16 uint32 uint64 float8_e4m3fn float8_e5m2"
).split()


def _set_sync_debug_mode(mode: int) -> None:
    global _sync_debug_mode
    _sync_debug_mode = mode


def _initialise() -> None:
    """What C code adds to `torch.cuda` when CUDA is initialised."""
    devices.found()
    vars(torch.cuda).update(default_generators=generators.defaults(), _get_device_properties=card.properties)


def _current_stream(index: int) -> Any:
    stream_id, device_index, device_type = streams.current_stream(index)
    make: Any = torch.cuda.Stream
    return make(stream_id=stream_id, device_index=device_index, device_type=device_type)


def _synchronize(*device: object) -> None:
    """All work is done when a call returns."""
    capture.refuse()


def _always(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


_DOES_NOTHING = """
_cuda_sleep _cuda_ipc_collect _cuda_emptyCache _cuda_resetPeakHostMemoryStats
_cuda_resetAccumulatedHostMemoryStats _cuda_record_memory_history _cuda_record_memory_history_legacy
_cuda_setMemoryMetadata _cuda_cudaCachingAllocator_enable _cuda_setCublasWorkspaceSize _cuda_setCublasLtWorkspaceSize
_cuda_set_cudnn_benchmark_limit _cuda_clearCublasWorkspaces _cuda_attach_out_of_memory_observer
_accelerator_emptyCache _accelerator_emptyHostCache _accelerator_setAllocatorSettings
""".split()
_ANSWERS = {
    "_cuda_canDeviceAccessPeer": True,
    "_cuda_getArchFlags": card.ARCHITECTURES,
    "_cuda_getCompiledVersion": card.DRIVER_VERSION,
    "_cuda_getDriverVersion": card.DRIVER_VERSION,
    "_cuda_allocationTraceback": "",
    "_cuda_isHistoryEnabled": False,
    "_cuda_getMemoryMetadata": "",
    "_cuda_getAllocatorBackend": "native",
    "_cuda_cudaCachingAllocator_is_enabled": True,
    "_cuda_getCublasWorkspaceSize": _CUBLAS_WORKSPACE,
    "_cuda_getCublasLtWorkspaceSize": _CUBLAS_WORKSPACE,
    "_cuda_get_cudnn_benchmark_limit": 10,
    "_nccl_version": card.NCCL_VERSION[0] << 32 | card.NCCL_VERSION[1] << 16 | card.NCCL_VERSION[2],
    "_nccl_version_suffix": b"",
    "_get_accelerator": torch.device("cuda"),
    "_accelerator_getAccelerator": torch.device("cuda"),
}
"""What is answered whatever the arguments are."""
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _always(value) for name, value in (dict.fromkeys(_DOES_NOTHING) | _ANSWERS).items()},
    "_cuda_init": _initialise,
    "_cuda_synchronize": _synchronize,
    "_accelerator_synchronizeDevice": _synchronize,
    "_cuda_getDeviceCount": devices.found,
    "_cuda_getDevice": devices.current,
    "_cuda_setDevice": devices.set_current,
    "_cuda_exchangeDevice": devices.exchange,
    "_cuda_maybeExchangeDevice": devices.exchange,
    "_cuda_isInBadFork": devices.in_bad_fork,
    "_cuda_getCurrentStream": streams.current_stream,
    "_cuda_getCurrentRawStream": lambda index: streams.current_stream(index)[0],
    "_cuda_getDefaultStream": streams.default_stream,
    "_cuda_setStream": streams.set_stream,
    "_cuda_getStreamFromExternal": streams.external_stream,
    "_cuda_set_sync_debug_mode": _set_sync_debug_mode,
    "_cuda_get_sync_debug_mode": lambda: _sync_debug_mode,
    "_cuda_memoryStats": memory.statistics,
    "_cuda_resetPeakMemoryStats": memory.reset_peak,
    "_cuda_resetAccumulatedMemoryStats": memory.reset_accumulated,
    "_cuda_hostMemoryStats": dict,
    "_cuda_memorySnapshot": memory.snapshot,
    "_cuda_setMemoryFraction": memory.set_fraction,
    "_cuda_getMemoryFraction": memory.fraction,
    "_accelerator_getDeviceIndex": devices.current,
    "_accelerator_setDeviceIndex": devices.set_current,
    "_accelerator_exchangeDevice": devices.exchange,
    "_accelerator_maybeExchangeDevice": devices.exchange,
    "_accelerator_getDeviceCapability": lambda index: {"supported_dtypes": {getattr(torch, name) for name in _DTYPES}},
    "_accelerator_getStream": _current_stream,
    "_accelerator_setStream": lambda stream: streams.set_stream(stream.stream_id, stream.device_index),
    "_accelerator_isAllocatorInitialized": lambda: bool(torch.cuda._initialized),
    "_accelerator_getDeviceStats": memory.statistics,
    "_accelerator_resetPeakStats": memory.reset_peak,
    "_accelerator_resetAccumulatedStats": memory.reset_accumulated,
    "_accelerator_getMemoryInfo": memory.free_and_total,
}
"""The functions by their names in `torch._C`."""


class _CudaError(int):
    """A status of the CUDA runtime."""

    success = 0


def _runtime() -> SimpleNamespace:
    """`torch.cuda.cudart()`."""
    succeeding = "HostRegister HostUnregister StreamCreate StreamDestroy ProfilerStart ProfilerStop DeviceSynchronize"
    return SimpleNamespace(
        cudaError=_CudaError,
        cudaGetErrorString=_always("no error"),
        cudaMemGetInfo=memory.free_and_total,
        **{f"cuda{name}": _always(0) for name in succeeding.split()},
    )


def _nvtx() -> SimpleNamespace:
    """NVTX: ranges and marks that no profiler reads; who opens or closes a range hears how deep it is."""
    opened: list[str] = []

    def push(message: str) -> int:
        opened.append(message)
        return len(opened) - 1

    def pop() -> int:
        del opened[-1:]
        return len(opened)

    starts, others = ("rangeStartA", "deviceRangeStart"), ("rangeEnd", "deviceRangeEnd", "markA")
    ignored = dict.fromkeys(starts, _always(0)) | dict.fromkeys(others, _always(None))
    return SimpleNamespace(rangePushA=push, rangePop=pop, **ignored)


def install(patches: Patches) -> None:
    """Make `torch._C` look like that of a build with CUDA, and tell the modules that have looked already."""
    for name, function in _FUNCTIONS.items():
        patches.set(torch._C, name, function)
    cuda = torch.cuda
    replaced = {
        "_exchange_device": devices.exchange,
        "_maybe_exchange_device": devices.exchange,
        "_is_in_bad_fork": devices.in_bad_fork,
        "_device_count_nvml": devices.visible,
        "_cached_device_count": None,
        "_cudart": _runtime(),
        "_CudaDeviceProperties": card.Properties,
    }
    for name, value in replaced.items():
        patches.set(cuda, name, value)
    patches.set(torch._C, "_CudaDeviceProperties", card.Properties)
    patches.set(cuda.nvtx, "_nvtx", _nvtx())
    patches.set(torch._C, "_has_cuda", True)
    patches.set(torch._C, "_has_cudnn", True)
    if torch.version.cuda is None:
        patches.set(torch.version, "cuda", card.CUDA_VERSION)
    cudnn: Any = torch.backends.cudnn
    patches.set(cudnn.m, "_init", _always(True))
    patches.set(cudnn.m, "__cudnn_version", card.CUDNN_VERSION)
    patches.set(cudnn.m, "is_acceptable", _always(False))
