"""Parameters that move to a device and stay the same objects, as they do between the CPU and CUDA."""

from __future__ import annotations

import copyreg
from typing import Any

import torch

from devlint.simulator.tensor import attributes_of, set_attributes


def install() -> None:
    """Let ``Module.to`` swap a parameter's contents with those of the moved one."""
    torch.__future__.set_swap_module_params_on_conversion(True)
    torch.utils.swap_tensors = swap


def _slots(tensor: Any) -> list[str]:
    """What a tensor keeps in slots, as sharded ones do."""
    names: list[str] = copyreg._slotnames(type(tensor))  # type: ignore[attr-defined]  # torch's own way
    return [name for name in names if hasattr(tensor, name)]


def swap(first: Any, second: Any) -> None:
    """Exchange what two tensors are; references to the objects, weak ones too, stay with the objects.

    Unlike torch's own, it does not refuse tensors that are weakly referenced or that a graph of autograd holds: CUDA
    takes those as well, and an optimizer or an audit is meant to follow the parameter.
    """
    for name in set(_slots(first)) & set(_slots(second)):
        value = getattr(first, name)
        setattr(first, name, getattr(second, name))
        setattr(second, name, value)
    first.__class__, second.__class__ = second.__class__, first.__class__
    ours, theirs = attributes_of(first), attributes_of(second)
    set_attributes(first, theirs)
    set_attributes(second, ours)
    torch._C._swap_tensor_impl(first, second)
