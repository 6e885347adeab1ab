"""Which tensors may meet in an operation, as on CUDA."""

from __future__ import annotations

from typing import Any

import torch

from devlint.simulator import errors
from devlint.simulator.plans import Plan


def tensors(plan: Plan, args: Any, kwargs: Any) -> list[tuple[str, torch.Tensor]]:
    """The tensors among the arguments, those in lists too, each with its parameter's name, in the schema's order."""
    result: list[tuple[str, torch.Tensor]] = []
    for name, value in [*zip(plan.parameters, args, strict=False), *kwargs.items()]:
        if isinstance(value, torch.Tensor):
            result.append((name, value))
        elif isinstance(value, (list, tuple)):
            result.extend((name, element) for element in value if isinstance(element, torch.Tensor))
    return result


def refuse_mixed(plan: Plan, args: Any, kwargs: Any) -> None:
    """Raise what CUDA raises if the operation does not take its tensors, which are of several devices."""
    special = _SPECIAL.get(plan.name)
    if special is not None:
        special(plan, args, kwargs)
        return
    if plan.rule == "any":
        return
    named = tensors(plan, args, kwargs)
    if plan.rule == "scalars":
        _iterator(plan, args, named)
        return
    _exact(_KERNELS.get(plan.name, (plan.name, {})), named)


def _exact(kernel: tuple[str, dict[str, str]], named: list[tuple[str, torch.Tensor]]) -> None:
    method, renamed = kernel
    common = named[0][1].device
    for name, tensor in named:
        if tensor.device != common:
            raise errors.wrapper(method, renamed.get(name, name), tensor.device, common)


def _iterator(plan: Plan, args: Any, named: list[tuple[str, torch.Tensor]]) -> None:
    """TensorIterator: 0-dim tensors on the host go with all devices, but a result on the host takes no others."""
    if plan.written:
        destination = args[0] if plan.written[0][0] == 0 and args else None
        if isinstance(destination, torch.Tensor) and destination.device.type == "cpu":
            for _, tensor in named:
                if tensor.device != destination.device:
                    raise errors.pointwise(destination.device, tensor.device)
    bound = [tensor for _, tensor in named if tensor.dim() > 0 or tensor.device.type != "cpu"]
    for tensor in bound:
        if tensor.device != bound[0].device:
            raise errors.pointwise(bound[0].device, tensor.device)


def _nothing(plan: Plan, args: Any, kwargs: Any) -> None:
    """The operation takes tensors of any device, or looks for itself."""


def _convolution(plan: Plan, args: Any, kwargs: Any) -> None:
    image, weight, bias = args[0], args[1], args[2] if len(args) > 2 else None
    if image.device.type != weight.device.type:
        raise errors.convolution(image, weight, "weight")
    if bias is not None and bias.device.type != image.device.type:
        raise errors.convolution(image, bias, "bias")
    _exact(("cudnn_convolution", {}), tensors(plan, args, kwargs))


def _index(plan: Plan, args: Any, kwargs: Any) -> None:
    indexed = args[0]
    for index in args[1]:
        if isinstance(index, torch.Tensor) and index.device.type != "cpu" and index.device != indexed.device:
            raise errors.indices(indexed.device)
    if len(args) > 2 and args[2].device != indexed.device and (args[2].device.type != "cpu" or args[2].dim()):
        raise errors.pointwise(indexed.device, args[2].device)


def _lengths(plan: Plan, args: Any, kwargs: Any) -> None:
    if args[1].device.type != "cpu":
        raise errors.lengths(args[1])


_SPECIAL = {
    "convolution": _convolution,
    "_convolution": _convolution,
    "index": _index,
    "_unsafe_index": _index,
    "index_put": _index,
    "index_put_": _index,
    "_unsafe_index_put": _index,
    "_index_put_impl_": _index,
    "_pack_padded_sequence": _lengths,
    "set_": _nothing,
    "lift_fresh": _nothing,
    "record_stream": _nothing,
    "is_same_size": _nothing,
    "_has_compatible_shallow_copy_type": _nothing,
    "_foreach_copy_": _nothing,
    "_foreach_mul_": _nothing,
    "_foreach_div_": _nothing,
    "_amp_update_scale_": _nothing,
    "resize_as_": _nothing,
    "_fused_sdp_choice": _nothing,
}
"""Operations that look for themselves."""

_KERNELS: dict[str, tuple[str, dict[str, str]]] = {
    "embedding": ("_index_select", {"indices": "index", "weight": "self"}),
}
"""Operations whose devices are checked by another one: its name, and its names of the arguments."""
