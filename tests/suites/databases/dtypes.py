"""torch's table of operators: which dtypes each takes on the device, and which it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from samples import DEVICE, first, named, operators, placed


def _pairs() -> list[Any]:
    pairs = []
    for op in operators():
        both = op.supported_dtypes("cpu") | op.supported_dtypes("cuda")
        for dtype in sorted(both, key=str):
            pairs.append(pytest.param(op, dtype, id=f"{named(op)}-{str(dtype).removeprefix('torch.')}"))
    return pairs


@pytest.mark.parametrize(("op", "dtype"), _pairs())
def test_dtype(op: Any, dtype: torch.dtype) -> None:
    """As the table says of this device: the first sample is computed, or refused."""
    supported = dtype in op.supported_dtypes(DEVICE)
    try:
        samples = list(first(op.sample_inputs(DEVICE, dtype), 1))
    except Exception as error:
        pytest.skip(f"no sample: {type(error).__name__}")
    for sample in samples:
        there = placed(sample)
        if supported:
            op(there.input, *there.args, **there.kwargs)
        else:
            with pytest.raises((RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError)):
                op(there.input, *there.args, **there.kwargs)
