"""Making tensors, moving them, looking at them."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

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


@idiom("types and classes")
def _() -> None:
    x = torch.randn(3, device=d)
    assert isinstance(x, torch.Tensor)
    assert torch.is_tensor(x)
    assert isinstance(nn.Parameter(x), nn.Parameter)
    assert not isinstance(x, nn.Parameter)
    assert x.type() == "torch.cuda.FloatTensor"
    assert x.long().type() == "torch.cuda.LongTensor"
    assert x.cpu().type() == "torch.FloatTensor"
    assert torch.is_floating_point(x)
    assert x.type(torch.float16).type() == "torch.cuda.HalfTensor"
    assert x.type("torch.FloatTensor").is_cpu
    assert x.type(torch.FloatTensor).is_cpu


@idiom("legacy tensor types")
def _() -> None:
    x = torch.randn(3, device=d)
    assert isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x, torch.FloatTensor)
    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)
    assert isinstance(x.cpu(), torch.FloatTensor)
    assert not isinstance(x, torch.cuda.LongTensor)
    y = torch.cuda.FloatTensor([1.0, 2.0])
    assert y.tolist() == [1.0, 2.0]
    assert y.is_cuda
    assert torch.cuda.LongTensor(2, 3).shape == (2, 3)
    assert torch.cuda.FloatTensor(2, 3).fill_(1).sum().item() == 6
    assert torch.ones(2).type("torch.cuda.FloatTensor").is_cuda
    assert torch.ones(2).type(torch.cuda.HalfTensor).dtype == torch.float16
    assert x.type(x.type()) is x
    assert torch.cuda.FloatTensor.dtype == torch.float32
    assert torch.cuda.FloatTensor.is_cuda
    kind = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
    assert kind(3).zero_().sum().item() == 0


@idiom("the default tensor type")
def _() -> None:
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    try:
        assert torch.zeros(2).is_cuda
        assert torch.tensor([1.0]).is_cuda
        assert nn.Linear(2, 2).weight.is_cuda
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert not torch.zeros(2).is_cuda
    torch.set_default_tensor_type(torch.cuda.DoubleTensor)
    try:
        assert torch.zeros(2).dtype == torch.float64
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    assert torch.zeros(2).dtype == torch.float32


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


@idiom("moving what is in containers")
def _() -> None:
    batch = {"x": torch.ones(2), "y": [torch.ones(1), torch.zeros(1)]}
    moved = torch.utils._pytree.tree_map(lambda t: t.to(d), batch)
    assert moved["y"][1].is_cuda


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


class Picture(torch.Tensor):
    """As the images of torchvision and fastai are."""

    def doubled(self):
        return self * 2


class Grey(Picture):
    pass


class Labelled(torch.Tensor):
    @staticmethod
    def __new__(cls, data, label):
        made = torch.Tensor._make_subclass(cls, data)
        made.label = label
        return made


@idiom("a class derived from Tensor moves with its class")
def _() -> None:
    here = torch.ones(2, 3).as_subclass(Picture)
    there = here.to(d)
    assert isinstance(there, Picture)
    assert there.is_cuda
    assert isinstance((there + 1).doubled(), Picture)
    assert isinstance(there[0].sum(), Picture)
    assert there.sum().item() == 6
    assert type(there.cpu()) is Picture
    assert type(there).__name__ == "Picture"
    assert not isinstance(there.as_subclass(torch.Tensor), Picture)


@idiom("a tensor on the device becomes one of a derived class, and gradients pass")
def _() -> None:
    weight = torch.ones(3, device=d, requires_grad=True)
    picture = weight.as_subclass(Grey)
    assert isinstance(picture, Grey)
    assert isinstance(picture + torch.ones(3, device=d).as_subclass(Picture), Grey)
    (picture * 3).sum().backward()
    assert weight.grad.tolist() == [3, 3, 3]
    labelled = Labelled(torch.ones(2, device=d), 7)
    assert (labelled.label, labelled.device.type, labelled.requires_grad) == (7, "cuda", False)
    assert nn.Linear(3, 2).cuda()(picture).doubled().is_cuda
    labelled.__dict__ = {"label": 8}  # as fastai hands on what is known of an image
    assert (labelled.label, labelled.sum().item()) == (8, 2)


@idiom("tensors of a derived class refuse to meet", raises="Expected all tensors to be on the same device")
def _() -> None:
    picture = torch.ones(3).as_subclass(Picture)
    picture.cuda() + picture
