"""Recurrent networks: one kernel on a device, and computed on the host as a whole here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devlint.simulator import dispatch, errors, registration
from devlint.simulator.operations import host

_NETWORKS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_CELLS = ("lstm_cell", "gru_cell")


def install() -> None:
    """Register the networks and cells."""
    names = [f"{network}.{given}" for network in _NETWORKS for given in ("input", "data")]
    for name, run in (*((name, _network) for name in names), *((name, _cell) for name in _CELLS)):
        op = registration.operator(name)
        registration.library().impl(name, _running(op, run), "AutogradPrivateUse1")
        dispatch.HANDLERS[op] = run


def _running(op: Any, run: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: run(op, args, kwargs)


def _network(op: Any, args: Any, kwargs: Any) -> Any:
    """A whole network; ``data`` takes packed sequences, whose sizes come second."""
    value, rest = args[0], args[2:] if op._schema.overload_name == "data" else args[1:]
    hidden, parameters = rest[0], rest[1]
    _check(value, "hidden", [hidden] if isinstance(hidden, torch.Tensor) else hidden)
    _check(value, "parameter", parameters)
    return host.run(op, args, kwargs)


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
    return host.run(op, args, kwargs)


def _check(value: torch.Tensor, role: str, others: Any) -> None:
    for other in others:
        if other.device != value.device:
            raise errors.error("rnn", role, value.device, role, other.device)
