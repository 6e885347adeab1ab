"""The memory of a simulated device: what lives in simulated tensors, as a caching allocator would count it."""

from __future__ import annotations

import weakref
from collections import Counter, defaultdict
from dataclasses import dataclass, field
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
_POOLS = ("all", "small_pool", "large_pool")
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


@dataclass
class _Device:
    """What one device holds: per pool, bytes and numbers of blocks."""

    bytes: dict[str, _Gauge] = field(default_factory=lambda: {pool: _Gauge() for pool in _POOLS})
    blocks: dict[str, _Gauge] = field(default_factory=lambda: {pool: _Gauge() for pool in _POOLS})

    def add(self, size: int, blocks: int) -> None:
        for pool in ("all", "small_pool" if abs(size) <= _SMALL else "large_pool"):
            self.bytes[pool].add(size)
            self.blocks[pool].add(blocks)

    def gauges(self) -> list[_Gauge]:
        return [*self.bytes.values(), *self.blocks.values()]


_devices: defaultdict[int, _Device] = defaultdict(_Device)


def _take(host: torch.Tensor, index: int) -> None:
    """A simulated tensor was made; its memory counts from now on until its storage goes."""
    storage = host.untyped_storage()
    known = vars(storage)  # there is one Python object for a storage as long as the storage lives
    if _COUNTED in known:
        return
    block = known[_COUNTED] = -(-storage.nbytes() // _BLOCK) * _BLOCK
    if block:
        _devices[index].add(block, 1)
        weakref.finalize(storage, _devices[index].add, -block, -1).atexit = False


def statistics(index: int) -> dict[str, Any]:
    """What `torch.cuda.memory_stats_as_nested_dict` returns.

    Nothing is cached and nothing fragmented: what is reserved is what is allocated.
    """
    device = _devices[index]
    nothing = {pool: _Gauge() for pool in _POOLS}
    stats: dict[str, Any] = Counter(dict.fromkeys(_PLAIN, 0))
    for names, gauges in ((_BYTES, device.bytes), (_COUNTS, device.blocks)):
        for name in names:
            chosen = nothing if name.startswith("inactive_split") else gauges
            stats[name] = {pool: dict(vars(gauge)) for pool, gauge in chosen.items()}
    for name in ("oversize_allocations", "oversize_segments"):
        stats[name] = dict(vars(_Gauge()))
    return dict(stats) | {"max_split_size": -1}


def reset_peak(index: int) -> None:
    """The peaks are what is there now."""
    for gauge in _devices[index].gauges():
        gauge.peak = gauge.current


def reset_accumulated(index: int) -> None:
    """The totals start again."""
    for gauge in _devices[index].gauges():
        gauge.allocated = gauge.freed = 0


def free_and_total(index: int) -> tuple[int, int]:
    """What `torch.cuda.mem_get_info` returns."""
    total = card.properties(index).total_memory
    return max(total - _devices[index].bytes["all"].current, 0), total


def snapshot(*args: object) -> dict[str, Any]:
    """What `torch.cuda.memory_snapshot` looks into: no segments."""
    return {"segments": [], "device_traces": [], "allocator_settings": {}}


def install(patches: Patches) -> None:
    """Count the memory of simulated tensors from now on."""
    patches.set(tensor, "on_made", _take)
