"""The classes of torch.nn: whether they hold parameters and buffers, and which of their arguments become buffers."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_modules import module_db

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

# What containers hold is up to the user, so nothing can be said of the class; the last two are deprecated.
_LEFT_OUT = frozenset(
    {
        "DataParallel",
        "Module",
        "ModuleDict",
        "ModuleList",
        "ParameterDict",
        "ParameterList",
        "Sequential",
        "Container",
        "NLLLoss2d",
    }
)

# Constructor arguments of classes that torch's own test suite has no samples for and that need some.
_REQUIRED: dict[str, tuple[Any, ...]] = {
    "AdaptiveLogSoftmaxWithLoss": (8, 12, [4]),
    "ChannelShuffle": (2,),
    "CrossMapLRN2d": (2,),
    "EmbeddingBag": (4, 2),
    "Fold": (4, 2),
    "LazyLinear": (4,),
    "MaxUnpool1d": (2,),
    "MaxUnpool2d": (2,),
    "MaxUnpool3d": (2,),
    "PixelShuffle": (2,),
    "PixelUnshuffle": (2,),
    "RNNBase": ("LSTM", 4, 4),
    "RNNCellBase": (4, 4, True, 1),
    "SyncBatchNorm": (4,),
    "TransformerDecoder": (nn.TransformerDecoderLayer(4, 2), 1),
    "Unflatten": (1, (2, 2)),
    "Unfold": (2,),
}


def modules() -> dict[str, dict[str, Any]]:
    """The facts of each class by name."""
    samples = {info.module_cls: _samples(info) for info in module_db}
    for cls in _public_classes():
        if cls not in samples:
            samples[cls] = [(_REQUIRED.get(cls.__name__, ()), {})]
    return {f"torch.nn.{cls.__name__}": _facts(cls, calls) for cls, calls in samples.items()}


def _public_classes() -> list[type[nn.Module]]:
    return [
        value
        for name, value in vars(nn).items()
        if inspect.isclass(value) and issubclass(value, nn.Module) and name not in _LEFT_OUT
    ]


def _samples(info: Any) -> list[Arguments]:
    inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True)
    return [(sample.constructor_input.args, sample.constructor_input.kwargs) for sample in inputs]


def _facts(cls: type[nn.Module], samples: list[Arguments]) -> dict[str, Any]:
    made = [cls(*arguments, **keywords) for arguments, keywords in samples]
    buffer_arguments = _buffer_arguments(cls, *samples[0])
    return {
        "has_params": any(True for module in made for _ in module.parameters()),
        "has_buffers": bool(buffer_arguments) or any(True for module in made for _ in module.buffers()),
        "device_kwarg": _takes_device(cls, *samples[0]),
        "buffer_arguments": buffer_arguments,
    }


def _takes_device(cls: type[nn.Module], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Asked by construction: recurrent modules pass the keyword on without naming it."""
    try:
        cls(*arguments, **{**keywords, "device": torch.device("cpu")})
    except TypeError:
        return False
    return True


def _buffer_arguments(cls: type[nn.Module], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> frozenset[str]:
    """The tensors among the constructor's arguments which the module then holds as a buffer of that name."""
    found = set()
    for parameter in inspect.signature(cls).parameters.values():
        if "Tensor" not in str(parameter.annotation) or parameter.default is not None:
            continue
        try:
            module = cls(*arguments, **{**keywords, parameter.name: torch.ones(2)})
        except (TypeError, ValueError, RuntimeError, AssertionError):
            continue
        if parameter.name in dict(module.named_buffers()):
            found.add(parameter.name)
    return frozenset(found)
