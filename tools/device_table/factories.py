"""Functions that make tensors, asked directly: with `device=`, under a default device, and from a source tensor."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.signal.windows

from tools.device_table import fake
from tools.device_table.fake import ACCELERATOR, CPU

# Arguments for the functions that make a tensor of nothing.
_FROM_NOTHING: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn"), ((2,),)),
    **dict.fromkeys(("torch.arange", "torch.eye", "torch.randperm"), (3,)),
    **dict.fromkeys(("torch.linspace", "torch.logspace"), (0, 1, 3)),
    **dict.fromkeys(("torch.tril_indices", "torch.triu_indices"), (2, 2)),
    **dict.fromkeys(("torch.fft.fftfreq", "torch.fft.rfftfreq"), (4,)),
    **dict.fromkeys(("torch.tensor", "torch.as_tensor", "torch.asarray"), ([1.0, 2.0],)),
    **{f"torch.{window}_window": (3,) for window in ("bartlett", "blackman", "hamming", "hann", "kaiser")},
    **{f"torch.signal.windows.{window}": (3,) for window in torch.signal.windows.__all__},
    "torch.full": ((2,), 1.0),
    "torch.range": (0, 3),
    "torch.randint": (5, (2,)),
    "torch.scalar_tensor": (1.0,),
    "torch.empty_strided": ((2,), (1,)),
    "torch.empty_permuted": ((2, 2), (0, 1)),
    "torch.normal": (0.0, 1.0, (2,)),
}
_FROM_NOTHING_KEYWORDS = {"torch.signal.windows.general_cosine": {"a": [0.5, 0.5]}}

# What follows the source tensor for the functions that make a tensor like another.
_FROM_TENSOR: dict[str, tuple[Any, ...]] = {
    **{f"torch.{name}_like": () for name in ("zeros", "ones", "empty", "rand", "randn")},
    "torch.full_like": (1.0,),
    "torch.randint_like": (5,),
    **{f"torch.Tensor.{name}": ((2,),) for name in ("new_zeros", "new_ones", "new_empty")},
    "torch.Tensor.new_full": ((2,), 1.0),
    "torch.Tensor.new_tensor": ([1.0, 2.0],),
    "torch.Tensor.new_empty_strided": ((2,), (1,)),
    "torch.Tensor.new": (2,),
}


@dataclass(frozen=True)
class Factory:
    """What a function that makes tensors was seen to do."""

    rule: str
    device_kwarg: bool
    honours_default_device: bool


def probe(name: str, function: Any) -> Factory | None:
    """Run a factory in the ways that tell; None for a function that is not one."""
    if name in _FROM_NOTHING:
        arguments, keywords = _FROM_NOTHING[name], _FROM_NOTHING_KEYWORDS.get(name, {})
        return _probe_from_nothing(lambda **device: function(*arguments, **keywords, **device))
    if name in _FROM_TENSOR:
        arguments = _FROM_TENSOR[name]
        return _probe_from_tensor(lambda source, **device: function(source, *arguments, **device))
    return None


def _probe_from_nothing(make: Callable[..., Any]) -> Factory:
    takes_device = _where(lambda: make(device=ACCELERATOR)) == "gpu"
    follows_default = _where(make, default=ACCELERATOR) == "gpu"
    rule = "default_or_kwarg" if takes_device else "default" if follows_default else "cpu"
    return Factory(rule, takes_device, follows_default)


def _probe_from_tensor(make: Callable[..., Any]) -> Factory:
    def from_cpu(**device: torch.device) -> Any:
        return make(torch.empty(2, device=CPU), **device)

    takes_device = _where(lambda: from_cpu(device=ACCELERATOR)) == "gpu"
    follows_default = _where(from_cpu, default=ACCELERATOR) == "gpu"
    follows_source = _where(lambda: make(torch.empty(2, device=ACCELERATOR))) == "gpu"
    return Factory("like_input_or_kwarg" if follows_source else "cpu", takes_device, follows_default)


def _where(make: Callable[..., Any], default: torch.device | None = None) -> str | None:
    """The device of what is made, under that default device; None if the call is not allowed."""
    default_device: AbstractContextManager[Any] = nullcontext() if default is None else default
    try:
        with fake.lenient_mode(), default_device:
            return fake.device_of(make())
    except Exception:  # C++ functions reject an unknown `device=` in many ways
        return None
