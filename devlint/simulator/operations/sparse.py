"""Sparse and nested tensors on the simulated device: what C++ code asks of them, and how they are moved."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from devlint.simulator import devices, dispatch, errors, layouts, registration
from devlint.simulator.layouts import is_dense
from devlint.simulator.tensor import SimulatedTensor, host_of

aten = torch.ops.aten
KEYS = ("SparsePrivateUse1", "SparseCUDA", "SparseCsrPrivateUse1", "SparseCsrCUDA")
"""The dispatch keys of sparse tensors on a device."""


_PROPERTIES: dict[Any, Any] = {
    torch.ops.prim.layout.default: lambda host: host.layout,
    aten.is_contiguous.default: torch.Tensor.is_contiguous,
    aten.is_contiguous.memory_format: lambda host, order: host.is_contiguous(memory_format=order),
    aten.is_strides_like_format.default: lambda host, order: is_dense(host) and host.is_contiguous(memory_format=order),
    aten.is_non_overlapping_and_dense.default: is_dense,
    aten.sym_stride.default: torch.Tensor.stride,
    aten.dim.default: torch.Tensor.dim,
    aten.sym_size.default: layouts.sizes,
    aten.sym_numel.default: torch.Tensor.numel,
    aten.sym_storage_offset.default: torch.Tensor.storage_offset,
    aten._nested_tensor_size.default: torch.Tensor._nested_tensor_size,
    aten._nested_tensor_strides.default: torch.Tensor._nested_tensor_strides,
    aten._nested_tensor_storage_offsets.default: torch.Tensor._nested_tensor_storage_offsets,
}
"""What C++ reads from a tensor itself, and asks of the dispatch for a wrapper whose layout or strides are not its own.
torch knows most of them as operators in Python only."""


def _property(op: Any, args: Any, kwargs: Any) -> Any:
    return _PROPERTIES[op](args[0].host, *args[1:], **kwargs)


def _copy(op: Any, args: Any, kwargs: Any) -> Any:
    """Copy indices and values, as ``copy_sparse_to_sparse_`` and ``copy_sparse_compressed_`` of ATen do."""
    target, source = args[:2]
    if not isinstance(source, torch.Tensor) or is_dense(target) or is_dense(source):
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
_COALESCING = "mm mv addmm _sparse_addmm bmm hspmm _sparse_sparse_matmul _sparse_sum_backward".split()
"""Operations whose kernels for CUDA begin by coalescing what is not, for which the host waits; those of the host need
not (aten/src/ATen/native/sparse/cuda/SparseCUDATensorMath.cu)."""


def _computed(op: Any, args: Any, kwargs: Any) -> Any:
    """What runs any operation by then: somebody may watch it."""
    return dispatch.run(op, args, kwargs)


def _after_coalescing(handler: dispatch.Handler) -> dispatch.Handler:
    """``handler``, given sparse tensors with one entry for each place."""

    def run(op: Any, args: Any, kwargs: Any) -> Any:
        if any(map(_has_doubles, args)):
            args = [_coalesced(value) for value in args]
        elif op is aten.mm.default and not _is_coo(args[0]) and _is_coo(args[1]):
            # it computes the product of the transposed matrices, and what is transposed is out of order
            args = args[0], _coalesced(args[1].transpose(0, 1)).transpose(0, 1)
        return handler(op, args, kwargs)

    return run


def _coalesced(value: Any) -> Any:
    return aten._coalesce.default(value) if _has_doubles(value) else value


def _has_doubles(value: Any) -> bool:
    """Whether several entries of a sparse tensor may be for one place."""
    return _is_coo(value) and not host_of(value).is_coalesced() and host_of(value)._nnz() > 1


def _is_coo(value: Any) -> bool:
    return isinstance(value, SimulatedTensor) and value.layout is torch.sparse_coo


def _sparse_or(handler: dispatch.Handler, dense: dispatch.Handler) -> dispatch.Handler:
    """``handler`` where a tensor among the first two arguments is sparse, else ``dense``."""

    def chosen(op: Any, args: Any, kwargs: Any) -> Any:
        sparse = any(isinstance(value, torch.Tensor) and not is_dense(value) for value in args[:2])
        return (handler if sparse else dense)(op, args, kwargs)

    return chosen


def _from_jagged(op: Any, args: Any, kwargs: Any) -> NoReturn:
    layouts.refuse_nested()


def _from_list(op: Any, args: Any, kwargs: Any) -> Any:
    """Its options are given by position."""
    tensors, *given = args
    names = [argument.name for argument in op._schema.arguments[1:]]
    return dispatch.run(op, (tensors,), {**dict(zip(names, given, strict=False)), **kwargs})


def _run(op: Any, *args: Any, **kwargs: Any) -> Any:
    tensors = [value for value in args if isinstance(value, torch.Tensor) and not isinstance(value, SimulatedTensor)]
    if any(tensor.is_nested and tensor.device.type == devices.NAME for tensor in tensors):
        layouts.refuse_nested()  # C++ code has made one by itself
    return dispatch.dispatch(op, args, kwargs)


def _run_sparse(op: Any, *args: Any, **kwargs: Any) -> Any:
    for value in args:
        if isinstance(value, torch.Tensor) and not isinstance(value, SimulatedTensor) and value.device.type != "cpu":
            layout = layouts.title(value.layout)
            raise NotImplementedError(
                f"devlint does not simulate {op.name()} for a tensor of layout {layout} made in C++"
            )
    return dispatch.run(op, args, kwargs)


def install() -> None:
    """Register what runs operations on sparse tensors; the kernels for dense ones must have been."""
    dispatch.HANDLERS.update(dict.fromkeys(_PROPERTIES, _property))
    library = registration.library()
    for key in KEYS:
        registration.library("_").fallback(_run_sparse, key)
        for name, handler in _MOVING.items():
            library.impl(name, registration.kernel(registration.operator(name), handler), key)
    for key in ("NestedTensorPrivateUse1", "NestedTensorCUDA"):
        registration.library("_").fallback(_run, key)
    registration.handle("_nested_tensor_from_tensor_list", _from_list)
    registration.handle("_nested_view_from_jagged", _from_jagged)
    for name, handler in _MOVING.items():
        op = registration.operator(name)
        dispatch.HANDLERS[op] = _sparse_or(handler, dispatch.HANDLERS[op])
    for name in _COALESCING:
        op = registration.operator(name)
        if op is not None:
            dispatch.HANDLERS[op] = _after_coalescing(dispatch.HANDLERS.get(op, _computed))
