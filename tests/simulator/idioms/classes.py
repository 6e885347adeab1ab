"""The classes and types of tensors: legacy types, classes derived from `Tensor`."""

from __future__ import annotations

import copy

import torch
from torch import nn

from tests.simulator.idioms import Table

idiom = Table()
d = "cuda"


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
    assert copy.deepcopy(there).doubled().sum().item() == 12
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
