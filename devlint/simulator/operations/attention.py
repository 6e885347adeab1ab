"""Scaled dot-product attention: the implementation that the host would choose, on simulated tensors."""

from __future__ import annotations

import torch

from devlint.simulator import registration
from devlint.simulator.tensor import SimulatedTensor, host_of

aten = torch.ops.aten
_FLASH = 1
"""``SDPBackend.FLASH_ATTENTION`` as ``_fused_sdp_choice`` returns it."""


def install() -> None:
    """Register the operation."""
    name = "scaled_dot_product_attention"
    registration.handle(name, lambda op, args, kwargs: attend(*args, **kwargs), "AutogradPrivateUse1")


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """``aten::scaled_dot_product_attention``."""
    mask = attn_mask
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))
    hosts = [host_of(tensor) for tensor in (query, key, value, mask)]
    options = {"scale": scale, "enable_gqa": enable_gqa}
    learned = mask is not None and mask.requires_grad
    same = all(isinstance(tensor, SimulatedTensor) for tensor in (query, key, value, mask) if tensor is not None)
    if same and not learned and aten._fused_sdp_choice(*hosts, dropout_p, is_causal, **options) == _FLASH:
        flash = aten._scaled_dot_product_flash_attention_for_cpu
        return flash(query, key, value, dropout_p, is_causal, attn_mask=mask, scale=scale)[0]  # type: ignore[no-any-return]  # untyped
    return aten._scaled_dot_product_attention_math(  # type: ignore[no-any-return]  # ops are untyped
        query, key, value, mask, dropout_p, is_causal, None, **options
    )[0]
