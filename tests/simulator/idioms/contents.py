"""Looking at what tensors hold, changing it and computing with it."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tests.simulator.idioms import Table

idiom = Table()
d = "cuda"


@idiom("views and in-place operations share memory")
def _() -> None:
    x = torch.zeros(4, 4, device=d)
    x[0] = 1
    x.view(16)[5] = 2
    x[:, 1].add_(3)
    x.t()[0, 0] = 9
    assert x.cpu()[0, 0] == 9
    assert x.cpu()[1, 1] == 5


@idiom("in-place changes of shape")
def _() -> None:
    x = torch.zeros(4, 3, device=d)
    x.unsqueeze_(0)
    assert x.shape == (1, 4, 3)
    x.squeeze_(0)
    x.t_()
    assert x.shape == (3, 4)
    x.resize_(2, 2)
    assert x.shape == (2, 2)


@idiom("data is read and set")
def _() -> None:
    p = nn.Parameter(torch.randn(3, device=d))
    p.data = p.data * 0
    assert p.sum().item() == 0
    p.data.add_(1)
    assert p.sum().item() == 3


@idiom("masks, nonzero, where, topk, sort, unique")
def _() -> None:
    x = torch.randn(10, device=d)
    x[x > 0].sum().item()
    x.nonzero()
    torch.where(x > 0)
    torch.where(x > 0, x, torch.zeros_like(x))
    torch.where(x > 0, x, 0.0)
    x[x < 0] = 0
    x.topk(3)
    x.sort()
    assert torch.unique(x).is_cuda


@idiom("indices on the CPU, in a list, in an array")
def _() -> None:
    x = torch.randn(10, device=d)
    assert x[torch.tensor([1, 2])].is_cuda
    x[[1, 2]], x[np.array([1, 2])], x[1], x[1:3], x[..., None]
    x[torch.tensor([1, 2])] = 0.0
    x[torch.tensor([True] * 10)] = 1.0
    assert x.sum().item() == 10


@idiom("scalars on the CPU go with tensors on the device")
def _() -> None:
    x = torch.ones(3, device=d)
    assert (x * torch.tensor(2.0)).sum().item() == 6
    assert (x + 1).is_cuda
    assert (2 / x).is_cuda
    assert (torch.tensor(2.0) - x).is_cuda
    x[0] = torch.tensor(7.0)
    assert x[0].item() == 7
    assert torch.where(x > 1, x, torch.tensor(0.0)).is_cuda


@idiom("reading values")
def _() -> None:
    x = torch.tensor([1.0, 2.5, -3.0], device=d)
    assert x.tolist() == [1.0, 2.5, -3.0]
    assert f"{x.sum():.3f}" == "0.500"
    assert f"{x.sum().item():.1f}" == "0.5"
    assert bool(x.sum() > 0)
    assert int(x.argmax()) == 1
    assert float(x.sum()) == 0.5
    assert [10, 20, 30][torch.tensor(1, device=d)] == 20
    assert len(x) == 3
    assert [float(v) for v in x] == [1.0, 2.5, -3.0]
    assert 2.5 in x
    assert x.cpu().numpy().sum() == 0.5
    assert x.numpy(force=True).sum() == 0.5
    assert (x == x.clone()).all()
    assert torch.equal(x, x.clone())
    assert torch.allclose(x, x.clone())


@idiom("printing")
def _() -> None:
    assert repr(torch.tensor([1.0, 2.0], device=d)) == "tensor([1., 2.], device='cuda:0')"
    assert str(torch.tensor(3, device="cuda:1")) == "tensor(3, device='cuda:1')"
    assert str(torch.zeros(2, 2, device=d)) == "tensor([[0., 0.],\n        [0., 0.]], device='cuda:0')"
    assert repr(nn.Parameter(torch.ones(1, device=d))) == (
        "Parameter containing:\ntensor([1.], device='cuda:0', requires_grad=True)"
    )
    w = torch.ones(1, device=d, requires_grad=True)
    assert repr(w * 2) == "tensor([2.], device='cuda:0', grad_fn=<MulBackward0>)"
    assert f"{torch.ones(2, device=d)}" == "tensor([1., 1.], device='cuda:0')"
    assert repr(torch.zeros(0, device=d)) == "tensor([], device='cuda:0')"
    assert "device='cuda:0')" in repr(torch.zeros(2000, device=d, dtype=torch.float16))


@idiom("deep copies and clones")
def _() -> None:
    module = copy.deepcopy(nn.Linear(3, 3).cuda())
    assert module.weight.is_cuda
    module(torch.randn(2, 3, device=d))
    x = torch.ones(2, device="cuda:1")
    y = copy.deepcopy(x)
    assert y.device == x.device
    assert y.data_ptr() != x.data_ptr()
    assert copy.copy(x).data_ptr() == x.data_ptr()
    storage = x.untyped_storage()
    z, part = copy.deepcopy((x, x[1:]))
    assert z.device == x.device
    assert z.data_ptr() not in (x.data_ptr(), y.data_ptr())
    assert part.data_ptr() == z.data_ptr() + 4
    assert storage.device == x.device
    assert x.clone().data_ptr() != x.data_ptr()
    assert x.detach().data_ptr() == x.data_ptr()


@idiom("results into a tensor")
def _() -> None:
    x = torch.empty(3, device=d)
    torch.add(torch.ones(3, device=d), 1, out=x)
    assert x.sum().item() == 6


@idiom("storages and pointers")
def _() -> None:
    x = torch.randn(3, device="cuda:1")
    assert x.untyped_storage().device == torch.device("cuda:1")
    assert x.untyped_storage().nbytes() == 12
    assert x.data_ptr() == x.view(3, 1).data_ptr() != 0
    assert x[1:].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert x.storage_offset() == 0
    assert x.element_size() * x.nelement() == 12
    y = torch.empty(0, device=d).set_(torch.ones(2, device=d))
    assert y.tolist() == [1.0, 1.0]


@idiom("scatter, gather, one_hot, bincount, cumsum")
def _() -> None:
    x = torch.randint(0, 3, (5,), device=d)
    assert F.one_hot(x, 3).is_cuda
    assert torch.bincount(x).is_cuda
    x.cumsum(0)
    assert torch.zeros(5, 3, device=d).scatter_(1, x[:, None], 1.0).sum().item() == 5
    torch.zeros(5, 3, device=d).gather(1, x[:, None])


@idiom("einsum, fft, linalg")
def _() -> None:
    x = torch.randn(3, 3, device=d)
    torch.einsum("ij,jk->ik", x, x)
    torch.fft.fft(x)
    torch.linalg.svd(x)
    torch.linalg.inv(x)
    assert torch.linalg.norm(x).is_cuda


@idiom("vmap and jacrev")
def _() -> None:
    x = torch.randn(3, device=d)
    assert torch.vmap(lambda a: a * 2)(x).is_cuda
    assert torch.func.jacrev(lambda a: a**2)(x).is_cuda


@idiom("shared memory and threads")
def _() -> None:
    import threading

    results: list[float] = []

    def work() -> None:
        results.append((torch.zeros(3, device="cuda") + 1).sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [3.0] * 4
    assert torch.ones(2, device=d).share_memory_().is_shared()


@idiom("DLPack within torch shares memory")
def _() -> None:
    x = torch.arange(6.0, device=d).view(2, 3)
    for y in (
        torch.from_dlpack(x),
        torch.from_dlpack(torch.to_dlpack(x)),
        torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)),
        torch.from_dlpack(x, device=d),
        torch.from_dlpack(x.t()).t(),
    ):
        assert y.is_cuda
        y.add_(1)
        assert torch.equal(x, y)
    assert x.__dlpack_device__() == (2, 0)
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.from_dlpack(x, device="cpu").device.type == "cpu"
    assert torch.from_dlpack(np.ones(2), device=d).is_cuda
    assert torch.from_dlpack(np.ones(2)).device.type == "cpu"
    with torch.cuda.device(1), torch.cuda.stream(torch.cuda.Stream()):
        assert torch.from_dlpack(x.to("cuda:1")).device.index == 1


@idiom("NumPy asks for memory of a device", raises="Unsupported device in DLTensor.")
def _() -> None:
    np.from_dlpack(torch.ones(2, device=d))


@idiom("DLPack of another device than the current", raises="Can't export tensors on a different CUDA device index.")
def _() -> None:
    torch.from_dlpack(torch.ones(2, device="cuda:1"))


@idiom("DLPack of what requires a gradient", raises="Can't export tensors that require gradient")
def _() -> None:
    torch.from_dlpack(torch.ones(2, device=d, requires_grad=True))


class Foreign:
    """An array of another library."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


@idiom("the CUDA array interface within torch shares memory")
def _() -> None:
    x = torch.arange(6.0, device=d).view(2, 3)
    described = x.__cuda_array_interface__
    assert (described["typestr"], described["shape"], described["strides"]) == ("<f4", (2, 3), None)
    assert described["data"] == (x.data_ptr(), False)
    for y in (torch.as_tensor(Foreign(x), device=d), torch.as_tensor(Foreign(x.t())).t()):
        assert y.is_cuda
        assert y.data_ptr() == x.data_ptr()
        assert torch.equal(x, y)
    assert torch.tensor(Foreign(x), device=d).data_ptr() != x.data_ptr()
    assert not hasattr(x.cpu(), "__cuda_array_interface__")
