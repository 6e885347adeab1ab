"""Copies and waits that CUDA's operations make inside, so that whoever watches the dispatch key sees them here too."""

from __future__ import annotations

from typing import Any

import torch

from devlint.simulator import checks, dispatch, plans, registration
from devlint.simulator.tensor import SimulatedTensor, host_of, wrap

aten = torch.ops.aten
_MASKS = (torch.bool, torch.uint8)


def _moved(value: Any, device: torch.device) -> Any:
    """The value on the device; a number becomes a 0-dim tensor first."""
    if isinstance(value, (bool, int, float, complex)):
        value = torch.scalar_tensor(value, dtype=torch.tensor(value).dtype)
    if isinstance(value, torch.Tensor) and value.device != device:
        return aten._to_copy.default(value, device=device)
    return value


def _read(tensor: SimulatedTensor) -> Any:
    """The value of a 0-dim tensor, as ``item()`` reads it."""
    return aten._local_scalar_dense.default(tensor)


def _indexed(op: Any, args: Any, kwargs: Any) -> Any:
    """Indexing: masks become indices, for which the host waits; indices of the host are copied to the device."""
    indexed = args[0]
    checks.refuse_mixed(plans.of(op), args, kwargs)
    if not isinstance(indexed, SimulatedTensor) and len(args) < 3:
        return dispatch.run(op, args, kwargs)
    if len(args) > 2 and _fills(indexed, *args[1:]):
        return dispatch.run(op, args, kwargs)
    indices: list[Any] = []
    for entry in args[1]:
        if isinstance(entry, torch.Tensor) and entry.dtype in _MASKS:
            where = entry.nonzero()
            indices += [_moved(where.select(1, axis), indexed.device) for axis in range(entry.dim())]
        else:
            indices.append(_moved(entry, indexed.device))
    value = [_moved(args[2], indexed.device)] if len(args) > 2 else []
    return dispatch.run(op, (indexed, indices, *value, *args[3:]), kwargs)


def _fills(indexed: torch.Tensor, indices: Any, value: torch.Tensor, accumulate: bool = False, *rest: Any) -> bool:
    """Whether the places of one mask, which is there, are filled with one number of the host: that needs no indices."""
    given = [index for index in indices if index is not None]
    return (
        not accumulate
        and value.numel() == 1
        and not isinstance(value, SimulatedTensor)
        and len(given) == 1
        and given[0].dtype in _MASKS
        and given[0].device == indexed.device
    )


def _where(op: Any, args: Any, kwargs: Any) -> Any:
    """``where`` copies 0-dim tensors of the host to the device."""
    device = next((value.device for value in args if isinstance(value, SimulatedTensor)), None)
    if device is not None:
        args = [value if isinstance(value, torch.Tensor) and value.dim() else _moved(value, device) for value in args]
    return dispatch.run(op, args, kwargs)


def _filling(scalar: Any) -> dispatch.Handler:
    """What fills with a 0-dim tensor of the device: it is read, and ``scalar`` fills with the number."""

    def fill(op: Any, args: Any, kwargs: Any) -> Any:
        *rest, value = args
        if not isinstance(value, SimulatedTensor) or value.dim():
            return dispatch.run(op, args, kwargs)
        if plans.of(op).name in checks.SPECIAL:  # its kernel looks before it reads
            checks.refuse_mixed(plans.of(op), args, kwargs)
        return dispatch.run(scalar, (*rest, _read(value)), {})

    return fill


def _foreach_copy(op: Any, args: Any, kwargs: Any) -> Any:
    """``_foreach_copy_`` copies one after the other where the devices differ."""
    if len({tensor.device for tensor in (*args[0], *args[1])}) < 2:
        return dispatch.run(op, args, kwargs)
    for target, source in zip(args[0], args[1], strict=True):
        aten.copy_.default(target, source, *args[2:])
    return None


def _repeat_interleave(op: Any, args: Any, kwargs: Any) -> Any:
    """``repeat_interleave`` reads the size of its result and whether a number is negative, unless told the size."""
    result = dispatch.run(op, args, kwargs)
    if isinstance(args[0], SimulatedTensor) and kwargs.get("output_size") is None and args[0].numel():
        for host in (args[0].host.sum(), (args[0].host >= 0).all()):
            _read(wrap(host, args[0].device.index))
    return result


def _bincount(op: Any, args: Any, kwargs: Any) -> Any:
    """``bincount`` copies the smallest number to the host and reads the largest one."""
    result = dispatch.run(op, args, kwargs)
    counted = args[0]
    if isinstance(counted, SimulatedTensor) and counted.numel():
        if counted.dtype != torch.uint8:
            aten._to_copy.default(wrap(counted.host.min(), counted.device.index), device=torch.device("cpu"))
        _read(wrap(counted.host.max(), counted.device.index))
    return result


def _packed(op: Any, args: Any, kwargs: Any) -> Any:
    """``_pack_padded_sequence``: the batch sizes stay on the host."""
    checks.refuse_mixed(plans.of(op), args, kwargs)
    packed, sizes = dispatch.run(op, args, kwargs)
    return packed, host_of(sizes)


def _ctc_loss(op: Any, args: Any, kwargs: Any) -> Any:
    """The lengths of a CTC loss are read on the host."""
    cpu = torch.device("cpu")
    lengths = [_moved(value, cpu).tolist() for value in args[2:4]]
    return aten.ctc_loss.IntList(*args[:2], *lengths, *args[4:], **kwargs)


def _one_hot(op: Any, args: Any, kwargs: Any) -> Any:
    """CUDA scatters ones, and leaves it to that to find out whether there are classes that are too large."""
    classes, given = args[0], args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if not classes.numel() or classes.dtype != torch.int64 or given == 0 or given < -1:
        return op._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
    count = int(classes.max().item()) + 1 if given == -1 else given
    return classes.new_zeros([*classes.shape, count]).scatter_(-1, classes.unsqueeze(-1), 1)


HANDLERS: dict[str, dispatch.Handler] = {
    **dict.fromkeys(
        "index.Tensor _unsafe_index.Tensor index_put index_put_ _unsafe_index_put _index_put_impl_".split(), _indexed
    ),
    "where.self": _where,
    "masked_fill_.Tensor": _filling(aten.masked_fill_.Scalar),
    "index_fill_.int_Tensor": _filling(aten.index_fill_.int_Scalar),
    "_foreach_copy_": _foreach_copy,
    "repeat_interleave.Tensor": _repeat_interleave,
    "bincount": _bincount,
    "_pack_padded_sequence": _packed,
    # these call others that wait for the device
    **dict.fromkeys(
        "masked_fill.Tensor index_fill.int_Tensor allclose _linalg_check_errors".split(), dispatch.taken_apart
    ),
}
"""By operation, with its overload."""


def install() -> None:
    """Let the dispatcher of simulated tensors use the handlers."""
    for name, handler in HANDLERS.items():
        registration.handle(name, handler)
    # autograd takes these apart before they get to the dispatcher
    registration.handle("ctc_loss.Tensor", _ctc_loss, "AutogradPrivateUse1")
    registration.handle("one_hot", _one_hot, "AutogradPrivateUse1")
