"""torch's tables of modules and optimizers: results, gradients and steps."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from samples import DEVICE, moved, same, tensors
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

STEPS = 3


def _loss(out: Any) -> Any:
    used = [one for one in tensors(out) if one.requires_grad]
    return sum((one.abs() if one.is_complex() else one).sum() for one in used) if used else None


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_module(info: Any, training: bool) -> None:
    dtype = torch.float32
    if dtype not in info.dtypes:
        pytest.skip("not in float32")
    inputs = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    for given in inputs:
        if given.forward_input is None:
            continue
        torch.manual_seed(0)
        module = info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs).train(training)
        there = copy.deepcopy(module).to(DEVICE)
        results = []
        for one, place in ((module, "cpu"), (there, DEVICE)):
            args, kwargs = moved((given.forward_input.args, given.forward_input.kwargs), place)
            torch.manual_seed(0)
            out = one(*args, **kwargs)
            loss = _loss(out)
            if loss is not None:
                loss.backward()
            leaves = [leaf.grad for leaf in (*tensors((args, kwargs)), *one.parameters()) if leaf.is_leaf]
            results.append((out, leaves, dict(one.state_dict())))
        same(results[1], results[0])


@pytest.mark.parametrize("info", optim_db, ids=lambda info: info.optim_cls.__name__)
def test_optimizer(info: Any) -> None:
    for given in info.optim_inputs_func(device=DEVICE):
        if given.kwargs.get("differentiable"):
            continue  # takes parameters that are no leaves
        results = []
        for place in ("cpu", DEVICE):
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=info.optim_cls is not torch.optim.Muon))
            model.to(place)
            parameters = [p for p in model.parameters() if p.dim() == 2 or info.optim_cls is not torch.optim.Muon]
            kwargs = _for_place(given.kwargs, place)
            if info.optim_cls is torch.optim.SparseAdam:
                pytest.skip("takes sparse gradients")
            optimizer = info.optim_cls(parameters, **kwargs)
            data = torch.randn(3, 4).to(place)

            def closure(optimizer: Any = optimizer, model: Any = model, data: Any = data) -> Any:
                optimizer.zero_grad()
                loss = model(data).square().sum()
                loss.backward()
                return loss

            for _ in range(STEPS):
                optimizer.step(closure)
            results.append([p.detach() for p in parameters])
        same(results[1], results[0])


def _for_place(kwargs: dict[str, Any], place: str) -> dict[str, Any]:
    """The options, with their tensors there; those that are for devices only are left out on the CPU."""
    kept = {name: moved(value, place) for name, value in kwargs.items()}
    if place == "cpu":
        kept.pop("capturable", None)
    return kept
