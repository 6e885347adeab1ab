"""The texts with which a CUDA build of torch refuses tensors of several devices."""

from __future__ import annotations

import functools
from typing import Any

import torch

from devlint.simulator import layouts

TEXTS = {
    "iterator": "Expected all tensors to be on the same device, but found at least two devices, {} and {}!",
    "wrapper": "Expected all tensors to be on the same device, but got {} is on {}, different from other tensors on {}"
    " (when checking argument in method {})",
    "convolution": "Input type ({}) and {} type ({}) should be the same",
    "convolution on the host": "Input type ({}) and weight type ({}) should be the same or input should be a MKLDNN "
    "tensor and weight is a dense tensor",
    "indices": "indices should be either on {} or on the same device as the indexed tensor ({})",
    "lengths": "'lengths' argument should be a 1D CPU int64 tensor, but got {}D {} {} tensor",
    "masked_fill of the host": "masked_fill_: Expected inputs to be on same device",
    "masked_fill": "expected self and mask to be on the same device, but got mask on {} and self on {}",
    "gradient": "invalid gradient at index {} - expected device {} but got {}",
    "pinned": "Only dense CPU tensors can be pinned",
    "layout": "to(options) doesn't support converting to a different layout, but got self.layout being {} and "
    "options.layout set as {}",
    "mode": "expected device '{}' but got '{}' for {} output",
    "rnn": "Input and {} tensors are not at the same device, found input tensor at {} and {} tensor at {}",
}
"""The texts of torch 2.13, with gaps.

Every one is in the library of a CPU build too (`tests/simulator/test_error_texts.py` looks), since the code that raises
it is shared by all devices.  Which names stand in the gaps is another matter: the names of kernels are made as torchgen
makes them, and that cuDNN takes a convolution or a batch norm is inferred from torch's source.
"""


def error(name: str, *gaps: object) -> RuntimeError:
    """The exception with the text of this name, its gaps filled in."""
    return RuntimeError(TEXTS[name].format(*gaps))


_Accelerator: Any = getattr(torch, "AcceleratorError", RuntimeError)
_CALL = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)


def of_driver(code: int, words: str, hint: str) -> Exception:
    """What a call of CUDA raises that failed with this code (c10/cuda/CUDAException.cpp): its words and a hint."""
    error = _Accelerator(f"CUDA error: {words}\n{hint}\n{_CALL}")
    error.error_code = code
    return error  # type: ignore[no-any-return]  # an exception


def no_kernel(operation: str, kind: str) -> NotImplementedError:
    """What the dispatcher says where CUDA has no kernel for tensors of a kind (``plans.KINDS``)."""
    return NotImplementedError(f"Could not run '{operation}' with arguments from the '{kind}CUDA' backend.")


def type_name(tensor: torch.Tensor) -> str:
    """What ``Tensor.type()`` says: ``torch.cuda.FloatTensor``, or ``torch.FloatTensor`` on the host."""
    place = "" if tensor.device.type == "cpu" else "cuda."
    if tensor.layout in layouts.COMPRESSED:
        raise RuntimeError(f"Unimplemented backend SparseCsr{'CUDA' if place else 'CPU'}")
    return f"torch.{place}{'sparse.' if tensor.is_sparse else ''}{legacy_name(tensor.dtype)}"


@functools.cache
def legacy_name(dtype: torch.dtype) -> str:
    """The name of the class that tensors of a dtype once had: ``FloatTensor``."""
    return torch.empty(0, dtype=dtype, device="cpu").type().rpartition(".")[2]


def convolution(tensor: torch.Tensor, other: torch.Tensor, role: str) -> RuntimeError:
    """What a convolution says of its input and its ``weight`` or ``bias``."""
    if tensor.device.type == "cpu" and role == "weight":
        return error("convolution on the host", type_name(tensor), type_name(other))
    return error("convolution", type_name(tensor), role, type_name(other))
