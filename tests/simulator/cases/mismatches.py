"""What is said where tensors of several devices meet, in the words of torch 2.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.simulator.cases.support import CPU, ONE, ZERO, raises

DEVICES = 2

SAME = "Expected all tensors to be on the same device, but "


def _wrapper(argument: str, kernel: str, wrong: str = "cpu", common: str = "{0}") -> str:
    return (
        f"{SAME}got {argument} is on {wrong}, different from other tensors on {common} "
        f"(when checking argument in method wrapper_CUDA_{kernel})"
    )


def _all(*expected: tuple[str, Callable[[], Any]]) -> None:
    for text, action in expected:
        with raises(RuntimeError, text):
            action()


def _on(*shape: int, device: torch.device = ZERO) -> torch.Tensor:
    return torch.ones(shape, device=device)


def case_layers_whose_input_stayed_on_the_host() -> None:
    _all(
        (_wrapper("mat1", "addmm"), lambda: nn.Linear(3, 2).to(ZERO)(_on(2, 3, device=CPU))),
        (_wrapper("mat2", "mm"), lambda: _on(2, 3) @ _on(3, 2, device=CPU)),
        (_wrapper("mat2", "bmm"), lambda: _on(2, 3, 3) @ _on(2, 3, 3, device=CPU)),
        (_wrapper("index", "_index_select"), lambda: nn.Embedding(3, 2).to(ZERO)(torch.tensor([1]))),
        (_wrapper("target", "nll_loss_forward"), lambda: F.cross_entropy(_on(2, 3), torch.tensor([0, 1]))),
        (
            "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input",
            lambda: nn.Conv2d(1, 2, 2).to(ZERO)(_on(1, 1, 4, 4, device=CPU)),
        ),
        (
            "Input and parameter tensors are not at the same device, found input tensor at cpu and parameter",
            lambda: nn.LSTM(2, 2).to(ZERO)(_on(1, 1, 2, device=CPU), (_on(1, 1, 2, device=CPU),) * 2),
        ),
        (
            "Input and hidden tensors are not at the same device, found input tensor at cpu and hidden tensor at {0}",
            lambda: nn.GRU(2, 2).to(ZERO)(_on(1, 1, 2, device=CPU), _on(1, 1, 2)),
        ),
    )


def case_layers_whose_parameters_stayed_on_the_host() -> None:
    _all(
        (
            "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
            lambda: nn.Conv1d(1, 2, 2)(_on(1, 1, 4)),
        ),
        (
            "Input type (torch.cuda.HalfTensor) and bias type (torch.HalfTensor) should be the same",
            lambda: F.conv1d(_on(1, 1, 4).half(), _on(2, 1, 2).half(), torch.ones(2).half()),
        ),
        (_wrapper("weight", "_native_layer_norm"), lambda: nn.LayerNorm(3)(_on(2, 3))),
        (_wrapper("weight", "_native_group_norm"), lambda: nn.GroupNorm(1, 3)(_on(2, 3, 2))),
        (_wrapper("weight", "_native_batch_norm"), lambda: nn.BatchNorm1d(3)(_on(2, 3))),
        (_wrapper("weight", "_cudnn_batch_norm"), lambda: nn.BatchNorm2d(3)(_on(2, 3, 2, 2))),
        (SAME, lambda: nn.PReLU(3)(_on(1, 3))),
    )


def case_functions() -> None:
    index = torch.tensor([[0, 1]])
    host = torch.ones(3)
    _all(
        (_wrapper("tensors", "cat"), lambda: torch.cat([_on(3), host])),
        (_wrapper("tensors", "cat"), lambda: torch.stack([_on(3), host])),
        (_wrapper("index", "gather"), lambda: _on(1, 3).gather(1, index)),
        (_wrapper("index", "scatter__value"), lambda: _on(1, 3).scatter_(1, index, 1.0)),
        (_wrapper("index", "scatter_add"), lambda: _on(1, 3).scatter_add(1, index, _on(1, 2))),
        (_wrapper("index", "index_add"), lambda: _on(3).index_add(0, torch.tensor([0]), _on(1))),
        (SAME, lambda: torch.logaddexp(_on(3), host)),
        (_wrapper("boundaries", "Tensor_bucketize"), lambda: torch.bucketize(_on(3), host)),
        (SAME + "found at least two devices, {0} and cpu!", lambda: torch.where(_on(3) > 0, _on(3), host)),
        (SAME + "found at least two devices, {0} and cpu!", lambda: F.mse_loss(_on(3), host)),
        (SAME + "found at least two devices, cpu and {0}!", lambda: host.mul_(_on(3))),
        (SAME + "found at least two devices, cpu and {0}!", lambda: torch.add(_on(3), 1, out=torch.ones(3))),
        (
            "expected self and mask to be on the same device, but got mask on cpu and self on {0}",
            lambda: _on(3).masked_fill(host > 0, 0.0),
        ),
        (
            _wrapper("grid", "_grid_sampler_2d"),
            lambda: F.grid_sample(_on(1, 1, 2, 2), _on(1, 2, 2, 2, device=CPU)),
        ),
        ("torch.block_diag: input tensors must all be on the same device", lambda: torch.block_diag(_on(1, 1), host)),
    )


def case_two_devices() -> None:
    _all(
        (SAME + "found at least two devices, {0} and {1}!", lambda: _on(3) + _on(3, device=ONE)),
        (SAME + "found at least two devices, {0} and {1}!", lambda: _on(3) + _on(1, device=ONE).sum()),
        (_wrapper("mat2", "mm", "{1}"), lambda: _on(2, 2) @ _on(2, 2, device=ONE)),
        (_wrapper("weight", "_cudnn_convolution", "{1}"), lambda: F.conv1d(_on(1, 1, 4), _on(1, 1, 2, device=ONE))),
        (
            "indices should be either on cpu or on the same device as the indexed tensor ({0})",
            lambda: _on(3)[torch.tensor([0], device=ONE)],
        ),
    )


def case_gradients_have_to_be_where_their_tensor_is() -> None:
    tensor = _on(3).requires_grad_()
    with raises(RuntimeError, "attempting to assign a gradient with device type 'cpu' to a tensor with device type"):
        tensor.grad = torch.ones(3)
    with raises(RuntimeError, "invalid gradient at index 0 - expected device {0} but got cpu"):
        (tensor * 2).backward(torch.ones(3))
    with raises(RuntimeError, "invalid gradient at index 0 - expected device {0} but got {1}"):
        (tensor * 2).backward(_on(3, device=ONE))


def case_what_the_device_does_not_simulate_is_said() -> None:
    of_host = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    for make in (
        lambda: torch.quantize_per_tensor(_on(3), 0.1, 0, torch.qint8),
        lambda: torch._empty_affine_quantized((2,), scale=0.1, zero_point=0, dtype=torch.qint8, device=ZERO),
        lambda: of_host.to(ZERO),
    ):
        with raises(NotImplementedError, "quantized tensors, such as of torch.qint8: torch keeps scale and zero point"):
            make()
