"""torch's table of operators: results and gradients, ``out=`` and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from samples import DEVICE, first, named, operators, placed, same, tensors, usual_dtype


def _called(op: Any, sample: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    return op(sample.input, *sample.args, **sample.kwargs, **options)


def _gradients(out: Any, inputs: Any) -> list[torch.Tensor | None]:
    leaves = [leaf for leaf in tensors(inputs) if leaf.requires_grad]
    used = [one for one in tensors(out) if one.requires_grad]
    if not leaves or not used:
        return []
    total = sum((one.abs() if one.is_complex() else one).sum() for one in used)
    return list(torch.autograd.grad(total, leaves, allow_unused=True))


@pytest.mark.parametrize("op", operators(lambda op: usual_dtype(op) is not None), ids=named)
def test_results_and_gradients(op: Any) -> None:
    dtype = usual_dtype(op)
    learns = op.supports_autograd and dtype.is_floating_point
    for sample in first(op.sample_inputs(DEVICE, dtype, requires_grad=learns)):
        here, there = placed(sample, "cpu"), placed(sample)
        expected, got = _called(op, here), _called(op, there)
        same(got, expected)
        gradients = [(s.input, s.args, s.kwargs) for s in (here, there)]
        same(_gradients(got, gradients[1]), _gradients(expected, gradients[0]))


@pytest.mark.parametrize("op", operators(lambda op: op.supports_out and usual_dtype(op) is not None), ids=named)
def test_out(op: Any) -> None:
    for sample in first(op.sample_inputs(DEVICE, usual_dtype(op))):
        here, there = placed(sample, "cpu"), placed(sample)
        expected = _called(op, here)
        if expected is None or (op.name == "nonzero" and sample.kwargs.get("as_tuple")):
            continue
        outs = [torch.full_like(one, 1, device=DEVICE) for one in tensors(expected)]
        kind = list if isinstance(expected, list) else tuple
        got = _called(op, there, out=outs[0] if isinstance(expected, torch.Tensor) else kind(outs))
        same(outs, expected)
        assert all(one is out for one, out in zip(tensors(got), outs, strict=True))


@pytest.mark.parametrize("op", operators(lambda op: op.error_inputs_func is not None), ids=named)
def test_errors(op: Any) -> None:
    for case in op.error_inputs(DEVICE):
        sample = case.sample_input
        with pytest.raises(case.error_type) as raised:
            _answered(op(sample.input, *sample.args, **sample.kwargs))
        declined = "unsupported operand" in str(raised.value)
        assert declined or re.search(case.error_regex, str(raised.value)), (
            f"{raised.value!r} is not {case.error_regex!r}"
        )


def _answered(out: Any) -> None:
    """Raise what Python raises where a method like ``__rmod__`` declines."""
    if out is NotImplemented:
        raise TypeError("unsupported operand")
