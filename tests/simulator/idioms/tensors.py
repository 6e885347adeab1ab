"""Making tensors and moving them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tests.simulator.idioms import Table

idiom = Table()
d = "cuda"


@idiom("factories with a device")
def _() -> None:
    for x in (
        torch.zeros(3, device=d),
        torch.ones(3, device="cuda:0"),
        torch.randn(3, device=torch.device("cuda")),
        torch.arange(5, device=d),
        torch.full((2,), 1.0, device=d),
        torch.empty(2, device=d),
        torch.rand(2, device=d),
        torch.randint(0, 5, (3,), device=d),
        torch.eye(3, device=d),
        torch.linspace(0, 1, 3, device=d),
        torch.tensor([1.0, 2.0], device=d),
        torch.as_tensor([1, 2], device=d),
        torch.asarray([1, 2], device=d),
        torch.randperm(5, device=d),
        torch.scalar_tensor(1.0, device=d),
        torch.empty_strided((2, 2), (2, 1), device=d),
        torch.hann_window(4, device=d),
        torch.tril_indices(3, 3, device=d),
        torch.normal(0.0, 1.0, (3,), device=d),
        torch.full_like(torch.ones(3), 2.0, device=d),
        torch.zeros_like(torch.ones(3), device=d),
        torch.randn_like(torch.ones(3), device=d),
        torch.empty_like(torch.ones(3), device=d),
    ):
        assert x.is_cuda
        assert x.device == torch.device("cuda:0"), x.device


@idiom("ways to spell a device")
def _() -> None:
    for spelled in ("cuda:1", torch.device("cuda:1"), torch.device("cuda", 1), 1):
        assert torch.zeros(2, device=spelled).get_device() == 1
        assert torch.zeros(2).to(spelled).device == torch.device("cuda:1")
        assert torch.zeros(2).cuda(spelled).device.index == 1
        assert torch.tensor([1.0], device=spelled).device.index == 1
        assert nn.Linear(1, 1).to(spelled).weight.device.index == 1
        assert nn.Linear(1, 1).cuda(spelled).weight.device.index == 1
        assert nn.Linear(1, 1, device=spelled).weight.device.index == 1


@idiom("a device given by number says that it is a CUDA device")
def _() -> None:
    assert torch.device(1) == torch.device("cuda", 1)
    assert str(torch.device(0)) == "cuda:0"
    assert isinstance(torch.device(0), torch.device)
    assert isinstance(torch.zeros(1).device, torch.device)


@idiom("devices compare, hash and print")
def _() -> None:
    x = torch.zeros(1, device=d)
    assert x.device == torch.device("cuda:0") != torch.device("cuda")
    assert (x.device.type, x.device.index, str(x.device)) == ("cuda", 0, "cuda:0")
    assert {x.device: 1}[torch.device("cuda", 0)] == 1
    assert (x.is_cuda, x.is_cpu, x.get_device(), x.cpu().get_device()) == (True, False, 0, -1)
    assert f"{x.device}" == "cuda:0"
    assert repr(x.device) == "device(type='cuda', index=0)"


@idiom("like another tensor, new from another tensor")
def _() -> None:
    x = torch.randn(3, device="cuda:1")
    for y in (
        torch.zeros_like(x),
        torch.empty_like(x),
        torch.randn_like(x),
        x.new_zeros(2),
        x.new_ones(2),
        x.new_tensor([1.0]),
        x.new_empty(2),
        x.new_full((2,), 3.0),
    ):
        assert y.device == x.device, y.device
    assert not x.new_zeros(2, device="cpu").is_cuda
    assert torch.ones(1).new_tensor([1.0], device="cuda:1").device == x.device
    assert torch.ones(1).new_zeros(2, device="cuda:1").device == x.device
    assert x.new_tensor(np.ones(2)).device == x.device


@idiom("moves that have nothing to do return their tensor")
def _() -> None:
    x = torch.randn(3, device=d)
    assert x.to("cuda") is x
    assert x.to(x.device) is x
    assert x.to(0) is x
    assert x.cuda() is x
    assert x.cuda(0) is x
    assert x.to("cuda", torch.float32) is x
    assert x.to(torch.float32) is x
    assert x.to(device="cuda", dtype=torch.float32, non_blocking=True) is x
    assert x.to(torch.ones(1, device=d)) is x
    assert x.to("cuda", copy=True) is not x
    assert x.type("torch.cuda.FloatTensor") is x


@idiom("moves by every form of to")
def _() -> None:
    y = torch.randn(3)
    x = torch.randn(3, device="cuda:1")
    assert y.to(x).device == x.device
    assert y.type_as(x).device == x.device
    assert y.to("cuda", torch.float16).dtype == torch.float16
    assert y.to(dtype=torch.float64, device=d).dtype == torch.float64
    assert y.to(device=torch.device("cuda", 1), non_blocking=True).device.index == 1
    assert y.to(tensor=x).device == x.device
    assert x.to(torch.float64).device == x.device
    assert x.to("cuda:0").device.index == 0
    assert x.cuda().device.index == 0
    assert not x.cpu().is_cuda
    assert not x.to("cpu").is_cuda
    assert x.to("cpu", torch.float64).dtype == torch.float64
    assert x.half().device == x.device
    assert torch.equal(x.cpu().to("cuda:1"), x)


@idiom("moves keep the strides")
def _() -> None:
    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert x.cuda().is_contiguous(memory_format=torch.channels_last)
    assert torch.randn(3, 4).t().cuda().stride() == (1, 4)
    assert torch.randn(2, 3, 4, 4).to("cuda", memory_format=torch.channels_last).stride() == x.stride()


@idiom("a move is differentiable, from and to each device")
def _() -> None:
    w = torch.randn(3, requires_grad=True)
    (w.to("cuda:0").to("cuda:1").cpu() * 2).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [2.0, 2.0, 2.0]
    assert type(w.grad) is torch.Tensor


@idiom("data of a CPU parameter is set to its copy on the device")
def _() -> None:
    p = nn.Parameter(torch.ones(3))
    before = id(p)
    p.data = p.data.cuda()
    assert id(p) == before
    assert p.is_cuda
    assert isinstance(p, nn.Parameter)
    assert p.requires_grad
    (p * 2).sum().backward()
    assert p.grad is not None
    assert p.grad.is_cuda
    p.data = p.data.cpu()
    assert not p.is_cuda
    assert p.tolist() == [1.0, 1.0, 1.0]


@idiom("the default device")
def _() -> None:
    torch.set_default_device("cuda")
    try:
        assert torch.get_default_device() == torch.device("cuda", 0)
        x, module = torch.randn(3), nn.Linear(3, 3)
        assert x.is_cuda
        assert module.weight.is_cuda
        assert torch.tensor([1.0]).is_cuda
        assert not torch.tensor([1.0], device="cpu").is_cuda
        module(x)
    finally:
        torch.set_default_device(None)
    assert torch.get_default_device() == torch.device("cpu")
    with torch.device("cuda:1"):
        assert nn.Linear(3, 3).weight.device.index == 1
        assert torch.tensor([1.0]).device.index == 1
        assert torch.get_default_device() == torch.device("cuda", 1)


@idiom("from numpy and from python")
def _() -> None:
    a = np.arange(3.0)
    assert torch.from_numpy(a).cuda().tolist() == [0.0, 1.0, 2.0]
    assert torch.as_tensor(a, device=d).is_cuda
    assert torch.as_tensor(a, dtype=torch.float32, device="cuda:1").device.index == 1
    assert torch.tensor(a, device=d, requires_grad=True).requires_grad
    assert torch.tensor([torch.tensor(1.0), torch.tensor(2.0)], device=d).is_cuda
    x = torch.ones(2, device=d)
    assert torch.as_tensor(x) is x
    assert torch.as_tensor(x, device=d) is x
    assert torch.tensor(x).is_cuda
    assert torch.asarray(x) is x
    assert not torch.as_tensor(x, device="cpu").is_cuda
    assert torch.tensor([x.sum(), 1.0]).is_cpu
    assert torch.stack([x, x]).is_cuda


@idiom("memory that is pinned")
def _() -> None:
    x = torch.randn(3).pin_memory()
    assert x.is_pinned()
    assert not torch.randn(3).is_pinned()
    assert x.to(d, non_blocking=True).is_cuda
    assert torch.randn(3, device=d).to("cpu", non_blocking=True).is_pinned()
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert torch.zeros(3, pin_memory=True).is_pinned()
    assert torch.tensor([1.0], pin_memory=True).is_pinned()
    assert x.pin_memory() is x
    assert not x.cuda().is_pinned()


@idiom("moving what is in containers")
def _() -> None:
    batch = {"x": torch.ones(2), "y": [torch.ones(1), torch.zeros(1)]}
    moved = torch.utils._pytree.tree_map(lambda t: t.to(d), batch)
    assert moved["y"][1].is_cuda


@idiom("a softmax of half precision whose result is of single precision")
def _() -> None:
    x = torch.randn(2, 3, device=d, dtype=torch.float16, requires_grad=True)
    for name in ("_softmax", "_log_softmax"):
        out = getattr(torch.ops.aten, name)(x, 1, True)
        assert torch.equal(out, getattr(torch.ops.aten, name)(x.float(), 1, False))
        (found,) = torch.autograd.grad(out.square().sum(), x)
        (expected,) = torch.autograd.grad(getattr(torch.ops.aten, name)(x.float(), 1, False).square().sum(), x)
        assert found.dtype is torch.float16
        assert torch.equal(found, expected)
