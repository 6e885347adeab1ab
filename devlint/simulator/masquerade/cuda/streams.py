"""Streams and events: a simulated device has done its work when the call returns, so they only have to remember.

torch's own classes `torch.cuda.Stream` and `torch.cuda.Event` stand on two classes of its C library, which a build
without CUDA lacks.  They are given here, and torch's module is executed once more on top of them.
"""

from __future__ import annotations

import importlib.util
import itertools
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from typing_extensions import Self

from devlint.auditor.patches import Patches
from devlint.simulator import devices
from devlint.simulator.masquerade.cuda import capture
from devlint.simulator.masquerade.cuda.unsupported import refusing
from devlint.simulator.masquerade.device_type import stand_in

_cuda: Any = torch.cuda
_CUDA = 1
"""The number of CUDA among torch's device types."""
_SIMULATED = int(vars(torch._C._autograd)["DeviceType"].PrivateUse1)
"""That of the simulated devices."""
_PRIORITIES = (0, -5)
_identifiers = itertools.count(16)
"""Above the numbers by which libraries name default streams to each other."""
_local = threading.local()
_OTHERS = "no driver is there to tell other processes of events"


class _Finished:
    """What has no work that is still to be done; a graph that is being captured does not wait for it."""

    __slots__ = ()

    def query(self) -> bool:
        """Whether all work is done, which it always is."""
        capture.refuse()
        return True

    def synchronize(self) -> None:
        """Nothing is left to wait for."""
        capture.refuse()


class StreamBase(_Finished, torch.Stream):
    """What `torch.cuda.Stream` stands on; the default stream of a device has the identifier 0."""

    priority: int
    cuda_stream: int
    device_type = _CUDA

    def __new__(
        cls,
        priority: int = 0,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: int = _CUDA,
        stream_ptr: int = 0,
    ) -> Self:
        """A new stream on the current device, or the one with an identifier."""
        if stream_ptr:  # of another library
            stream_id, device_index = stream_ptr, devices.current() if device_index is None else device_index
        if stream_id is None or device_index is None:
            stream_id, device_index = next(_identifiers), devices.current()
        self = super().__new__(cls, stream_id=stream_id, device_index=device_index, device_type=_SIMULATED)
        self.priority = max(min(priority, _PRIORITIES[0]), _PRIORITIES[1])
        self.cuda_stream = stream_id
        return self

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority."""
        return _PRIORITIES

    def is_capturing(self) -> bool:
        """Whether a graph is being captured on it."""
        return capture.active(self)

    def __enter__(self) -> Self:
        entered = vars(self).setdefault("_entered", [])
        entered.append((devices.current(), current_stream(self.device_index)))
        devices.set_current(self.device_index)
        set_stream(stream_id=self.stream_id, device_index=self.device_index)
        return self

    def __exit__(self, *exception: object) -> None:
        index, stream = vars(self)["_entered"].pop()
        set_stream(stream_id=stream[0], device_index=stream[1])
        devices.set_current(index)


class EventBase(_Finished):
    """What `torch.cuda.Event` stands on."""

    _timed: bool
    _recorded: float | None
    _index: int | None

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> Self:
        """An event, not yet recorded."""
        self = super().__new__(cls)
        self._timed, self._recorded, self._index = enable_timing, None, None
        return self

    @property
    def cuda_event(self) -> int:
        """The handle: zero before the event was recorded."""
        return 0 if self._recorded is None else id(self)

    event_id = cuda_event

    @property
    def device(self) -> torch.device | None:
        """The device on which it was recorded."""
        return None if self._index is None else torch.device("cuda", self._index)

    def record(self, stream: torch.Stream) -> None:
        """Take the time."""
        if self._index is not None and stream.device_index != self._index:
            raise RuntimeError(
                f"Event device {self._index} does not match recording stream's device {stream.device_index}."
            )
        self._index = stream.device_index
        self._recorded = time.perf_counter()

    def wait(self, stream: torch.Stream) -> None:
        """Nothing is left to wait for."""

    def elapsed_time(self, end: EventBase) -> float:
        """Milliseconds between two recorded events, as the host saw them."""
        if not (self._timed and end._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._recorded is None or end._recorded is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end._recorded - self._recorded) * 1e3

    ipc_handle = refusing("Event.ipc_handle", _OTHERS)
    from_ipc_handle = staticmethod(refusing("Event.from_ipc_handle", _OTHERS))


def current_stream(index: int) -> tuple[int, int, int]:
    """Identifier, device and device type of the calling thread's stream on a device."""
    return vars(_local).setdefault("streams", {}).get(index, 0), index, _CUDA


def set_stream(stream_id: int, device_index: int, device_type: int = _CUDA) -> None:
    """Make a stream, and its device, the calling thread's current one."""
    vars(_local).setdefault("streams", {})[device_index] = stream_id
    devices.set_current(device_index)


def default_stream(index: int) -> tuple[int, int, int]:
    """Identifier, device and device type of the default stream of a device."""
    return 0, index, _CUDA


def external_stream(pointer: int, index: int) -> tuple[int, int, int]:
    """Identifier, device and device type of a stream that another library has made."""
    return pointer, index, _CUDA


def _of_any_device(native: Any, make: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a stream or event of CUDA where one is meant, else one of torch's own."""

    def made(device: Any = None, **options: Any) -> Any:
        device = "cuda" if device is None else device
        return native(device, **options) if devices.index_of(device) is None else make(device, **options)

    return made


def _stream(device: Any, **options: Any) -> Any:
    return _cuda.Stream(None if "stream_id" in options else device, **options)


def executed_again(module: ModuleType) -> ModuleType:
    """A second module from the source of one."""
    spec: Any = importlib.util.spec_from_file_location(module.__name__, module.__file__)
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


def install(patches: Patches) -> None:
    """Put `torch.cuda.Stream`, `torch.cuda.Event`, `torch.Stream` and `torch.Event` on the simulated device."""
    stream, event = torch.Stream, torch.Event
    patches.set(torch._C, "_CudaStreamBase", StreamBase)
    patches.set(torch._C, "_CudaEventBase", EventBase)
    module = executed_again(torch.cuda.streams)
    for name in ("Stream", "ExternalStream", "Event"):
        for owner in (torch.cuda.streams, torch.cuda):
            patches.set(owner, name, getattr(module, name))
    patches.set(torch, "Stream", stand_in(stream, _of_any_device(stream, _stream)))
    patches.set(
        torch,
        "Event",
        stand_in(event, _of_any_device(event, lambda device, **options: _cuda.Event(**options)), EventBase),
    )
