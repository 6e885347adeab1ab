"""What CUDA's kernels refuse, or take, otherwise than the host's: dtypes, chance, indices, divisors, memory."""

from __future__ import annotations

from typing import Any

from devlint.simulator.refusals import determinism, dtypes, values


def computing(op: Any, name: str, written: dtypes.Places) -> Any:
    """What computes an aten operation on the host as CUDA would: the operation itself where the two agree."""
    return determinism.wrapped(dtypes.wrapped(values.wrapped(op, name), name, written), name)
