"""Recurrent networks: one kernel on a device, and computed on the host as a whole here, gradients and all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from devlint.simulator import dispatch, errors, registration
from devlint.simulator.tensor import SimulatedTensor, host_of, wrap

Function = Callable[..., Any]
_NETWORKS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_CELLS = ("lstm_cell", "gru_cell")


class _OnHost(torch.autograd.Function):
    """A function of tensors as one step of autograd; its backward pass is that of the host, once."""

    @staticmethod
    def forward(ctx: Any, function: Function, index: int, *tensors: torch.Tensor) -> Any:
        needed = ctx.needs_input_grad[2:]
        ctx.index = index

        def compute() -> Any:
            ctx.leaves = [host_of(one).detach().requires_grad_(need) for one, need in zip(tensors, needed, strict=True)]
            with torch.enable_grad(), dispatch.random_numbers(index):
                ctx.out = function(*ctx.leaves)
            return tuple(wrap(tensor.detach(), index) for tensor in ctx.out)

        return dispatch.host_step(compute)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:
        def compute() -> Any:
            wanted = [leaf for leaf in ctx.leaves if leaf.requires_grad]
            pairs = [(o, g.host) for o, g in zip(ctx.out, gradients, strict=True) if g is not None and o.requires_grad]
            outs, given = zip(*pairs, strict=True)
            found = iter(torch.autograd.grad(outs, wanted, given, retain_graph=True, allow_unused=True))
            results = [next(found) if leaf.requires_grad else None for leaf in ctx.leaves]
            return None, None, *[None if g is None else wrap(g, ctx.index) for g in results]

        return dispatch.host_step(compute)


def _run_on_host(op: Any, args: Any, kwargs: Any) -> Any:
    """The operation's result, computed on the host with its gradients, on the device of ``args``.

    At least one of the tensors in the arguments is simulated; those of the host stay there.
    """
    single = len(op._schema.returns) == 1
    leaves, shape = pytree.tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, SimulatedTensor)]

    def function(*tensors: torch.Tensor) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        inner_args, inner_kwargs = pytree.tree_unflatten(filled, shape)
        out = op(*inner_args, **inner_kwargs)
        return (out,) if single else out

    simulated = [leaves[place] for place in places]
    out = _OnHost.apply(function, simulated[0].device.index, *simulated)  # type: ignore[no-untyped-call]  # torch's own
    return out[0] if single else out


def install() -> None:
    """Register the networks and cells."""
    for network in _NETWORKS:
        for given in ("input", "data"):
            registration.handle(f"{network}.{given}", _network, "AutogradPrivateUse1")
    for cell in _CELLS:
        registration.handle(cell, _cell, "AutogradPrivateUse1")


def _network(op: Any, args: Any, kwargs: Any) -> Any:
    """A whole network; ``data`` takes packed sequences, whose sizes come second."""
    value, rest = args[0], args[2:] if op._schema.overload_name == "data" else args[1:]
    hidden, parameters = rest[0], rest[1]
    _check(value, "hidden", [hidden] if isinstance(hidden, torch.Tensor) else hidden)
    _check(value, "parameter", parameters)
    return _run_on_host(op, args, kwargs)


def _cell(op: Any, args: Any, kwargs: Any) -> Any:
    """One step; on CUDA, input and state are multiplied with their weights, and then all is put together."""
    value, state, weights, rest = args[0], args[1], args[2:4], args[4:]
    states = [state] if isinstance(state, torch.Tensor) else list(state)
    for factor, weight in zip((value, states[0]), weights, strict=True):
        if factor.device != weight.device:
            torch.mm(factor, weight.t())
    names = ("input_bias", "hidden_bias", "cx")
    for name, other in zip(names, (*(*rest, None, None)[:2], *states[1:]), strict=False):
        if other is not None and other.device != value.device:
            kernel = f"wrapper_CUDA__thnn_fused_{op._schema.name.removeprefix('aten::')}"
            raise errors.error("wrapper", name, other.device, value.device, kernel)
    return _run_on_host(op, args, kwargs)


def _check(value: torch.Tensor, role: str, others: Any) -> None:
    for other in others:
        if other.device != value.device:
            raise errors.error("rnn", role, value.device, role, other.device)
