"""The kernels at the dispatch key of the simulated device, where the recorder replaces them by its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch

from devlint.simulator import devices, dispatch, errors, layouts, pinning, plans, registration
from devlint.simulator.tensor import SimulatedTensor, host_of, wrap

aten = torch.ops.aten
on_crossing: Callable[[torch.Tensor, bool], None] | None = None
"""Told of each copy between host and device: the tensor of the host, and whether it was not to be waited for."""


def copy_(target: torch.Tensor, source: Any, non_blocking: bool = False) -> torch.Tensor:
    """``aten::copy_`` with a simulated tensor on either side or on both; the source may be a number."""
    if not isinstance(source, torch.Tensor):
        # a boxed call hands wrapped numbers over as what they wrap
        source = torch.scalar_tensor(source, dtype=_NUMBERS[type(source)], device="cpu")
    crosses = isinstance(target, SimulatedTensor) != isinstance(source, SimulatedTensor)
    if crosses and on_crossing is not None:
        on_crossing(source if isinstance(target, SimulatedTensor) else target, bool(non_blocking))
    if crosses and _needs_parts(target, source):
        _copy_by_parts(target, source, non_blocking)
    else:
        host_of(target).copy_(host_of(source))
    return target


_NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


def _needs_parts(target: torch.Tensor, source: torch.Tensor) -> bool:
    """Whether CUDA could not copy the memory as it is: the dtype changes, or there are gaps, or another order."""
    target, source = host_of(target), host_of(source)
    if target.dtype != source.dtype or target.size() != source.size():  # a lazy parameter refuses to tell its `shape`
        return target.numel() > 0
    order = sorted(range(target.dim()), key=target.stride, reverse=True)
    return not (target.permute(order).is_contiguous() and source.permute(order).is_contiguous())


def _copy_by_parts(target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> None:
    """Copy as CUDA does what it cannot at once: only dense memory crosses, and the dtype changes on one side.

    That is the device for an asynchronous copy, to save the host's time, else the host, to save the device's memory.
    """
    converts_first = isinstance(source, SimulatedTensor) == bool(non_blocking)
    end = host_of(target)
    dtype = target.dtype if converts_first else source.dtype
    crossing = _like(source, host_of(source).to(dtype).expand_as(end).contiguous())
    landing = target
    if not end.is_contiguous() or end.dtype != dtype:
        landing = _like(target, torch.empty_like(end, dtype=dtype, memory_format=torch.contiguous_format))
    aten.copy_.default(landing, crossing, non_blocking)
    if landing is not target:
        end.copy_(host_of(landing))


def _like(tensor: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A tensor of the host, taken to where ``tensor`` is."""
    return wrap(value, tensor.device.index) if isinstance(tensor, SimulatedTensor) else value


def local_scalar_dense(tensor: SimulatedTensor) -> Any:
    """``aten::_local_scalar_dense``: ``item()`` and all that ends there."""
    return aten._local_scalar_dense.default(host_of(tensor))


def to_copy(
    tensor: torch.Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> torch.Tensor:
    """``aten::_to_copy``: an empty tensor at the target, then ``copy_``."""
    if layout is not None and layout != tensor.layout:
        raise errors.error("layout", layouts.title(tensor.layout), layouts.title(layout))
    place = tensor.device if device is None else device
    try:
        empty = torch.empty_like(host_of(tensor), dtype=dtype, memory_format=memory_format or torch.preserve_format)
    except RuntimeError as error:
        raise dispatch.out_of_memory(place, error) or error from None
    if place.type == "meta":
        return empty.to("meta")
    if place.type == "cpu":
        # torch allocates pinned memory for a copy to the host that may be asynchronous.
        target = pinning.mark(empty) if non_blocking or pin_memory else empty
    else:
        index = devices.current() if place.index is None else place.index
        target = wrap(empty, devices.check_index(index))
    return aten.copy_.default(target, tensor, non_blocking)  # type: ignore[no-any-return]  # ops are untyped


_WAITING = ("nonzero", "_unique2", "unique_dim", "unique_consecutive", "masked_select", "equal")
"""Operations whose result the host has to wait for, since its shape or value depends on the data."""

SPARSE = ("_coalesce",)
"""The same of sparse tensors, whose kernels are at a key of their own."""

KERNELS: dict[str, Callable[..., Any]] = {
    "copy_": copy_,
    "_local_scalar_dense": local_scalar_dense,
    "_pin_memory": pinning.pin,
    **{name: registration.kernel(getattr(aten, name).default) for name in (*_WAITING, *SPARSE)},
}
"""The kernels by name of the operation, without a key set argument; ``_pin_memory`` is at the CPU key, those of
``SPARSE`` are at that of sparse tensors.

Whoever puts a kernel of his own in the place of one of these calls the original through this table.  torch may go on
calling his after its library is destroyed, so it has to be able to pass on.
"""

ROUTED = tuple(getattr(aten, name).default for name in KERNELS if name != "_pin_memory")
"""The operations that reach their kernel through the dispatch key, so that whoever replaces it there sees them."""


def route(op: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation's kernel at the dispatch key of the device."""
    with torch._C._DisableTorchDispatch():
        return op(*args, **kwargs)


MAKERS = ("empty.memory_format", "empty_strided", "tril_indices", "triu_indices", "_efficientzerotensor")
"""What makes tensors on a device: a torch built for CUDA has kernels for them, so that the fallback is not asked."""


def install() -> None:
    """Register the kernels."""
    library = registration.library()
    for key in ("PrivateUse1", "CUDA"):
        registration.library("_").fallback(_fallback, key)
        library.impl("_to_copy", to_copy, key)
    for key in ("QuantizedPrivateUse1", "QuantizedCUDA"):
        registration.library("_").fallback(_made_quantized, key)
    for name, kernel in KERNELS.items():
        key = "SparsePrivateUse1" if name in SPARSE else "PrivateUse1"
        library.impl(name, kernel, "CPU" if name == "_pin_memory" else key)
    for name in plans.NATIVE:
        library.impl(name, registration.kernel(registration.operator(name)), "PrivateUse1")
    library.impl("is_pinned", pinning.is_pinned, "CPU")
    library.impl("is_pinned", lambda tensor, device=None: False, "PrivateUse1")
    # one without memory would be computed with as if it had some, since below autograd nothing looks for its zeros
    dispatch.HANDLERS[aten._efficientzerotensor.default] = lambda op, args, kwargs: dispatch.run(
        aten.zeros.default, args, kwargs
    )
    for name in MAKERS:
        op = registration.operator(name)
        library.impl(name, registration.kernel(op, dispatch.HANDLERS.get(op)), "CUDA")
    for op in ROUTED:
        dispatch.HANDLERS[op] = route
    dispatch.HANDLERS[aten._to_copy.default] = lambda op, args, kwargs: to_copy(*args, **kwargs)
    dispatch.HANDLERS[aten.is_pinned.default] = lambda op, args, kwargs: False


def _made_quantized(op: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """What makes quantized tensors, of a dtype that it is given or of that of another."""
    given = [one.dtype if isinstance(one, torch.Tensor) else one for one in (*args, *kwargs.values())]
    layouts.refuse_quantized(next(one for one in given if isinstance(one, torch.dtype)))


def _fallback(op: Any, *args: Any, **kwargs: Any) -> Any:
    return dispatch.dispatch(op, args, kwargs)
