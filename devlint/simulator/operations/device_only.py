"""What devices compute and the host does not: FFTs in half precision, `nansum` of complex numbers, wider results."""

from __future__ import annotations

from typing import Any

import torch

from devlint.simulator import dispatch, registration
from devlint.simulator.refusals.dtypes import dtype_of, widened
from devlint.simulator.tensor import host_of, index_of, wrap

aten = torch.ops.aten
_HALVES = (torch.float16, torch.complex32)
_FUNCTIONS = tuple(
    f"fft_{kind}{shape}" for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for shape in ("", "2", "n")
)
_widening: list[str] = []
"""The functions that are computed in a wider dtype right now."""


def _transform(op: Any, args: Any, kwargs: Any) -> Any:
    """A function of `torch.fft`, which takes half precision on CUDA only."""
    dtype = dtype_of(args)

    def compute(*args: Any, **kwargs: Any) -> Any:
        return op._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)

    if dtype not in _HALVES or "out" in kwargs:
        return compute(*args, **kwargs)
    _widening.append(op.name())
    try:
        return widened(compute, dtype, (), *args, **kwargs)
    finally:
        _widening.pop()


def _kernel(op: Any, args: Any, kwargs: Any) -> Any:
    """One of the transforms that the functions are made of; cuFFT's own condition is in CuFFTPlanCache.h of torch."""
    given, dims = args[0], args[1]
    if _widening or given.dtype in _HALVES:
        sizes = [given.shape[dim] for dim in dims]
        if op is aten._fft_c2r.default and sizes:
            sizes[-1] = args[3]
        if any(size & (size - 1) for size in sizes):
            raise RuntimeError(
                "cuFFT only supports dimensions whose sizes are powers of two when computing in half precision, but "
                f"got a signal size of{sizes}"
            )
    return dispatch.run(op, args, kwargs)


def _nansum(op: Any, args: Any, kwargs: Any) -> Any:
    summed, *rest = args
    if not summed.dtype.is_complex:
        return dispatch.run(op, args, kwargs)
    wide = host_of(summed).to(torch.promote_types(summed.dtype, torch.complex64))
    zeros = aten.isnan.default(wide)
    clean = aten.masked_fill.Scalar(summed, wrap(zeros, index_of(summed)), 0)
    plain = aten.sum.IntList_out if "out" in kwargs else aten.sum.dim_IntList
    return dispatch.dispatch(plain, (clean, *(rest or [None])), kwargs)


def _product(op: Any, args: Any, kwargs: Any) -> Any:
    """A product of matrices whose result is of a wider dtype, such as ``mm(a, b, out_dtype=torch.float32)``."""
    *factors, dtype = args
    plain = getattr(aten, op._schema.name.removeprefix("aten::"))
    plain = plain.out if "out" in kwargs else plain.default
    return dispatch.dispatch(plain, tuple(aten._to_copy.default(factor, dtype=dtype) for factor in factors), kwargs)


def _softmax(op: Any, args: Any, kwargs: Any) -> Any:
    """A softmax of half precision whose result is of single precision: the kernel converts what it reads."""
    given, dim, half_to_float = args
    if half_to_float and given.dtype is torch.float16:
        return dispatch.run(op, (aten._to_copy.default(given, dtype=torch.float32), dim, False), kwargs)
    return dispatch.run(op, args, kwargs)


def _softmax_backward(op: Any, args: Any, kwargs: Any) -> Any:
    """The gradient of such a softmax, which is of half precision again."""
    gradient, output, dim, dtype = args
    if dtype is torch.float16 and gradient.dtype is torch.float32:
        return aten._to_copy.default(dispatch.run(op, (gradient, output, dim, gradient.dtype), kwargs), dtype=dtype)
    return dispatch.run(op, args, kwargs)


def install() -> None:
    """Register the handlers."""
    for name in ("_softmax", "_log_softmax"):
        registration.handle(name, _softmax)
        registration.handle(f"{name}_backward_data", _softmax_backward)
    for name in _FUNCTIONS:
        registration.handle(name, _transform, "AutogradPrivateUse1")
    for name in ("_fft_c2c", "_fft_c2r", "_fft_r2c"):
        registration.handle(name, _kernel)
    for name in ("nansum", "nansum.out"):
        registration.handle(name, _nansum)
    for name in ("mm", "bmm", "addmm", "baddbmm"):
        for overload in ("dtype", "dtype_out"):
            registration.handle(f"{name}.{overload}", _product)
