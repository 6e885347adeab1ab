"""What the host refuses because of the numbers in a tensor: indices out of range, integers divided by zero.

CUDA's kernels find the first out while they run, and say so by an assertion of the device; the second they compute.
On a real device the assertion is sticky: every later call of the process raises it again.  Here it is raised once, by
the operation itself, so that of a suite of tests only the one fails that is wrong.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import torch

from devlint.simulator import errors

Compute = Callable[..., Any]
_ASSERTING = frozenset(
    "index _unsafe_index index_put _unsafe_index_put _index_put_impl gather scatter scatter_add scatter_reduce "
    "take put index_select index_add index_copy index_fill index_reduce embedding _embedding_bag "
    "_embedding_bag_forward_only nll_loss_forward nll_loss2d_forward multi_margin_loss multilabel_margin_loss_forward "
    "max_unpool2d max_unpool3d binary_cross_entropy bernoulli multinomial".split()
)
"""Operations whose numbers CUDA's kernels look at while they run."""
_BAD_NUMBER = re.compile(
    r"(\w+\(\): )?(index|Target) -?\d+ is out of bounds|index out of range in self|out of range: tried to access index"
    r"|Index \d+ of input takes value|target out of range|argument #2 'target' is out of range"
    r"|Found an invalid max index|all elements of \w+ should be between 0 and 1|probability tensor contains"
    r"|Expected p_in >= 0"
)
"""What the host says of an index, a class or a probability that there cannot be."""
_DIVIDING = frozenset("div floor_divide remainder fmod".split())
_HINT = (
    "Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more "
    "information."
)
_CODE = 710
"""``cudaErrorAssert``."""


def wrapped(compute: Compute, name: str) -> Compute:
    """What computes an operation of that name with CUDA's view of bad indices and divisors."""
    base = name.rstrip("_")
    if base in _ASSERTING:
        return functools.partial(_asserted, compute)
    if base in _DIVIDING:
        return functools.partial(_divided, compute, base)
    return compute


def _asserted(compute: Compute, *args: Any, **kwargs: Any) -> Any:
    try:
        return compute(*args, **kwargs)
    except (IndexError, RuntimeError) as error:
        if _BAD_NUMBER.match(str(error)) is None:
            raise
        raise errors.of_driver(_CODE, "device-side assert triggered", _HINT) from error


def _divided(compute: Compute, base: str, *args: Any, **kwargs: Any) -> Any:
    """Integers divided by zero are -1 and leave the dividend; what a real device makes of them is not specified."""
    dividend, divisor, *rest = args
    if _is_floating(dividend) or _is_floating(divisor) or (base == "div" and kwargs.get("rounding_mode") is None):
        return compute(*args, **kwargs)
    zero = torch.as_tensor(divisor == 0)
    if not zero.any():
        return compute(*args, **kwargs)
    left = dividend.clone() if isinstance(dividend, torch.Tensor) else dividend
    ones = divisor.masked_fill(zero, 1) if isinstance(divisor, torch.Tensor) else 1
    out = compute(dividend, ones, *rest, **kwargs)
    return out.copy_(torch.where(zero, -1 if base in ("div", "floor_divide") else left, out))


def _is_floating(value: Any) -> bool:
    dtype = value.dtype if isinstance(value, torch.Tensor) else torch.tensor(value).dtype
    return bool(dtype.is_floating_point or dtype.is_complex)
