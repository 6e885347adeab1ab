"""Deprecated names of torch that concern devices, and what to write instead; held to torch's own warnings by a test."""

from __future__ import annotations

from devlint.torch_api import Api, Kind

_AMP = "https://docs.pytorch.org/docs/stable/amp.html"
_AUTOCAST = ("enabled", "dtype", "cache_enabled")
_SCALER = ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")

ROWS: tuple[Api, ...] = (
    *(
        Api(
            f"torch.{device}.amp.{module}autocast",
            Kind.BOUND,
            "torch.amp.autocast",
            since=(1, 12),
            safe=True,
            prepend=f'"{device}"',
            parameters=_AUTOCAST,
            reference=_AMP,
        )
        for device in ("cuda", "cpu")
        for module in ("", "autocast_mode.")
    ),
    *(
        Api(
            f"torch.{device}.amp.{module}GradScaler",
            Kind.BOUND,
            "torch.amp.GradScaler",
            since=(2, 3),
            safe=True,
            prepend=f'"{device}"',
            parameters=_SCALER,
            reference=_AMP,
        )
        for device in ("cuda", "cpu")
        for module in ("", "grad_scaler.")
    ),
    *(
        Api(
            f"torch.cuda.amp.{module}{name}",
            Kind.REWRITTEN,
            f"torch.amp.{name}",
            since=(2, 4),
            safe=True,
            note='with `device_type="cuda"`',
            reference=_AMP,
        )
        for name in ("custom_fwd", "custom_bwd")
        for module in ("", "autocast_mode.")
    ),
)
