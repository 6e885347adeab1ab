"""The texts of torch that speak of devices, of several versions, and those that do not."""

from __future__ import annotations

import pytest

from devlint.auditor.explanation.messages import argument_in, demand, devices_in, is_mismatch

SAME = "Expected all tensors to be on the same device, but"
MISMATCHES = {
    f"{SAME} found at least two devices, cuda:0 and cpu!": ("cuda:0", "cpu"),
    f"{SAME} found at least two devices, cpu and cuda:0! (when checking argument for argument mat1 in method "
    "wrapper_CUDA_addmm)": ("cpu", "cuda:0"),
    f"{SAME} got mat1 is on cpu, different from other tensors on cuda:1 (when checking argument in method "
    "wrapper_CUDA_addmm)": ("cpu", "cuda:1"),
    "indices should be either on cpu or on the same device as the indexed tensor (cpu)": ("cpu",),
    "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same": ("cuda", "cpu"),
    "Input type (torch.FloatTensor) and weight type (torch.cuda.HalfTensor) should be the same or input should be a "
    "MKLDNN tensor and weight is a dense tensor": ("cpu", "cuda"),
    "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor at cpu": (
        "cuda:0",
        "cpu",
    ),
    "Expected object of device type cuda but got device type cpu for argument #2 'mat2' in call to _th_mm": (
        "cuda",
        "cpu",
    ),
    "Unhandled FakeTensor Device Propagation for aten.add.Tensor, found two different devices cuda:0, cpu": (
        "cuda:0",
        "cpu",
    ),
    "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: "
    "cpu": (
        "cuda:0",
        "cpu",
    ),
    "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU "
    "modules or CPU modules, but got device_ids [1], output_device 1, and module parameters {device(type='cpu')}.": (
        "cuda:1",
        "cpu",
    ),
    "Tensor for argument #2 'weight' is on CPU, but expected it to be on GPU": ("cpu", "cuda"),
}
ALONE = {
    "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.": "",
    "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor": "lengths",
    "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned": "",
    "Expected a 'cuda' device type for generator but found 'cpu'": "",
}
OTHERS = [
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
    "CUDA out of memory. Tried to allocate 2.00 GiB.",
    "mat1 and mat2 shapes cannot be multiplied (4x3 and 4x2)",
    "expected scalar type Half but found Float",
    "Input type (torch.cuda.HalfTensor) and bias should be the same length",
    "'lengths' argument should be a 1D CPU int64 tensor, but got 2D cpu Long tensor",
    "Torch not compiled with CUDA enabled",
]


@pytest.mark.parametrize("text", MISMATCHES)
def test_mismatches(text: str) -> None:
    assert is_mismatch(RuntimeError(text))
    assert devices_in(text) == MISMATCHES[text]
    assert demand(text) == ""


@pytest.mark.parametrize("text", ALONE)
def test_a_single_tensor_in_the_wrong_place(text: str) -> None:
    assert is_mismatch(TypeError(text))
    assert demand(text)
    assert argument_in(text) == ALONE[text]


@pytest.mark.parametrize("text", OTHERS)
def test_others(text: str) -> None:
    assert not is_mismatch(RuntimeError(text))


def test_only_errors_of_torch_count() -> None:
    assert not is_mismatch(KeyboardInterrupt("not on the same device"))


def test_blamed_arguments() -> None:
    texts = list(MISMATCHES)
    assert [argument_in(text) for text in texts[:4]] == ["", "mat1", "mat1", ""]
