"""The operations of `torch.nn.SyncBatchNorm`, which torch has for devices only: statistics shared by all processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devlint.simulator import dispatch, registration
from devlint.simulator.tensor import host_of

Tensor = torch.Tensor


def _shape(x: Tensor) -> list[int]:
    """What a vector of channels is viewed as to go with ``x``."""
    return [1, -1, *[1] * (x.dim() - 2)]


def _rest(x: Tensor) -> list[int]:
    """All dimensions of ``x`` but that of the channels."""
    return [dim for dim in range(x.dim()) if dim != 1]


def stats(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """``aten::batch_norm_stats``: mean and inverse deviation of each channel."""
    variance, mean = torch.var_mean(x.float(), _rest(x), correction=0)
    return mean, (variance + eps).rsqrt()


def gathered(
    x: Tensor,
    means: Tensor,
    inverses: Tensor,
    running_mean: Tensor | None,
    running_variance: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """``aten::batch_norm_gather_stats_with_counts``: those of all processes together."""
    weights = counts.view(-1, 1).to(means.dtype)
    total = weights.sum()
    mean = (means * weights).sum(0) / total
    squares = ((inverses**-2 - eps + (means - mean) ** 2) * weights).sum(0)
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
    if running_variance is not None:
        running_variance.mul_(1 - momentum).add_(squares / (total - 1), alpha=momentum)
    return mean, (squares / total + eps).rsqrt()


def normalised(x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, inverse: Tensor, eps: float) -> Any:
    """``aten::batch_norm_elemt``."""
    scale = inverse if weight is None else inverse * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    return (x * scale.view(_shape(x)) + shift.view(_shape(x))).to(x.dtype)


def reduced(
    grad: Tensor, x: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor | None, *wanted: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``aten::batch_norm_backward_reduce``: this process's sums, and the gradients of weight and bias."""
    total = grad.float().sum(_rest(x))
    product = (grad.float() * (x - mean.view(_shape(x)))).sum(_rest(x))
    return total, product, product * inverse, total


def back(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    inverse: Tensor,
    weight: Tensor | None,
    total: Tensor,
    product: Tensor,
    counts: Tensor,
) -> Tensor:
    """``aten::batch_norm_backward_elemt``: the gradient of the input, from the sums of all processes."""
    shape, size = _shape(x), counts.sum()
    scale = inverse if weight is None else inverse * weight
    centred = grad - (total / size).view(shape) - (x - mean.view(shape)) * (product / size * inverse**2).view(shape)
    return (centred * scale.view(shape)).to(x.dtype)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "batch_norm_stats": stats,
    "batch_norm_gather_stats_with_counts": gathered,
    "batch_norm_elemt": normalised,
    "batch_norm_backward_reduce": reduced,
    "batch_norm_backward_elemt": back,
}


def _on_host(function: Callable[..., Any]) -> dispatch.Handler:
    return lambda op, args, kwargs: dispatch.wrap_all(function(*map(host_of, args), **kwargs), args[0].get_device())


def install() -> None:
    """Compute these operations on the host."""
    for name, function in _FUNCTIONS.items():
        registration.handle(name, _on_host(function))
