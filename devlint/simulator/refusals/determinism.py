"""Operations that CUDA refuses under `torch.use_deterministic_algorithms`, in its words.

Which they are is said by torch's documentation of that function; what they call themselves, by the calls of
`alertNotDeterministic` in the sources (aten/src/ATen/native/cuda).  Only what raises is here: what has a deterministic
form on CUDA is computed, as is everything on the host.  Products of matrices are deterministic in torch 2.13 whatever
`CUBLAS_WORKSPACE_CONFIG` says: its documentation has dropped them.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch

Condition = Callable[[tuple[Any, ...], dict[str, Any]], bool]


def _always(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return True


def _floating(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    dtype = kwargs.get("dtype") or args[0].dtype
    return bool(dtype.is_floating_point or dtype.is_complex)


def _weighted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return (args[1] if len(args) > 1 else kwargs.get("weights")) is not None


def _multiplied(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(isinstance(value, str) and value == "prod" for value in (*args, *kwargs.values()))


def _of_maxima(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the mode of an embedding bag is `max`, which is 2."""
    return len(args) > _MODE and args[_MODE] == _MAX


_MODE, _MAX = 8, 2
_PLAIN = {
    **{f"adaptive_avg_pool{n}d_backward": f"adaptive_avg_pool{n}d_backward_cuda" for n in (2, 3)},
    "_adaptive_avg_pool2d_backward": "adaptive_avg_pool2d_backward_cuda",
    "_adaptive_avg_pool3d_backward": "adaptive_avg_pool3d_backward_cuda",
    "adaptive_max_pool2d_backward": "adaptive_max_pool2d_backward_cuda",
    "avg_pool3d_backward": "avg_pool3d_backward_cuda",
    **{f"fractional_max_pool{n}d_backward": f"fractional_max_pool{n}d_backward_cuda" for n in (2, 3)},
    **{f"max_unpool{n}d": f"max_unpooling{n}d_forward_out" for n in (2, 3)},
    "upsample_linear1d_backward": "upsample_linear1d_backward_out_cuda",
    "upsample_bilinear2d_backward": "upsample_bilinear2d_backward_out_cuda",
    "upsample_bicubic2d_backward": "upsample_bicubic2d_backward_out_cuda",
    "upsample_trilinear3d_backward": "upsample_trilinear3d_backward_out_cuda",
    "reflection_pad1d_backward": "reflection_pad1d_backward_out_cuda",
    "reflection_pad2d_backward": "reflection_pad2d_backward_cuda",
    "reflection_pad3d_backward": "reflection_pad3d_backward_out_cuda",
    "nll_loss2d_forward": "nll_loss2d_forward_out_cuda_template",
    "nll_loss2d_backward": "nll_loss2d_backward_out_cuda_template",
    "_ctc_loss_backward": "ctc_loss_backward_gpu",
    "put": "put_",
    "grid_sampler_2d_backward": "grid_sampler_2d_backward_cuda",
    "grid_sampler_3d_backward": "grid_sampler_3d_backward_cuda",
}
"""Whatever the arguments are."""
ALERTS: dict[str, tuple[str, Condition]] = {
    **{name: (caller, _always) for name, caller in _PLAIN.items()},
    "cumsum": ("cumsum_cuda_kernel", _floating),
    "histc": ("_histc_cuda with floating point input", _floating),
    "bincount": ("_bincount_cuda", _weighted),
    "median": ("median CUDA with indices output", lambda args, kwargs: len(args) > 1 or bool(kwargs)),
    "nanmedian": ("median CUDA with indices output", lambda args, kwargs: len(args) > 1 or bool(kwargs)),
    "scatter_reduce": ("scatter_reduce_cuda_prod_", _multiplied),
    "_embedding_bag_backward": ("embedding_bag_backward_cuda_max", _of_maxima),
}
"""By operation, in place or not: what CUDA calls the refused computation, and for which arguments it is refused."""
ALERT = (
    "{} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. You can "
    "turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's acceptable "
    "for your application. You can also file an issue at https://github.com/pytorch/pytorch/issues to help us "
    "prioritize adding deterministic support for this operation."
)
WARNING = (
    "{} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True, "
    "warn_only=True)'. You can file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding "
    "deterministic support for this operation."
)


def wrapped(compute: Callable[..., Any], name: str) -> Callable[..., Any]:
    """What computes an operation of that name unless chance plays a part that is not allowed."""
    base = name.rstrip("_")
    if base not in ALERTS:
        return compute
    caller, condition = ALERTS[base]

    def refuse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if condition(args, kwargs):
            _say(ALERT.format(caller), WARNING.format(caller))

    return functools.partial(_checked, compute, refuse)


def _checked(
    compute: Callable[..., Any],
    refuse: Callable[[tuple[Any, ...], dict[str, Any]], None],
    *args: Any,
    **kwargs: Any,
) -> Any:
    if torch.are_deterministic_algorithms_enabled():
        refuse(args, kwargs)
    return compute(*args, **kwargs)


def _say(refusal: str, warning: str) -> None:
    """Raise, or warn where only that was asked for."""
    if not torch.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(refusal)
    warnings.warn(warning, UserWarning, stacklevel=2)
