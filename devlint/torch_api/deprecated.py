"""Deprecated names of torch that concern devices, and what to write instead; held to torch's own warnings by a test."""

from __future__ import annotations

from typing import Any

from devlint.torch_api.rows import PROFILED_EVENT, Api, Kind, Topic, Version

_DOCS = "https://docs.pytorch.org/docs/stable/"
_AUTOCAST = ("enabled", "dtype", "cache_enabled")
_SCALER = ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")
_DDP = "torch.nn.parallel.DistributedDataParallel"
_DDP_PAGE = f"generated/{_DDP}.html"
_PINNED_ANYWHERE = "memory is pinned for the accelerator that the machine has"
_HOW_BUILT = "it says how torch was built, and `torch.{}.is_available()` whether that can be used"


def _row(
    name: str, kind: Kind, replacement: str, since: Version, page: str = "", *, safe: bool = True, **others: Any
) -> Api:
    """A row on a name that torch has deprecated together with ``since``, and whose replacement does the same."""
    reference = f"{_DOCS}{page}" if page else ""
    return Api(name, kind, replacement, since, safe=safe, reference=reference, **{"deprecated": since, **others})


def _amp(name: str, since: Version, **others: Any) -> Api:
    """A class or function of ``torch.cuda.amp`` or ``torch.cpu.amp``, which ``torch.amp`` has, too."""
    replacement = f"torch.amp.{name.rpartition('.')[2]}"
    return _row(name, Kind.BOUND, replacement, since, "amp.html", topic=Topic.AMP, deprecated=(2, 4), **others)


_MIXED_PRECISION = (
    *(
        _amp(f"torch.{device}.amp.{module}{name}", since, prepend=f'"{device}"', parameters=parameters)
        for name, home, since, parameters in (
            ("autocast", "autocast_mode.", (1, 12), _AUTOCAST),
            ("GradScaler", "grad_scaler.", (2, 3), _SCALER),
        )
        for device in ("cuda", "cpu")
        for module in ("", home)
    ),
    *(
        _amp(f"torch.cuda.amp.{module}{name}", (2, 4), keyword=("device_type", '"cuda"'))
        for name in ("custom_fwd", "custom_bwd")
        for module in ("", "autocast_mode.")
    ),
)
_AUTOCAST_STATE = tuple(
    _row(f"torch.{old}", Kind.BOUND, f"torch.{new}", (2, 4), "amp.html", prepend=f'"{device}"', hidden=True)
    for kind, device in (("gpu", "cuda"), ("cpu", "cpu"), ("xla", "xla"), ("ipu", "ipu"))
    for old, new in (
        (f"get_autocast_{kind}_dtype", "get_autocast_dtype"),
        (f"set_autocast_{kind}_dtype", "set_autocast_dtype"),
        (f"is_autocast_{kind}_enabled", "is_autocast_enabled"),
        (f"set_autocast_{kind}_enabled", "set_autocast_enabled"),
    )
    # on the GPU these two have always been called is_autocast_enabled and set_autocast_enabled
    if not (kind == "gpu" and old.endswith("_enabled"))
)
_MEMORY_COUNTERS = tuple(
    _row(f"torch.cuda.{module}{old}", Kind.RENAMED, f"torch.cuda.{new}", (1, 4), "notes/cuda.html#memory-management")
    for old, new in (
        ("memory_cached", "memory_reserved"),
        ("max_memory_cached", "max_memory_reserved"),
        ("reset_max_memory_allocated", "reset_peak_memory_stats"),
        ("reset_max_memory_cached", "reset_peak_memory_stats"),
    )
    for module in ("", "memory.")
)
_BUILT = tuple(
    _row(f"torch.{old}", Kind.EXPRESSION, f"torch.backends.{new}()", (2, 0), note=note)
    for old, new, note in (
        ("has_cuda", "cuda.is_built", _HOW_BUILT.format("cuda")),
        ("has_cudnn", "cudnn.is_available", ""),
        ("has_mps", "mps.is_built", _HOW_BUILT.format("backends.mps")),
    )
)
_ACCELERATOR = tuple(
    _row(f"torch.accelerator.{name}_idx", Kind.RENAMED, f"torch.accelerator.{name}_index", (2, 7), "accelerator.html")
    for name in ("current_device", "set_device")
)


def _dropped(name: str, since: Version, page: str, argument: str, note: str, **others: Any) -> Api:
    """A row on an argument that does nothing."""
    return _row(name, Kind.DROPPED, "", since, page, argument=argument, note=note, **others)


_PINNING = (
    *(
        _dropped(name, (2, 5), f"generated/{name}.html", "device", _PINNED_ANYWHERE, position=0, hidden=True)
        for name in ("torch.Tensor.pin_memory", "torch.Tensor.is_pinned")
    ),
    _dropped("torch.utils.data.DataLoader", (2, 9), "data.html#memory-pinning", "pin_memory_device", _PINNED_ANYWHERE),
)
_DEFAULT = "buffers are synchronized by default"
_SYNCED_ONCE = "unlike it, `forward_sync_buffers=False` still synchronizes the buffers once, when the module is wrapped"
_BUFFERS: dict[str, Any] = {"page": _DDP_PAGE, "deprecated": (2, 13), "argument": "broadcast_buffers"}
_PARALLEL = (
    _row(f"{_DDP}CPU", Kind.RENAMED, _DDP, (1, 4), _DDP_PAGE, note="it is a deprecated alias"),
    _row(_DDP, Kind.DROPPED, "", (1, 0), only=(True,), note=_DEFAULT, **_BUFFERS),
    _row(
        _DDP, Kind.ARGUMENT, "forward_sync_buffers", (2, 13), safe=False, only=(False,), note=_SYNCED_ONCE, **_BUFFERS
    ),
    _dropped(_DDP, (1, 1), _DDP_PAGE, "check_reduction", "it does nothing"),
)
_ACTIVITIES = "list the `activities` to record, such as `torch.profiler.ProfilerActivity.CUDA`"
_CUDA_PROFILED: dict[str, Any] = {"argument": "use_cuda", "value": '"cuda"', "only": (True,), "deprecated": (2, 4)}
_PROFILER = (
    _row(
        "torch.autograd.profiler.profile",
        Kind.ARGUMENT,
        "use_device",
        (2, 1),
        "autograd.html#profiler",
        **_CUDA_PROFILED,
    ),
    *(
        _row(name, Kind.NOTHING, "", (1, 8), "profiler.html", safe=False, argument="use_cuda", note=_ACTIVITIES)
        for name in ("torch.profiler.profile", "torch.profiler.profiler.profile")
    ),
)
_LOST = "the averages of `key_averages()` have it no more, and raise an AttributeError"
_EVENTS = tuple(
    _row(f"{PROFILED_EVENT}.{old}", Kind.ATTRIBUTE, old.replace("cuda", "device"), (2, 5), "profiler.html", note=note)
    for old, note in (
        ("cuda_time", ""),
        ("cuda_time_total", _LOST),
        ("self_cuda_time_total", _LOST),
        ("self_cuda_memory_usage", _LOST),
    )
)
"""Single events still have the old names; averages have lost them, but for the mean, when they got the new ones."""
_TYPE: dict[str, Any] = {"safe": False, "topic": Topic.TENSOR_TYPE}
_DEFAULTS = "use `torch.set_default_dtype()` and `torch.set_default_device()`"
_VARIABLE = "tensors do all that variables did"
_TENSOR_TYPES = tuple(
    _row(f"torch.{name}", Kind.NOTHING, "", since, page, deprecated=deprecated, note=note, **_TYPE)
    for name, since, deprecated, page, note in (
        ("set_default_tensor_type", (2, 0), (2, 1), "generated/torch.set_default_tensor_type.html", _DEFAULTS),
        ("autograd.Variable", (1, 0), None, "autograd.html#variable-deprecated", _VARIABLE),
    )
)

ROWS: tuple[Api, ...] = (
    *_MIXED_PRECISION,
    *_AUTOCAST_STATE,
    *_MEMORY_COUNTERS,
    *_BUILT,
    *_ACCELERATOR,
    *_PINNING,
    *_PARALLEL,
    *_PROFILER,
    *_EVENTS,
    *_TENSOR_TYPES,
)
