"""Names bound to CUDA, and what does the same on any accelerator; a test holds the rows to the torch that is installed.

Three things make a rewriting wrong that looks right.  A name may be missing on the other side: nothing below
``torch.accelerator`` seeds, and what ``torch.cuda.mem_get_info`` tells is told by ``get_memory_info``.  A name may mean
something else there: ``torch.accelerator.get_device_capability`` returns the dtypes, and no version.  And what does
nothing without CUDA may raise without an accelerator, as ``empty_cache`` does: ``needs`` says so.
"""

from __future__ import annotations

from devlint.torch_api.rows import Api, Kind, Topic

_REFERENCE = "https://docs.pytorch.org/docs/stable/accelerator.html"
_DEVICE = ("device",)
"""``torch.accelerator`` takes the device by position only."""


def _same(
    name: str,
    replacement: str,
    since: tuple[int, int],
    *,
    raises: bool = False,
    needs: bool = False,
    safe: bool = False,
    parameters: tuple[str, ...] = (),
    kind: Kind = Kind.RENAMED,
    note: str = "",
    index: bool = False,
) -> Api:
    return Api(
        f"torch.cuda.{name}",
        kind,
        replacement,
        since,
        safe=safe,
        raises=raises,
        needs=needs,
        index=index,
        parameters=parameters,
        note=note,
        reference=_REFERENCE,
        topic=Topic.PORTABILITY,
    )


_AVAILABLE = (
    _same("is_available", "torch.accelerator.is_available", (2, 6)),
    _same("device_count", "torch.accelerator.device_count", (2, 6)),
)
_STATE = (
    _same(
        "synchronize", "torch.accelerator.synchronize", (2, 6), raises=True, needs=True, safe=True, parameters=_DEVICE
    ),
    _same("current_device", "torch.accelerator.current_device_index", (2, 6), raises=True, needs=True, safe=True),
    _same(
        "set_device",
        "torch.accelerator.set_device_index",
        (2, 6),
        raises=True,
        needs=True,
        safe=True,
        parameters=_DEVICE,
    ),
    _same("current_stream", "torch.accelerator.current_stream", (2, 6), raises=True, needs=True, parameters=_DEVICE),
    _same("set_stream", "torch.accelerator.set_stream", (2, 6), raises=True, needs=True, parameters=("stream",)),
)
_OBJECTS = (
    _same(
        "Event",
        "torch.Event",
        (2, 5),
        raises=True,
        kind=Kind.BOUND,
        parameters=("enable_timing", "blocking", "interprocess"),
    ),
    _same("Stream", "torch.Stream", (2, 5), raises=True, kind=Kind.BOUND, parameters=("device", "priority")),
    _same(
        "device",
        "torch.accelerator.device_index",
        (2, 8),
        raises=True,
        needs=True,
        parameters=_DEVICE,
        index=True,
        note="it takes an index, and no `torch.device`",
    ),
    _same("stream", "torch.Stream", (2, 7), kind=Kind.REWRITTEN, note="a stream is a context manager: `with stream:`"),
)
_MEMORY = (
    _same("empty_cache", "torch.accelerator.empty_cache", (2, 9), needs=True),
    *(
        _same(name, f"torch.accelerator.{name}", (2, 9), needs=True, parameters=_DEVICE)
        for name in (
            "memory_allocated",
            "max_memory_allocated",
            "memory_reserved",
            "max_memory_reserved",
            "memory_stats",
        )
    ),
    *(
        _same(name, f"torch.accelerator.{name}", (2, 9), raises=True, needs=True, parameters=_DEVICE)
        for name in ("reset_peak_memory_stats", "reset_accumulated_memory_stats")
    ),
    *(
        _same(name, "torch.accelerator.reset_peak_memory_stats", (2, 9), raises=True, needs=True, parameters=_DEVICE)
        for name in ("reset_max_memory_allocated", "reset_max_memory_cached")
    ),
    *(
        _same(old, f"torch.accelerator.{new}", (2, 9), needs=True, parameters=_DEVICE)
        for old, new in (("memory_cached", "memory_reserved"), ("max_memory_cached", "max_memory_reserved"))
    ),
    _same("mem_get_info", "torch.accelerator.get_memory_info", (2, 10), raises=True, needs=True, parameters=_DEVICE),
)
_SEEDS = (
    _same("manual_seed", "torch.manual_seed", (1, 0), note="it seeds the CPU and every accelerator"),
    _same("manual_seed_all", "torch.manual_seed", (1, 0), note="it seeds the CPU and every accelerator"),
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
