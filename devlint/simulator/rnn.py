"""Recurrent networks, which a device has kernels of its own for, made of simpler operations."""

from __future__ import annotations

from torch._decomp import decompositions

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


def install() -> None:
    """Register torch's decompositions."""
    library = registration.library()
    for name, function in _DECOMPOSED.items():
        for key in ("AutogradPrivateUse1", "PrivateUse1"):
            library.impl(name, getattr(decompositions, function), key)
