"""Classes derived from Tensor on a device: those that wrap tensors, parameters, parameters without a shape."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tests.simulator.cases.support import CPU, ONE, ZERO, raises

DEVICES = 2


class Pair(torch.Tensor):
    """Two tensors as one, as sharded and quantized tensors are."""

    @staticmethod
    def __new__(cls, first: torch.Tensor, second: torch.Tensor) -> Pair:
        options = {"dtype": first.dtype, "device": first.device, "requires_grad": first.requires_grad}
        return torch.Tensor._make_wrapper_subclass(cls, first.size(), strides=first.stride(), **options)

    def __init__(self, first: torch.Tensor, second: torch.Tensor) -> None:
        self.first, self.second = first, second

    def __tensor_flatten__(self) -> Any:
        return ["first", "second"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, torch.Tensor], context: Any, size: Any, stride: Any) -> Pair:
        return Pair(inner["first"], inner["second"])

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def half(name: str) -> Any:
            given = pytree.tree_map_only(Pair, lambda pair: getattr(pair, name), (args, kwargs or {}))
            return function(*given[0], **given[1])

        first, second = half("first"), half("second")
        return Pair(first, second) if isinstance(first, torch.Tensor) else first


class Scale(nn.Parameter):
    """A parameter of a class of its own."""

    def doubled(self) -> torch.Tensor:
        return self * 2


def _pair(device: torch.device) -> Pair:
    return Pair(torch.arange(4.0, device=device), torch.ones(4, device=device))


def case_a_tensor_that_wraps_others_is_where_they_are() -> None:
    pair = _pair(ONE)
    assert pair.device == ONE
    assert (pair.is_cuda, pair.get_device()) == (True, 1)
    assert pair.cpu().first.device == CPU
    assert not pair.cpu().is_cuda
    assert _pair(CPU).to(ZERO).second.device == ZERO


def case_a_tensor_that_wraps_others_is_indexed() -> None:
    pair = _pair(ZERO)
    assert pair[1:].first.tolist() == [1.0, 2.0, 3.0]
    assert pair[torch.tensor([2], device=ZERO)].first.tolist() == [2.0]
    assert pair[pair.first > 2].second.tolist() == [1.0]
    assert copy.deepcopy(pair).first.device == ZERO


def case_a_plain_tensor_leaves_the_operation_to_the_class() -> None:
    pair, plain = _pair(ZERO), torch.full((4,), 2.0, device=ZERO)
    for added in (plain + pair, pair + plain):
        assert type(added) is Pair
        assert added.first.tolist() == [2.0, 3.0, 4.0, 5.0]
    with raises(RuntimeError, "two devices, cpu and {0}!"):
        torch.ones(4) + pair


def case_gradients_and_modules_take_tensors_that_wrap_others() -> None:
    pair = _pair(ZERO).requires_grad_()
    (pair * 3).sum().backward()
    assert type(pair.grad) is Pair
    assert pair.grad.first.tolist() == [3.0] * 4
    layer = nn.Linear(4, 4)
    weight = layer.weight.detach()
    layer.weight = nn.Parameter(Pair(weight, weight.clone()), requires_grad=False)
    layer.to(ZERO)
    assert layer.weight.first.device == ZERO
    assert isinstance(layer.weight, nn.Parameter)
    assert type(layer(torch.ones(2, 4, device=ZERO))) is Pair


def case_a_parameter_is_made_of_a_tensor_in_every_way() -> None:
    tensor = torch.ones(3, device=ZERO)
    for made in (
        torch.Tensor._make_subclass(nn.Parameter, tensor, True),
        nn.Parameter(tensor),
        type(nn.Parameter(tensor))(tensor, requires_grad=True),
    ):
        assert isinstance(made, nn.Parameter)
        assert (made.requires_grad, made.is_leaf, made.device) == (True, True, ZERO)
        assert repr(made).startswith("Parameter containing:\ntensor([1., 1., 1.], device='cuda:0', requires_grad=True)")
    assert not torch.Tensor._make_subclass(nn.Parameter, tensor).requires_grad
    assert not isinstance(tensor, nn.Parameter)


def case_a_class_of_parameters_stays_one_where_it_moves() -> None:
    module = nn.Module()
    module.scale = Scale(torch.ones(3))
    identity = id(module.scale)
    module.to(ONE)
    assert id(module.scale) == identity
    for scale in (module.scale, Scale(torch.ones(3, device=ONE)), copy.deepcopy(module.scale)):
        assert isinstance(scale, Scale)
        assert scale.device == ONE
        assert scale.doubled().tolist() == [2.0, 2.0, 2.0]
    assert isinstance(pickle.loads(pickle.dumps(module.scale)), nn.Parameter)
    module.cpu()
    assert type(module.scale) is Scale
    assert module.scale.doubled().tolist() == [2.0, 2.0, 2.0]


def case_parameters_without_a_shape_are_on_their_device() -> None:
    for kind in (nn.UninitializedParameter, nn.parameter.UninitializedBuffer):
        empty = kind(device=ONE)
        assert isinstance(empty, kind)
        assert repr(empty) == f"<{kind.__name__}>"
        assert empty.device == copy.deepcopy(empty).device == ONE
        with raises(ValueError, "Attempted to use an uninitialized parameter in "):
            empty + 1
        empty.materialize((2, 3))
        assert (tuple(empty.size()), empty.device) == ((2, 3), ONE)
        assert not isinstance(empty, kind)
        assert isinstance(empty, nn.Parameter) == (kind is nn.UninitializedParameter)


def case_lazy_modules_are_made_on_a_device_and_moved() -> None:
    images = torch.ones(2, 3, 8, 8, device=ZERO)
    for make in (lambda **k: nn.LazyConv2d(4, 3, **k), nn.LazyBatchNorm2d, lambda **k: nn.LazyLinear(5, **k)):
        made, moved = make(device=ZERO), make().to(ZERO)
        for module in (made, moved, copy.deepcopy(made)):
            parameter = next(module.parameters())
            assert parameter.device == ZERO
            module(images).sum().backward()
            assert next(module.parameters()) is parameter
            assert type(parameter) is type(nn.Parameter(images))
            assert parameter.grad.device == ZERO
        assert moved.cpu()(images.cpu()).device == CPU
    back = nn.LazyLinear(5, device=ZERO).cpu()
    assert back.weight.device == CPU
    assert type(back(torch.ones(2, 3)).detach()) is torch.Tensor
    assert type(back.weight) is nn.Parameter
