"""What torch's interface for devices does with them: what only asks, what chooses one, what initializes CUDA."""

from __future__ import annotations

import re

from devlint.flow.catalog.concepts import IS_AVAILABLE

AUTOCAST = "torch.amp.autocast"
COMPILE = "torch.compile"
TYPES_ONLY = frozenset(
    {"torch.amp.GradScaler", "torch.amp.custom_fwd", "torch.amp.custom_bwd", "torch.amp.is_autocast_available"}
)
"""What is told a type of devices to work for, and not where to be."""
PLACES_NOTHING = TYPES_ONLY | {AUTOCAST, "torch.get_autocast_dtype", "torch.is_autocast_enabled", "dict"}
"""What may be asked for any type of device, or only holds it."""
POSITIONAL_DEVICE = frozenset(
    {"torch.device", "torch.set_default_device", AUTOCAST, "torch.Generator", "torch.cuda.device"}
)
"""What takes a device as its first argument."""
MODULES = frozenset({"torch.cuda", "torch.cpu", "torch.mps", "torch.xpu"})
"""The modules of devices, which themselves are none."""
TENSOR_INDEX = "torch.Tensor.get_device"
"""What returns the index of an accelerator, -1 on the CPU."""
OF_CUDA = "torch.cuda."
"""How everything begins that knows no accelerator but CUDA."""
CUDA_TENSOR_TYPE = re.compile(r"torch\.cuda\.(?:sparse\.)?(\w*)Tensor")
"""The names of types of tensors that are made on CUDA."""
CUDA_TYPE_NAME = re.compile(r"\bcuda\.\w*Tensor\b")
"""How a file speaks of one of them, whatever it calls torch."""
CURRENT_ACCELERATOR = "torch.accelerator.current_accelerator"
OTHER_BACKENDS = re.compile(
    r"\b(?:torch\.(?:xpu|mps|npu|hpu|mlu|backends\.mps|accelerator)\.|[\"'](?:xpu|mps|npu|hpu|mlu)\b)"
)
"""How code names the accelerators that are not CUDA's."""
CUDA_ASKED = frozenset({IS_AVAILABLE, "torch.cuda.device_count"})
"""What asks whether CUDA is there."""
STREAMS = frozenset({"torch.Stream", "torch.accelerator.current_stream"})
EVENT = "torch.Event"
CUDA_SCOPE = "torch.cuda.device"
"""A context manager that is often taken for a device."""
CUDA_CHOOSERS = frozenset({"torch.cuda.set_device", CUDA_SCOPE})
"""What makes a GPU the current one by its number."""
_LAZY = frozenset(
    f"torch.cuda.{name}"
    for name in """manual_seed manual_seed_all is_initialized empty_cache seed seed_all device_count memory_stats
    memory_allocated max_memory_allocated memory_reserved max_memory_reserved""".split()
)
"""What waits until CUDA is used, does nothing before, or asks NVML, which the variables do not bind for good."""


def initializes_cuda(path: str) -> bool:
    """Whether a call asks the driver for GPUs."""
    return path.startswith(OF_CUDA) and path not in _LAZY and not path.startswith("torch.cuda.amp.")


EXPORTS = ("onnx.export", "onnx.dynamo_export", "jit.trace", "jit.trace_module", "export.export")
"""How the functions of torch end that record what a network does, for another program to do."""
