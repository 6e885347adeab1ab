"""Recurrent networks, which a device has kernels of its own for, made of simpler operations."""

from __future__ import annotations

from typing import Any

from torch._decomp import decompositions
from torch.nn import functional as F  # noqa: N812  # its usual name

from devlint.simulator import registration

_DECOMPOSED = {
    "lstm.input": "lstm_impl",
    "lstm.data": "lstm_data_impl",
    "gru.input": "gru_impl",
    "gru.data": "gru_impl_data",
    "rnn_tanh.input": "rnn_tanh_input",
    "rnn_tanh.data": "rnn_tanh_data",
    "rnn_relu.input": "rnn_relu_input",
    "rnn_relu.data": "rnn_relu_data",
}


def lstm_cell(x: Any, hidden: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """``aten::lstm_cell`` as torch computes it on the CPU."""
    state, memory = hidden
    gates = F.linear(state, w_hh, b_hh) + F.linear(x, w_ih, b_ih)
    enter, forget, cell, leave = gates.unsafe_chunk(4, 1)
    memory = forget.sigmoid() * memory + enter.sigmoid() * cell.tanh()
    return leave.sigmoid() * memory.tanh(), memory


def gru_cell(x: Any, state: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """``aten::gru_cell`` as torch computes it on the CPU."""
    from_x = F.linear(x, w_ih, b_ih).unsafe_chunk(3, 1)
    from_state = F.linear(state, w_hh, b_hh).unsafe_chunk(3, 1)
    reset = (from_state[0] + from_x[0]).sigmoid()
    update = (from_state[1] + from_x[1]).sigmoid()
    new = (from_x[2] + from_state[2] * reset).tanh()
    return (state - new) * update + new


def install() -> None:
    """Register torch's decompositions, and those above."""
    library = registration.library()
    own: dict[str, Any] = {"lstm_cell": lstm_cell, "gru_cell": gru_cell}
    for name, cell in own.items():
        for key in ("AutogradPrivateUse1", "PrivateUse1"):
            library.impl(name, cell, key)
    for name, function in _DECOMPOSED.items():
        for key in ("AutogradPrivateUse1", "PrivateUse1"):
            library.impl(name, getattr(decompositions, function), key)
