"""The memory of a simulated device: what lives in simulated tensors, as a caching allocator would count it."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator import devices, dispatch, tensor
from devlint.simulator.masquerade import card

_BLOCK = 512
"""The allocator hands out memory in multiples of this."""
_COUNTED = "_devlint_block"
_SMALL = 1 << 20
"""Up to this many bytes, memory comes from the small pool."""
_BYTES = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes", "inactive_split_bytes")
_COUNTS = ("allocation", "segment", "active", "inactive_split")
_PLAIN = "num_alloc_retries num_ooms num_sync_all_streams num_device_alloc num_device_free".split()
_HOST_REFUSES = re.compile(r"you tried to allocate (\d+) bytes")
_fractions: dict[int, float] = {}
_ooms: Counter[int] = Counter()


@dataclass(slots=True)
class _Gauge:
    """A number that goes up and down."""

    current: int = 0
    peak: int = 0
    allocated: int = 0
    before: int = 0
    """What `current` was when `allocated` began to be summed up."""

    def figures(self) -> dict[str, int]:
        """As torch names them."""
        freed = self.before + self.allocated - self.current
        return {"current": self.current, "peak": self.peak, "allocated": self.allocated, "freed": freed}


Pool = tuple[_Gauge, _Gauge]
"""The bytes and the number of the blocks in it."""


def _pools() -> dict[str, Pool]:
    return {pool: (_Gauge(), _Gauge()) for pool in ("all", "small_pool", "large_pool")}


_devices: defaultdict[int, dict[str, Pool]] = defaultdict(_pools)
"""What each device holds."""


class _Block:
    """The memory of a storage, which holds this as an attribute: both go at the same time."""

    __slots__ = ("pools", "size")

    def __init__(self, pools: tuple[Pool, Pool], size: int) -> None:
        # written out: this runs for every tensor that is made
        self.pools, self.size = pools, size
        for held, blocks in pools:
            held.allocated += size
            held.current = now = held.current + size
            if now > held.peak:
                held.peak = now
            blocks.allocated += 1
            blocks.current = now = blocks.current + 1
            if now > blocks.peak:
                blocks.peak = now

    def __del__(self) -> None:
        # not by weakref.finalize, which takes as long as the operation that made the tensor
        for held, blocks in self.pools:
            held.current -= self.size
            blocks.current -= 1


def _take(host: torch.Tensor, index: int) -> None:
    """A simulated tensor was made; its memory counts from now on until its storage goes."""
    storage: Any = host.untyped_storage()
    if hasattr(storage, _COUNTED):  # there is one Python object for a storage as long as the storage lives
        return
    size = -(-storage.nbytes() // _BLOCK) * _BLOCK
    pools = _devices[index]
    capacity = _capacity(index) if _fractions else card.memory
    if size > capacity - pools["all"][0].current:
        raise _out_of_memory(index, storage.nbytes())
    storage._devlint_block = size and _Block(
        (pools["all"], pools["small_pool" if size <= _SMALL else "large_pool"]), size
    )


def fraction(index: int) -> float:
    """What part of a device's memory the process may use."""
    return _fractions.get(index, 1.0)


def set_fraction(part: float, index: int) -> None:
    """Say what part of a device's memory the process may use."""
    _fractions[index] = part


def _capacity(index: int) -> int:
    """How many bytes the process may use on a device."""
    return int(card.memory * fraction(index))


def _out_of_memory(index: int, size: int) -> Exception:
    """What CUDA's allocator says (c10/cuda/CUDACachingAllocator.cpp)."""
    used, total = _devices[index]["all"][0].current, card.memory
    _ooms[index] += 1
    allowed = f"{_spelled(_capacity(index))} allowed; " if index in _fractions else ""
    return torch.OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {_spelled(size)}. GPU {index} has a total capacity of "
        f"{_spelled(total)} of which {_spelled(total - used)} is free. Process {os.getpid()} has {_spelled(used)} "
        f"memory in use. {allowed}Of the allocated memory {_spelled(used)} is allocated by PyTorch, and 0 bytes is "
        "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
        "Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
        "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    )


def _spelled(size: int) -> str:
    """A number of bytes as the allocator writes it."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size > unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"


def refused(place: torch.device, error: Exception) -> Exception | None:
    """What CUDA says where the host has not as much memory as a device was asked for; `None` for any other error."""
    asked = _HOST_REFUSES.search(str(error)) if place.type != "cpu" else None
    return _out_of_memory(devices.current() if place.index is None else place.index, int(asked[1])) if asked else None


def statistics(index: int) -> dict[str, Any]:
    """What `torch.cuda.memory_stats_as_nested_dict` returns.

    Nothing is cached and nothing fragmented: what is reserved is what is allocated.
    """
    stats: dict[str, Any] = dict.fromkeys(_PLAIN, 0)
    for position, names in enumerate((_BYTES, _COUNTS)):
        for name in names:
            chosen = _pools() if name.startswith("inactive_split") else _devices[index]
            stats[name] = {pool: gauges[position].figures() for pool, gauges in chosen.items()}
    stats["num_ooms"] = _ooms[index]
    for name in ("oversize_allocations", "oversize_segments"):
        stats[name] = _Gauge().figures()
    return stats | {"max_split_size": -1}


def reset_peak(index: int) -> None:
    """The peaks are what is there now."""
    for gauges in _devices[index].values():
        for gauge in gauges:
            gauge.peak = gauge.current


def reset_accumulated(index: int) -> None:
    """The totals start again."""
    for gauges in _devices[index].values():
        for gauge in gauges:
            gauge.allocated, gauge.before = 0, gauge.current


def free_and_total(index: int) -> tuple[int, int]:
    """What `torch.cuda.mem_get_info` returns."""
    return card.memory - _devices[index]["all"][0].current, card.memory


def snapshot(*args: object) -> dict[str, Any]:
    """What `torch.cuda.memory_snapshot` looks into: no segments."""
    return {"segments": [], "device_traces": [], "allocator_settings": {}}


def install(patches: Patches) -> None:
    """Count the memory of simulated tensors from now on."""
    patches.set(tensor, "on_made", _take)
    patches.set(dispatch, "out_of_memory", refused)
