"""The texts with which a CUDA build of torch refuses tensors of several devices."""

from __future__ import annotations

from typing import Any

import torch

_TYPES = {
    torch.float64: "Double",
    torch.float32: "Float",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}


def type_name(tensor: torch.Tensor, device: str = "cuda") -> str:
    """What ``Tensor.type()`` says: ``torch.cuda.FloatTensor``, or ``torch.FloatTensor`` on the host."""
    infix = "" if tensor.device.type == "cpu" else f"{device}."
    return f"torch.{infix}{_TYPES.get(tensor.dtype, '')}Tensor"


def iterator(first: torch.device, other: torch.device) -> RuntimeError:
    """TensorIterator's words, which most pointwise operations and reductions go through."""
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {first} and {other}!"
    )


def wrapper(kernel: str, argument: str, device: torch.device, common: torch.device) -> RuntimeError:
    """The words of the code that torch generates around each CUDA kernel, since 2.9."""
    return RuntimeError(
        f"Expected all tensors to be on the same device, but got {argument} is on {device}, different from other "
        f"tensors on {common} (when checking argument in method {kernel})"
    )


def convolution(tensor: torch.Tensor, other: torch.Tensor, role: str) -> RuntimeError:
    """The words of a convolution; ``role`` is ``weight`` or ``bias``."""
    return RuntimeError(
        f"Input type ({type_name(tensor)}) and {role} type ({type_name(other)}) should be the same"
        + (
            " or input should be a MKLDNN tensor and weight is a dense tensor"
            if tensor.device.type == "cpu" and role == "weight"
            else ""
        )
    )


def indices(device: torch.device) -> RuntimeError:
    """The words of indexing where an index is on another device than the CPU or the tensor."""
    return RuntimeError(f"indices should be either on cpu or on the same device as the indexed tensor ({device})")


def lengths(tensor: Any) -> RuntimeError:
    """The words of ``pack_padded_sequence``."""
    return RuntimeError(
        f"'lengths' argument should be a 1D CPU int64 tensor, but got {tensor.dim()}D {tensor.device} "
        f"{_TYPES.get(tensor.dtype, '')} tensor"
    )
