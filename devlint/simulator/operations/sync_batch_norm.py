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


def batch_norm_stats(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Mean and inverse deviation of each channel."""
    variance, mean = torch.var_mean(x.float(), _rest(x), correction=0)
    return mean, (variance + eps).rsqrt()


def batch_norm_gather_stats_with_counts(
    x: Tensor,
    means: Tensor,
    inverses: Tensor,
    running_mean: Tensor | None,
    running_variance: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """The statistics of all processes together."""
    weights = counts.view(-1, 1).to(means.dtype)
    total = weights.sum()
    mean = (means * weights).sum(0) / total
    squares = ((inverses**-2 - eps + (means - mean) ** 2) * weights).sum(0)
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
    if running_variance is not None:
        running_variance.mul_(1 - momentum).add_(squares / (total - 1), alpha=momentum)
    return mean, (squares / total + eps).rsqrt()


def batch_norm_elemt(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, inverse: Tensor, eps: float
) -> Any:
    """The input, normalised."""
    scale = inverse if weight is None else inverse * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    return (x * scale.view(_shape(x)) + shift.view(_shape(x))).to(x.dtype)


def batch_norm_backward_reduce(
    grad: Tensor, x: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor | None, *wanted: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """This process's sums, and the gradients of weight and bias."""
    total = grad.float().sum(_rest(x))
    product = (grad.float() * (x - mean.view(_shape(x)))).sum(_rest(x))
    return total, product, product * inverse, total


def batch_norm_backward_elemt(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    inverse: Tensor,
    weight: Tensor | None,
    total: Tensor,
    product: Tensor,
    counts: Tensor,
) -> Tensor:
    """The gradient of the input, from the sums of all processes."""
    shape, size = _shape(x), counts.sum()
    scale = inverse if weight is None else inverse * weight
    centred = grad - (total / size).view(shape) - (x - mean.view(shape)) * (product / size * inverse**2).view(shape)
    return (centred * scale.view(shape)).to(x.dtype)


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(batch_norm_stats, batch_norm_gather_stats_with_counts, batch_norm_elemt),
    *(batch_norm_backward_reduce, batch_norm_backward_elemt),
)
"""They are called as torch calls its own."""


def _on_host(function: Callable[..., Any]) -> dispatch.Handler:
    return lambda op, args, kwargs: dispatch.wrap_all(function(*map(host_of, args), **kwargs), args[0].get_device())


def install() -> None:
    """Compute these operations on the host."""
    for function in _FUNCTIONS:
        registration.handle(function.__name__, _on_host(function))
