"""Names bound to CUDA, and what does the same on any accelerator; a test holds the rows to the torch that is installed.

Three things make a rewriting wrong that looks right.  A name may be missing on the other side: nothing below
``torch.accelerator`` seeds, and what ``torch.cuda.mem_get_info`` tells is told by ``get_memory_info``.  A name may mean
something else there: ``torch.accelerator.get_device_capability`` returns the dtypes, and no version.  And what does
nothing without CUDA may raise without an accelerator, as ``empty_cache`` does: ``needs`` says so.
"""

from __future__ import annotations

from typing import Any

from devlint.torch_api.rows import Api, Kind, Topic, Version

_REFERENCE = "https://docs.pytorch.org/docs/stable/accelerator.html"
_DEVICE = ("device",)
"""``torch.accelerator`` takes the device by position only."""
_SEEDED = "it seeds the CPU and every accelerator"


def _row(name: str, kind: Kind, replacement: str, since: Version, **others: Any) -> Api:
    reference = _REFERENCE
    return Api(f"torch.cuda.{name}", kind, replacement, since, Topic.PORTABILITY, reference=reference, **others)


def _same(name: str, new: str, since: Version, **others: Any) -> Api:
    """A function that ``torch.accelerator`` has under a new name."""
    return _row(name, Kind.RENAMED, f"torch.accelerator.{new}", since, **others)


def _state(name: str, new: str, since: Version = (2, 6), **others: Any) -> Api:
    """The same, where both raise: the old one without CUDA, the new one without an accelerator."""
    return _same(name, new, since, raises=True, needs=True, **others)


_AVAILABLE = tuple(_same(name, name, (2, 6)) for name in ("is_available", "device_count"))
_STATE = (
    _state("synchronize", "synchronize", safe=True, parameters=_DEVICE),
    _state("current_device", "current_device_index", safe=True),
    _state("set_device", "set_device_index", safe=True, parameters=_DEVICE),
    _state("current_stream", "current_stream", parameters=_DEVICE),
    _state("set_stream", "set_stream", parameters=("stream",)),
)
_TIMED = ("enable_timing", "blocking", "interprocess")
_OBJECTS = (
    _row("Event", Kind.BOUND, "torch.Event", (2, 5), raises=True, parameters=_TIMED),
    _row("Stream", Kind.BOUND, "torch.Stream", (2, 5), raises=True, parameters=("device", "priority")),
    _state(
        "device",
        "device_index",
        (2, 8),
        parameters=_DEVICE,
        index=True,
        note="it takes an index, and no `torch.device`",
    ),
    _row("stream", Kind.REWRITTEN, "torch.Stream", (2, 7), note="a stream is a context manager: `with stream:`"),
)
_MEMORY = (
    _same("empty_cache", "empty_cache", (2, 9), needs=True),
    *(
        _same(name, name, (2, 9), needs=True, parameters=_DEVICE)
        for name in "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_stats".split()
    ),
    *(
        _state(name, name, (2, 9), parameters=_DEVICE)
        for name in ("reset_peak_memory_stats", "reset_accumulated_memory_stats")
    ),
    *(
        _state(name, "reset_peak_memory_stats", (2, 9), parameters=_DEVICE)
        for name in ("reset_max_memory_allocated", "reset_max_memory_cached")
    ),
    *(
        _same(old, new, (2, 9), needs=True, parameters=_DEVICE)
        for old, new in (("memory_cached", "memory_reserved"), ("max_memory_cached", "max_memory_reserved"))
    ),
    _state("mem_get_info", "get_memory_info", (2, 10), parameters=_DEVICE),
)
_SEEDS = tuple(
    _row(name, Kind.RENAMED, "torch.manual_seed", (1, 0), note=_SEEDED) for name in ("manual_seed", "manual_seed_all")
)
_WITHOUT_EQUIVALENT = tuple(
    Api(f"torch.cuda.{name}", Kind.NOTHING, raises=True, reference=_REFERENCE, topic=Topic.PORTABILITY)
    for name in """CUDAGraph can_device_access_peer cudart current_blas_handle default_stream get_device_capability
    get_device_name get_device_properties get_rng_state get_sync_debug_mode graph_pool_handle init initial_seed
    ipc_collect is_current_stream_capturing memory_snapshot memory_summary nvtx.mark nvtx.range_pop nvtx.range_push
    set_sync_debug_mode""".split()
)

_PINNED = (
    Api("torch.Tensor.pin_memory", Kind.NOTHING, raises=True, topic=Topic.PORTABILITY),
    *(
        Api(f"torch.{name}", Kind.NOTHING, raises=True, argument="pin_memory", topic=Topic.PORTABILITY)
        for name in """arange empty empty_like empty_strided eye full full_like linspace logspace ones ones_like rand
        rand_like randint randint_like randn randn_like randperm tensor zeros zeros_like""".split()
    ),
)
"""Page-locked memory belongs to an accelerator: without one there is none to be had."""

ROWS: tuple[Api, ...] = (*_AVAILABLE, *_STATE, *_OBJECTS, *_MEMORY, *_SEEDS, *_WITHOUT_EQUIVALENT, *_PINNED)
