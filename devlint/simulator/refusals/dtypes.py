"""Which dtypes CUDA's kernels take, where they are others than the host's; by a table made of torch's own lists.

`python -m tools.make_dtype_table` writes `dtype_table.json` from `torch.testing`: what CUDA refuses is refused in its
words, and what only CUDA has is computed in the next wider dtype and rounded.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

Compute = Callable[..., Any]
Places = Iterable[tuple[int, str]]
"""Positions and names of parameters."""
TABLE = Path(__file__).with_name("dtype_table.json")
KERNELS = {
    **dict.fromkeys(("addmm", "mm", "addbmm"), "addmm_cuda"),
    **dict.fromkeys(("baddbmm", "bmm", "_trilinear"), "baddbmm_cuda"),
    **dict.fromkeys(("addmv", "mv"), "addmv_impl_cuda"),
    "dot": "dot",
    "vdot": "vdot",
    "histc": "histc",
    "linalg_vector_norm": "norm_cuda",
    "avg_pool2d": "avg_pool2d_out_cuda_frame",
    "avg_pool3d": "avg_pool3d_out_cuda",
    "max_pool2d_with_indices": "max_pool2d_with_indices_out_cuda_frame",
    "max_pool3d_with_indices": "max_pool3d_with_indices_out_frame",
    "upsample_bilinear2d": "upsample_bilinear2d_out_frame",
    "upsample_bicubic2d": "upsample_bicubic2d_out_frame",
    "scatter_reduce": "cuda_scatter_gather_base_kernel_func",
}
"""What CUDA's kernels call themselves when they refuse a dtype, as in the sources of torch (`AT_DISPATCH...` in
aten/src/ATen/native/cuda); any other is taken to be called `<operation>_cuda`."""

_WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.complex32: torch.complex64,
    torch.bool: torch.uint8,
    torch.complex64: torch.complex128,
    **dict.fromkeys((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64), torch.float64),
}
_SLOW = {"convolution_backward": "float16"}
"""What the host computes a hundred times as slowly as in the wider dtype, in which CUDA's kernels accumulate, too."""
_HALVES = {torch.float32: torch.float16, torch.complex64: torch.complex32}
_ROUNDED = {torch.float16: _HALVES, torch.complex32: _HALVES}
_WIDENED = "widened"
_TEXT = re.compile(r"^\"\w+\" not implemented for '(\w+)'")


def refusal(name: str, dtype: str) -> str:
    """What CUDA says of a dtype (spelled as in torch's errors, such as `Long`) that an operation does not take."""
    if name == "convolution":  # aten/src/ATen/cudnn/Types.cpp
        return f"getCudnnDataTypeFromScalarType() not supported for {dtype}"
    return f"\"{KERNELS.get(name, f'{name}_cuda')}\" not implemented for '{dtype}'"


def key_of(name: str, arguments: Iterable[Any]) -> str:
    """What the table calls an operation: in place or not, whatever the overload, with the kind of a reduction."""
    words = [value for value in arguments if isinstance(value, str)]
    return " ".join([name.rstrip("_") or name, *words])


def dtype_of(arguments: Iterable[Any]) -> torch.dtype | None:
    """The dtype of the first tensor among the arguments, by which kernels are chosen."""
    for value in arguments:
        if isinstance(value, torch.Tensor):
            return value.dtype
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
            return value[0].dtype
    return None


def wrapped(compute: Compute, name: str, written: Places) -> Compute:
    """What computes an operation of that name on the host with CUDA's dtypes; `compute` itself if they are the host's.

    `written` are the arguments that it writes.
    """
    base = name.rstrip("_") or name
    table = _tables().get(base)
    if table is None:
        return compute

    def computing(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else None
        dtype = first.dtype if type(first) is torch.Tensor else dtype_of((*args, *kwargs.values()))
        if dtype in table:
            found = table[dtype].get(key_of(name, (*args, *kwargs.values())))
            if found == _WIDENED:
                return widened(compute, dtype, written, *args, **kwargs)  # type: ignore[arg-type]  # it is in the table
            if found is not None:
                raise (RuntimeError if found.startswith("getCudnn") else NotImplementedError)(found)
        try:
            return compute(*args, **kwargs)
        except NotImplementedError as error:
            text = _TEXT.match(str(error))  # the host refuses it, too
            if text is None:
                raise
            raise NotImplementedError(refusal(base, text[1])) from None

    return computing


def widened(compute: Compute, dtype: torch.dtype, written: Places, *args: Any, **kwargs: Any) -> Any:
    """Compute what is given in a dtype in the next wider one, and round the result."""
    wider, rounded = _WIDER[dtype], _ROUNDED.get(dtype) or {_WIDER[dtype]: dtype}

    def widen(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(wider) if value.dtype == dtype else value
        return wider if value is dtype else value

    wide_args, wide_kwargs = pytree.tree_map(widen, (args, kwargs))
    out = compute(*wide_args, **wide_kwargs)
    for position, name in written:
        given = position < len(args)
        target, source = (args[position], wide_args[position]) if given else (kwargs[name], wide_kwargs[name])
        if target is not source:
            target.resize_(source.shape).copy_(source)
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(rounded.get(tensor.dtype, tensor.dtype)), out)


@functools.cache
def _tables() -> dict[str, dict[torch.dtype | None, dict[str, str]]]:
    """By operation, dtype and key: the text of a refusal, or `widened`."""
    rows = json.loads(TABLE.read_text(encoding="utf-8"))
    rows[_WIDENED] |= _SLOW
    tables: dict[str, dict[torch.dtype | None, dict[str, str]]] = {}
    for kind in ("refused", _WIDENED):
        for key, names in rows[kind].items():
            name = key.partition(" ")[0]
            for spelled in names.split():
                text = kind if kind == _WIDENED else refusal(name, _SCALAR_TYPES[spelled])
                tables.setdefault(name, {}).setdefault(getattr(torch, spelled), {})[key] = text
    return tables


_SCALAR_TYPES = {
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "bool": "Bool",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "Float",
    "float64": "Double",
    "complex32": "ComplexHalf",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}
"""What torch's errors call the dtypes."""
