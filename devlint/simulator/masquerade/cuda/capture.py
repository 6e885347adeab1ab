"""Whether a CUDA graph is being captured, and what may not be done meanwhile."""

from __future__ import annotations

from typing import Any

import torch

_TEXTS = {
    "wait": "CUDA error: operation not permitted when stream is capturing\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.",
    "end": "CUDA error: operation failed due to a previous error during capture",
    "pageable": "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. "
    "Please use tensor.pin_memory() or allocate the tensor with pin_memory=True.",
}
"""The texts of `cudaErrorStreamCaptureUnsupported` and `cudaErrorStreamCaptureInvalidated` as torch gives them, and of
the copy in ATen/native/cuda/Copy.cu."""
_streams: list[Any] = []
"""The stream on which a graph is being captured, if any: there can be one capture in a process."""
_invalid = False


def active(stream: Any = None) -> bool:
    """Whether a graph is being captured, on that stream if one is given."""
    return bool(_streams) and (stream is None or _streams[-1] == stream)


def begin(stream: Any) -> None:
    """A capture begins; raises as :func:`refuse` if there is another."""
    global _invalid
    refuse()
    _streams.append(stream)
    _invalid = False


def end() -> None:
    """The capture ends; raises ``AcceleratorError`` if something was refused in it."""
    _streams.pop()
    if _invalid:
        raise torch.AcceleratorError(_TEXTS["end"])


def refuse(what: str = "wait") -> None:
    """Raise what CUDA raises of a wait for the device, if a graph is being captured; that graph is lost."""
    global _invalid
    if _streams:
        _invalid = True
        raise (RuntimeError if what == "pageable" else torch.AcceleratorError)(_TEXTS[what])
