"""The memory of a simulated device: what lives in simulated tensors, as a caching allocator would count it."""

from __future__ import annotations

import weakref
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator import tensor
from devlint.simulator.masquerade import card

_BLOCK = 512
"""The allocator hands out memory in multiples of this."""
_COUNTED = "_devlint_block"
_SMALL = 1 << 20
"""Up to this many bytes, memory comes from the small pool."""
_BYTES = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes", "inactive_split_bytes")
_COUNTS = ("allocation", "segment", "active", "inactive_split")
_PLAIN = "num_alloc_retries num_ooms num_sync_all_streams num_device_alloc num_device_free".split()


@dataclass
class _Gauge:
    """A number that goes up and down."""

    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def add(self, amount: int) -> None:
        self.current += amount
        if amount > 0:
            self.allocated += amount
            self.peak = max(self.peak, self.current)
        else:
            self.freed -= amount


def _pools() -> dict[str, _Gauge]:
    return {pool: _Gauge() for pool in ("all", "small_pool", "large_pool")}


_devices: defaultdict[int, tuple[dict[str, _Gauge], dict[str, _Gauge]]] = defaultdict(lambda: (_pools(), _pools()))
"""What each device holds: per pool, bytes and numbers of blocks."""


def _count(index: int, size: int, blocks: int) -> None:
    for pool in ("all", "small_pool" if abs(size) <= _SMALL else "large_pool"):
        for gauges, amount in zip(_devices[index], (size, blocks), strict=True):
            gauges[pool].add(amount)


def _take(host: torch.Tensor, index: int) -> None:
    """A simulated tensor was made; its memory counts from now on until its storage goes."""
    storage = host.untyped_storage()
    known = vars(storage)  # there is one Python object for a storage as long as the storage lives
    if _COUNTED in known:
        return
    block = known[_COUNTED] = -(-storage.nbytes() // _BLOCK) * _BLOCK
    if block:
        _count(index, block, 1)
        weakref.finalize(storage, _count, index, -block, -1).atexit = False


def statistics(index: int) -> dict[str, Any]:
    """What `torch.cuda.memory_stats_as_nested_dict` returns.

    Nothing is cached and nothing fragmented: what is reserved is what is allocated.
    """
    stats: dict[str, Any] = dict.fromkeys(_PLAIN, 0)
    for names, gauges in zip((_BYTES, _COUNTS), _devices[index], strict=True):
        for name in names:
            chosen = _pools() if name.startswith("inactive_split") else gauges
            stats[name] = {pool: dict(vars(gauge)) for pool, gauge in chosen.items()}
    for name in ("oversize_allocations", "oversize_segments"):
        stats[name] = dict(vars(_Gauge()))
    return stats | {"max_split_size": -1}


def reset_peak(index: int) -> None:
    """The peaks are what is there now."""
    for gauges in _devices[index]:
        for gauge in gauges.values():
            gauge.peak = gauge.current


def reset_accumulated(index: int) -> None:
    """The totals start again."""
    for gauges in _devices[index]:
        for gauge in gauges.values():
            gauge.allocated = gauge.freed = 0


def free_and_total(index: int) -> tuple[int, int]:
    """What `torch.cuda.mem_get_info` returns."""
    total = card.properties(index).total_memory
    return max(total - _devices[index][0]["all"].current, 0), total


def snapshot(*args: object) -> dict[str, Any]:
    """What `torch.cuda.memory_snapshot` looks into: no segments."""
    return {"segments": [], "device_traces": [], "allocator_settings": {}}


def install(patches: Patches) -> None:
    """Count the memory of simulated tensors from now on."""
    patches.set(tensor, "on_made", _take)
