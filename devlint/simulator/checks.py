"""Which tensors may meet in an operation, as on CUDA.

Most of it torch says itself (``plans``).  The tables here hold what the bodies of CUDA's kernels check on their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devlint.simulator import errors
from devlint.simulator.plans import Plan, kind_of


def tensors(plan: Plan, args: Any, kwargs: Any) -> dict[str, list[torch.Tensor]]:
    """The tensors among the arguments, those in lists too, by parameter, in the schema's order."""
    result: dict[str, list[torch.Tensor]] = {}
    for name, value in [*zip(plan.parameters, args, strict=False), *kwargs.items()]:
        values = value if isinstance(value, (list, tuple)) else (value,)
        found = [element for element in values if isinstance(element, torch.Tensor)]
        if found:
            result[name] = found
    return result


def refuse_mixed(plan: Plan, args: Any, kwargs: Any) -> None:
    """Raise what CUDA raises if the operation does not take its tensors, which are of several devices."""
    check, kind = SPECIAL.get(plan.name), kind_of(args, kwargs)
    if check is not None:
        check(plan, args, kwargs)
    elif plan.rules[kind] == "iterator":
        _iterator(plan, args, kwargs)
    elif plan.rules[kind] == "exact":
        _exact(plan.kernels[kind], plan, args, kwargs)


def _exact(kernel: str, plan: Plan, args: Any, kwargs: Any) -> None:
    named = tensors(plan, args, kwargs)
    common: torch.device | None = None
    for name in plan.checked:
        for tensor in named.get(name, ()):
            if common is None:
                common = tensor.device
            elif tensor.device != common:
                raise errors.error("wrapper", name, tensor.device, common, kernel)


def _iterator(plan: Plan, args: Any, kwargs: Any) -> None:
    """TensorIterator: 0-dim tensors on the host go with all devices, but a result on the host takes no others."""
    named = tensors(plan, args, kwargs)
    written = [tensor for name in plan.written for tensor in named.pop(name, ())]
    read = [tensor for values in named.values() for tensor in values]
    if written and written[0].device.type == "cpu":
        bound = [*written, *read]
    else:
        bound = [t for t in (*written, *read) if t.dim() > 0 or t.device.type != "cpu"]
    for tensor in bound:
        if tensor.device != bound[0].device:
            raise errors.error("iterator", bound[0].device, tensor.device)


def _nothing(plan: Plan, args: Any, kwargs: Any) -> None:
    """The operation takes tensors of any device."""


def _convolution(plan: Plan, args: Any, kwargs: Any) -> None:
    image, weight, bias = args[0], args[1], args[2] if len(args) > 2 else None
    if image.device.type != weight.device.type:
        raise errors.convolution(image, weight, "weight")
    if bias is not None and bias.device.type != image.device.type:
        raise errors.convolution(image, bias, "bias")
    _exact("wrapper_CUDA__cudnn_convolution", plan, args, kwargs)


def _batch_norm(plan: Plan, args: Any, kwargs: Any) -> None:
    """cuDNN normalises images in float32; torch's own kernel does the rest."""
    image, weight = args[0], args[1]
    cudnn = image.dim() >= 3 and image.dtype == torch.float32 and weight is not None
    _exact("wrapper_CUDA__cudnn_batch_norm" if cudnn else plan.kernels[""], plan, args, kwargs)


def _index(plan: Plan, args: Any, kwargs: Any) -> None:
    indexed = args[0]
    for index in args[1]:
        if isinstance(index, torch.Tensor) and index.device.type != "cpu" and index.device != indexed.device:
            raise errors.error("indices", "cpu", indexed.device)


def _index_put(plan: Plan, args: Any, kwargs: Any) -> None:
    # make_info() in ATen/native/TensorAdvancedIndexing.cpp copies indices to what is written into, wherever they are
    indexed, value = args[0], args[2]
    if value.device != indexed.device and value.dim():
        raise errors.error("iterator", indexed.device, value.device)


def _masked_fill(plan: Plan, args: Any, kwargs: Any) -> None:
    filled, mask = args[0], args[1]
    if filled.device.type == "cpu":
        raise errors.error("masked_fill of the host")
    if mask.device != filled.device:
        raise errors.error("masked_fill", mask.device, filled.device)


def _mode(plan: Plan, args: Any, kwargs: Any) -> None:
    for name in plan.written:
        if kwargs[name].device != args[0].device:
            raise errors.error("mode", args[0].device, kwargs[name].device, name)


def _lengths(plan: Plan, args: Any, kwargs: Any) -> None:
    lengths = args[1]
    if lengths.device.type != "cpu":
        kind = errors.legacy_name(lengths.dtype).removesuffix("Tensor")
        raise errors.error("lengths", lengths.dim(), lengths.device, kind)


SPECIAL: dict[str, Callable[[Plan, Any, Any], None]] = {
    **dict.fromkeys(("convolution", "_convolution", "convolution_overrideable"), _convolution),
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit"), _batch_norm),
    **dict.fromkeys(("index", "_unsafe_index"), _index),
    **dict.fromkeys(("index_put", "index_put_", "_unsafe_index_put", "_index_put_impl_"), _index_put),
    "masked_fill_": _masked_fill,
    "mode": _mode,
    "_pack_padded_sequence": _lengths,
    **dict.fromkeys(
        "copy_ _to_copy set_ lift_fresh record_stream resize_as_ is_same_size is_set_to _foreach_copy_ "
        "_has_compatible_shallow_copy_type _fused_sdp_choice _has_same_storage_numel _use_cudnn_ctc_loss "
        "_nested_view_from_buffer _nested_view_from_buffer_copy".split(),
        _nothing,
    ),
}
"""Operations that look for themselves, or take anything."""
