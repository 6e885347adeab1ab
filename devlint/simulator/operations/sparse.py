"""Sparse tensors on the simulated device: what is asked of them below the dispatcher, and how they are moved."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from devlint.simulator import dispatch, errors, layouts, registration
from devlint.simulator.tensor import host_of

aten = torch.ops.aten
KEYS = ("SparsePrivateUse1", "SparseCUDA", "SparseCsrPrivateUse1", "SparseCsrCUDA")
"""The dispatch keys of sparse tensors on a device."""


def _dense(host: torch.Tensor) -> bool:
    return host.layout is torch.strided


_PROPERTIES: dict[Any, Any] = {
    torch.ops.prim.layout.default: lambda host: host.layout,
    aten.is_contiguous.default: torch.Tensor.is_contiguous,
    aten.is_contiguous.memory_format: lambda host, order: host.is_contiguous(memory_format=order),
    aten.is_strides_like_format.default: lambda host, order: _dense(host) and host.is_contiguous(memory_format=order),
    aten.is_non_overlapping_and_dense.default: _dense,
    aten.sym_stride.default: torch.Tensor.stride,
}
"""What C++ reads from a tensor itself, and asks of the dispatch for a wrapper whose layout or strides are not its own.
torch knows most of them as operators in Python only."""


def _property(op: Any, args: Any, kwargs: Any) -> Any:
    return _PROPERTIES[op](args[0].host, *args[1:], **kwargs)


def _copy(op: Any, args: Any, kwargs: Any) -> Any:
    """Copy indices and values, as ``copy_sparse_to_sparse_`` and ``copy_sparse_compressed_`` of ATen do."""
    target, source = args[:2]
    if not isinstance(source, torch.Tensor) or _dense(target) or _dense(source):
        return dispatch.run(op, args, kwargs)
    blocking = {"non_blocking": bool(args[2]) if len(args) > 2 else kwargs.get("non_blocking", False)}
    host_of(target).copy_(host_of(aten._to_copy.default(source, dtype=target.dtype, device=target.device, **blocking)))
    return target


def _to_copy(op: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """Move indices and values, one after the other."""
    tensor = args[0]
    layout, dtype, place = kwargs.get("layout"), kwargs.get("dtype"), kwargs.get("device")
    if layout is not None and layout != tensor.layout:
        raise errors.error("layout", layouts.title(tensor.layout), layouts.title(layout))
    how = {"device": tensor.device if place is None else place, "non_blocking": kwargs.get("non_blocking", False)}
    *indices, values = [part.detach() for part in layouts.parts(tensor)]
    moved = [aten._to_copy.default(part, **how) for part in indices]
    return layouts.joined(tensor, (*moved, aten._to_copy.default(values, dtype=dtype, **how)))


_MOVING = {"copy_": _copy, "_to_copy": _to_copy}


def _sparse_or(handler: dispatch.Handler, dense: dispatch.Handler) -> dispatch.Handler:
    """``handler`` where a tensor among the first two arguments is sparse, else ``dense``."""

    def chosen(op: Any, args: Any, kwargs: Any) -> Any:
        sparse = any(isinstance(value, torch.Tensor) and not _dense(value) for value in args[:2])
        return (handler if sparse else dense)(op, args, kwargs)

    return chosen


def _nested(op: Any, *args: Any, **kwargs: Any) -> NoReturn:
    layouts.refuse_nested()


def install() -> None:
    """Register what runs operations on sparse tensors; the kernels for dense ones must have been."""
    dispatch.HANDLERS.update(dict.fromkeys(_PROPERTIES, _property))
    library = registration.library()
    for key in KEYS:
        registration.library("_").fallback(lambda op, *args, **kwargs: dispatch.run(op, args, kwargs), key)
        for name, handler in _MOVING.items():
            library.impl(name, registration.kernel(registration.operator(name), handler), key)
    for key in ("NestedTensorPrivateUse1", "NestedTensorCUDA"):
        registration.library("_").fallback(_nested, key)
    for name, handler in _MOVING.items():
        op = registration.operator(name)
        dispatch.HANDLERS[op] = _sparse_or(handler, dispatch.HANDLERS[op])
