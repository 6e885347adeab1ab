"""Deprecated names of torch that concern devices, and what to write instead; held to torch's own warnings by a test."""

from __future__ import annotations

from devlint.torch_api.rows import PROFILED_EVENT, Api, Kind, Topic

_DOCS = "https://docs.pytorch.org/docs/stable/"
_MEMORY = f"{_DOCS}notes/cuda.html#memory-management"
_AUTOCAST = ("enabled", "dtype", "cache_enabled")
_SCALER = ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")
_DDP = "torch.nn.parallel.DistributedDataParallel"


def _amp(name: str, replacement: str, since: tuple[int, int], device: str, parameters: tuple[str, ...]) -> Api:
    """A class of ``torch.cuda.amp`` or ``torch.cpu.amp``: that of ``torch.amp`` takes the device first."""
    return Api(
        name,
        Kind.BOUND,
        replacement,
        since,
        Topic.AMP,
        deprecated=(2, 4),
        safe=True,
        prepend=f'"{device}"',
        parameters=parameters,
        reference=f"{_DOCS}amp.html",
    )


_MIXED_PRECISION = (
    *(
        _amp(f"torch.{device}.amp.{module}autocast", "torch.amp.autocast", (1, 12), device, _AUTOCAST)
        for device in ("cuda", "cpu")
        for module in ("", "autocast_mode.")
    ),
    *(
        _amp(f"torch.{device}.amp.{module}GradScaler", "torch.amp.GradScaler", (2, 3), device, _SCALER)
        for device in ("cuda", "cpu")
        for module in ("", "grad_scaler.")
    ),
    *(
        Api(
            f"torch.cuda.amp.{module}{name}",
            Kind.BOUND,
            f"torch.amp.{name}",
            (2, 4),
            Topic.AMP,
            deprecated=(2, 4),
            safe=True,
            keyword=("device_type", '"cuda"'),
            reference=f"{_DOCS}amp.html",
        )
        for name in ("custom_fwd", "custom_bwd")
        for module in ("", "autocast_mode.")
    ),
)

_AUTOCAST_STATE = tuple(
    Api(
        f"torch.{old}",
        Kind.BOUND,
        f"torch.{new}",
        (2, 4),
        deprecated=(2, 4),
        safe=True,
        prepend=f'"{device}"',
        reference=f"{_DOCS}amp.html",
    )
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
    Api(
        f"torch.cuda.{module}{old}",
        Kind.RENAMED,
        f"torch.cuda.{new}",
        (1, 4),
        deprecated=(1, 4),
        safe=True,
        reference=_MEMORY,
    )
    for old, new in (
        ("memory_cached", "memory_reserved"),
        ("max_memory_cached", "max_memory_reserved"),
        ("reset_max_memory_allocated", "reset_peak_memory_stats"),
        ("reset_max_memory_cached", "reset_peak_memory_stats"),
    )
    for module in ("", "memory.")
)

_HOW_BUILT = "it says how torch was built, and `torch.{}.is_available()` whether that can be used"
_BUILT = tuple(
    Api(f"torch.{old}", Kind.EXPRESSION, f"torch.backends.{new}()", (2, 0), deprecated=(2, 0), safe=True, note=note)
    for old, new, note in (
        ("has_cuda", "cuda.is_built", _HOW_BUILT.format("cuda")),
        ("has_cudnn", "cudnn.is_available", ""),
        ("has_mps", "mps.is_built", _HOW_BUILT.format("backends.mps")),
    )
)

_ACCELERATOR = tuple(
    Api(
        f"torch.accelerator.{name}_idx",
        Kind.RENAMED,
        f"torch.accelerator.{name}_index",
        (2, 7),
        deprecated=(2, 7),
        safe=True,
        reference=f"{_DOCS}accelerator.html",
    )
    for name in ("current_device", "set_device")
)

_PINNING = (
    *(
        Api(
            f"torch.Tensor.{name}",
            Kind.DROPPED,
            since=(2, 5),
            deprecated=(2, 5),
            safe=True,
            argument="device",
            position=0,
            note="memory is pinned for the accelerator that the machine has",
            reference=f"{_DOCS}generated/torch.Tensor.{name}.html",
        )
        for name in ("pin_memory", "is_pinned")
    ),
    Api(
        "torch.utils.data.DataLoader",
        Kind.DROPPED,
        since=(2, 9),
        deprecated=(2, 9),
        safe=True,
        argument="pin_memory_device",
        note="memory is pinned for the accelerator that the machine has",
        reference=f"{_DOCS}data.html#memory-pinning",
    ),
)

_PARALLEL = (
    Api(
        f"{_DDP}CPU",
        Kind.RENAMED,
        _DDP,
        (1, 4),
        deprecated=(1, 4),
        safe=True,
        note="it is a deprecated alias",
        reference=f"{_DOCS}generated/{_DDP}.html",
    ),
    Api(
        _DDP,
        Kind.DROPPED,
        since=(1, 0),
        deprecated=(2, 13),
        safe=True,
        argument="broadcast_buffers",
        only=(True,),
        note="buffers are synchronized by default",
        reference=f"{_DOCS}generated/{_DDP}.html",
    ),
    Api(
        _DDP,
        Kind.ARGUMENT,
        "forward_sync_buffers",
        (2, 13),
        deprecated=(2, 13),
        argument="broadcast_buffers",
        only=(False,),
        note="unlike it, `forward_sync_buffers=False` still synchronizes the buffers once, when the module is wrapped",
        reference=f"{_DOCS}generated/{_DDP}.html",
    ),
    Api(
        _DDP,
        Kind.DROPPED,
        since=(1, 1),
        deprecated=(1, 1),
        safe=True,
        argument="check_reduction",
        note="it does nothing",
        reference=f"{_DOCS}generated/{_DDP}.html",
    ),
)

_PROFILER = (
    Api(
        "torch.autograd.profiler.profile",
        Kind.ARGUMENT,
        "use_device",
        (2, 1),
        deprecated=(2, 4),
        safe=True,
        argument="use_cuda",
        value='"cuda"',
        only=(True,),
        reference=f"{_DOCS}autograd.html#profiler",
    ),
    *(
        Api(
            f"torch.profiler.{module}profile",
            Kind.NOTHING,
            since=(1, 8),
            deprecated=(1, 8),
            argument="use_cuda",
            note="list the `activities` to record, such as `torch.profiler.ProfilerActivity.CUDA`",
            reference=f"{_DOCS}profiler.html",
        )
        for module in ("", "profiler.")
    ),
)

_EVENTS = tuple(
    Api(
        f"{PROFILED_EVENT}.{name}",
        Kind.ATTRIBUTE,
        name.replace("cuda", "device"),
        (2, 5),
        deprecated=(2, 5),
        safe=True,
        note="" if averaged else "the averages of `key_averages()` have it no more, and raise an AttributeError",
        reference=f"{_DOCS}profiler.html",
    )
    for name, averaged in (
        ("cuda_time", True),
        ("cuda_time_total", False),
        ("self_cuda_time_total", False),
        ("self_cuda_memory_usage", False),
    )
)
"""Single events still have the old names; averages have lost them, but for the mean, when they got the new ones."""

_TENSOR_TYPES = (
    Api(
        "torch.set_default_tensor_type",
        Kind.NOTHING,
        since=(2, 0),
        topic=Topic.TENSOR_TYPE,
        deprecated=(2, 1),
        note="use `torch.set_default_dtype()` and `torch.set_default_device()`",
        reference=f"{_DOCS}generated/torch.set_default_tensor_type.html",
    ),
    Api(
        "torch.autograd.Variable",
        Kind.NOTHING,
        since=(1, 0),
        topic=Topic.TENSOR_TYPE,
        note="tensors do all that variables did",
        reference=f"{_DOCS}autograd.html#variable-deprecated",
    ),
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
