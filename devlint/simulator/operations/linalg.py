"""Linear algebra that takes on a device what it does not take on the host."""

from __future__ import annotations

from typing import Any

from devlint.simulator import dispatch, registration
from devlint.simulator.tensor import SimulatedTensor

_DRIVERS = (None, "gesvd", "gesvdj", "gesvda")
"""What cuSOLVER can compute a singular value decomposition by."""


def _svd(op: Any, args: Any, kwargs: Any) -> Any:
    """The host has one driver, whatever was asked for."""
    driver = kwargs.get("driver")
    if isinstance(args[0], SimulatedTensor):
        if driver not in _DRIVERS:
            raise RuntimeError(f"torch.linalg.svd: unknown svd driver {driver} in svd_cusolver computation")
        kwargs = {**kwargs, "driver": None}
    return dispatch.run(op, args, kwargs)


def install() -> None:
    """Register the handlers."""
    registration.handle("_linalg_svd", _svd)
