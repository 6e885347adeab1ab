"""Autocast on the simulated device: which operations are cast to the lower type, and which to float32."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from devlint.simulator import registration
from devlint.simulator.devices import NAME
from devlint.simulator.dispatch import Handler
from devlint.simulator.tensor import SimulatedTensor

LOWER = """
conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input conv_transpose3d.input convolution prelu addmm
addmv addr matmul einsum mm mv linalg_vecdot linalg_multi_dot linear addbmm baddbmm bmm chain_matmul lstm_cell gru_cell
lstm.input lstm.data gru.input gru.data rnn_tanh.input rnn_tanh.data rnn_relu.input rnn_relu.data
rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention
""".split()
"""Cast to the autocast type."""

FLOAT32 = """
acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor
pow.Scalar softplus layer_norm native_layer_norm group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim
cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss
smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss
multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d
_upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d _upsample_nearest_exact3d
upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d
_upsample_bicubic2d_aa
""".split()
"""Cast to float32."""

FLOAT32_RESULT = """
prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm
linalg_matrix_norm.str_ord sum sum.dim_IntList
""".split()
"""Computed in float32 by their ``dtype`` argument, unless one is given."""

WIDEST = """
addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add
""".split()
"""Cast to the widest type among the arguments."""


_NEVER = 99
"""The position of what is given by name only."""
_cache: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
"""What was cast, by identity; the tensor itself is kept so that its identity stays its own."""


def install() -> None:
    """Register the casting kernels."""
    clear = torch.clear_autocast_cache

    @functools.wraps(clear)
    def clear_both() -> None:
        clear()
        _cache.clear()

    torch.clear_autocast_cache = clear_both
    registration.library("_").fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    library = registration.library()
    for names, cast in (
        (LOWER, lambda op, *given: _cast(torch.get_autocast_dtype(NAME), given)),
        (FLOAT32, lambda op, *given: _cast(torch.float32, given)),
        (FLOAT32_RESULT, _float32_result),
        (WIDEST, _widest),
    ):
        for name in names:
            op = registration.operator(name)
            if op is not None:
                library.impl(name, registration.kernel(op, _below_autocast(cast)), "AutocastPrivateUse1")
    library.impl("binary_cross_entropy", _banned, "AutocastPrivateUse1")


def _eligible(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, SimulatedTensor) and tensor.is_floating_point() and tensor.dtype != torch.float64


def _cast(dtype: torch.dtype, values: Any) -> Any:
    def to(tensor: torch.Tensor) -> torch.Tensor:
        if not _eligible(tensor) or tensor.dtype == dtype:
            return tensor
        if not _kept(tensor, dtype):
            return tensor.to(dtype)
        if id(tensor) not in _cache:
            _cache[id(tensor)] = (tensor, tensor.to(dtype))
        return _cache[id(tensor)][1]

    return pytree.tree_map_only(torch.Tensor, to, values)


def _kept(tensor: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether autocast keeps the result for the next time: that of a float32 leaf, until its context ends."""
    return (
        dtype == torch.get_autocast_dtype(NAME)
        and tensor.dtype == torch.float32
        and tensor.requires_grad
        and tensor.is_leaf
        and not tensor._is_view()
        and torch.is_autocast_cache_enabled()
    )


def _below_autocast(cast: Callable[..., Any]) -> Handler:
    """What casts the arguments of an operation, and runs it below autocast."""
    native: Any = torch._C
    key = native.DispatchKeySet(native.DispatchKey.AutocastPrivateUse1)

    def handler(op: Any, args: Any, kwargs: Any) -> Any:
        with native._ExcludeDispatchKeyGuard(key):
            args, kwargs = cast(op, args, kwargs)
            return op(*args, **kwargs)

    return handler


def _float32_result(op: Any, args: Any, kwargs: Any) -> Any:
    arguments = enumerate(op._schema.arguments)
    position = next((_NEVER if each.kwarg_only else at for at, each in arguments if each.name == "dtype"), None)
    given = position is None or len(args) > position or kwargs.get("dtype") is not None
    if given or not args or not _eligible(args[0]):
        return args, kwargs
    return args, {**kwargs, "dtype": torch.float32}


def _widest(op: Any, args: Any, kwargs: Any) -> Any:
    leaves = pytree.tree_leaves((args, kwargs))
    found = {leaf.dtype for leaf in leaves if isinstance(leaf, torch.Tensor) and _eligible(leaf)}
    return _cast(torch.float32, (args, kwargs)) if torch.float32 in found and len(found) > 1 else (args, kwargs)


def _banned(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
        "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
        "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
        "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
        "safe to autocast."
    )
