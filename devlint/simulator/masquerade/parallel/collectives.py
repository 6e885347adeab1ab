"""What moves tensors between the devices of one process: the C functions under `DataParallel` and `torch.cuda.nccl`.

Pieces that are scattered and gathered are copied by ``copy_``, as by torch; what NCCL moves goes past the dispatcher
there, and here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator import devices
from devlint.simulator.tensor import SimulatedTensor, host_of, wrap

Tensors = Sequence[torch.Tensor]
_PRODUCT, _MAXIMUM, _MINIMUM, _AVERAGE = range(1, 5)
"""NCCL's numbers of operations; 0 is the sum."""
_REDUCTIONS: dict[int, Callable[..., torch.Tensor]] = {_PRODUCT: torch.prod, _MAXIMUM: torch.amax, _MINIMUM: torch.amin}


def _place(index: int) -> Any:
    return torch.device("cpu") if index < 0 else devices.behind(index)


def _split(tensor: Any, sizes: Sequence[int], dim: int) -> Sequence[torch.Tensor]:
    return tensor.split(sizes, dim)  # type: ignore[no-any-return]  # torch leaves it untyped


def _scatter(tensor: torch.Tensor, indices: Sequence[int], sizes: Any, dim: int, streams: Any) -> list[torch.Tensor]:
    """Pieces of a tensor along a dimension, one on each device."""
    pieces = _split(tensor, sizes, dim) if sizes is not None else tensor.chunk(len(indices), dim)
    return [piece.to(_place(index), non_blocking=True) for piece, index in zip(pieces, indices, strict=False)]


def _scatter_out(tensor: torch.Tensor, out: Tensors, dim: int, streams: Any) -> list[torch.Tensor]:
    """The same into given tensors."""
    pieces = _split(tensor, [piece.size(dim) for piece in out], dim)
    return [target.copy_(piece, non_blocking=True) for target, piece in zip(out, pieces, strict=True)]


def _gather(tensors: Tensors, dim: int, destination: int | None) -> torch.Tensor:
    """The tensors of several devices as one, along a dimension."""
    size = list(tensors[0].shape)
    size[dim] = sum(tensor.size(dim) for tensor in tensors)
    index = devices.current() if destination is None else destination
    return _gather_out(tensors, torch.empty(size, dtype=tensors[0].dtype, device=_place(index)), dim)


def _gather_out(tensors: Tensors, out: torch.Tensor, dim: int) -> torch.Tensor:
    """The same into a given tensor."""
    pieces = _split(out, [tensor.size(dim) for tensor in tensors], dim)
    for piece, tensor in zip(pieces, tensors, strict=True):
        piece.copy_(tensor, non_blocking=True)
    return out


def _broadcast(tensor: torch.Tensor, indices: Sequence[int]) -> list[torch.Tensor]:
    """The tensor on each of the devices, itself on its own."""
    if not isinstance(tensor, SimulatedTensor):
        return [tensor.to(_place(index), non_blocking=True) for index in indices]
    own = tensor.get_device()
    return [tensor if index == own else wrap(tensor.host.detach().clone(), index) for index in indices]


def _broadcast_out(tensor: torch.Tensor, out: Tensors) -> Tensors:
    """The same into given tensors."""
    for target in out:
        host_of(target).copy_(host_of(tensor))
    return out


def _broadcast_coalesced(tensors: Tensors, indices: Sequence[int], size: int) -> list[list[torch.Tensor]]:
    """The tensors on each of the devices; one list for each."""
    each = [_broadcast(tensor, indices) for tensor in tensors]
    return [[copies[position].detach() for copies in each] for position in range(len(indices))]


def _combined(tensors: Tensors, operation: int) -> torch.Tensor:
    hosts = [host_of(tensor).detach() for tensor in tensors]
    if operation in _REDUCTIONS:
        return _REDUCTIONS[operation](torch.stack(hosts), 0)
    total: torch.Tensor = hosts[0].clone()
    for host in hosts[1:]:
        total += host
    return total / len(tensors) if operation == _AVERAGE else total


def _nccl_reduce(inputs: Tensors, output: torch.Tensor, root: int, operation: int, *ignored: Any) -> None:
    host_of(output).copy_(_combined(inputs, operation))


def _nccl_all_reduce(inputs: Tensors, outputs: Tensors, operation: int, *ignored: Any) -> None:
    total = _combined(inputs, operation)
    for output in outputs:
        host_of(output).copy_(total)


def _nccl_broadcast(inputs: Tensors, root: int, *ignored: Any) -> None:
    _broadcast_out(inputs[root], [tensor for position, tensor in enumerate(inputs) if position != root])


def _nccl_all_gather(inputs: Tensors, outputs: Tensors, *ignored: Any) -> None:
    everything = torch.cat([host_of(tensor).detach().reshape(-1) for tensor in inputs])
    for output in outputs:
        host_of(output).copy_(everything.view_as(host_of(output)))


def _nccl_reduce_scatter(inputs: Tensors, outputs: Tensors, operation: int, *ignored: Any) -> None:
    pieces = _combined(inputs, operation).reshape(-1).chunk(len(outputs))
    for output, piece in zip(outputs, pieces, strict=True):
        host_of(output).copy_(piece.view_as(host_of(output)))


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(_scatter, _scatter_out, _gather, _gather_out, _broadcast, _broadcast_out, _broadcast_coalesced),
    *(_nccl_reduce, _nccl_all_reduce, _nccl_broadcast, _nccl_all_gather, _nccl_reduce_scatter),
)
"""They are called as torch calls its own."""


def install(patches: Patches) -> None:
    """Give torch's C library the functions that a build without CUDA lacks."""
    for function in _FUNCTIONS:
        patches.set(torch._C, function.__name__, function)
