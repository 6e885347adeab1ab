"""Computing on the host, gradients and all, where a device has kernels of its own for many operations at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from devlint.simulator import dispatch
from devlint.simulator.tensor import SimulatedTensor, host_of, wrap

Function = Callable[..., Any]


class _OnHost(torch.autograd.Function):
    """A function of tensors as one step of autograd; its backward pass is that of the host, once."""

    @staticmethod
    def forward(ctx: Any, function: Function, index: int, *tensors: torch.Tensor) -> Any:
        needed = ctx.needs_input_grad[2:]
        leaves = [host_of(one).detach().requires_grad_(needs) for one, needs in zip(tensors, needed, strict=True)]
        with torch.enable_grad(), dispatch.random_numbers(index):
            out = function(*leaves)
        ctx.leaves, ctx.out, ctx.index = leaves, out, index
        return tuple(wrap(tensor.detach(), index) for tensor in out)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:
        wanted = [leaf for leaf in ctx.leaves if leaf.requires_grad]
        pairs = [(o, g.host) for o, g in zip(ctx.out, gradients, strict=True) if g is not None and o.requires_grad]
        outs, given = zip(*pairs, strict=True)
        found = iter(torch.autograd.grad(outs, wanted, given, retain_graph=True, allow_unused=True))
        results = [next(found) if leaf.requires_grad else None for leaf in ctx.leaves]
        return None, None, *[None if g is None else wrap(g, ctx.index) for g in results]


def run(op: Any, args: Any, kwargs: Any) -> Any:
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
