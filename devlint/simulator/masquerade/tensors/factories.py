"""Functions that make tensors on a device by its name, where torch's dispatcher does not get to see it first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _device
from torch.utils.data import dataset

from devlint.auditor.patches import Patches
from devlint.simulator import devices, pinning
from devlint.simulator.masquerade.cuda import generators
from devlint.simulator.masquerade.tensors.methods import with_device

_MOVING = """
tensor as_tensor asarray
sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
""".split()
"""Functions of torch that make a tensor on the host and move it; all others reach the device by themselves."""
_WITH_OPTIONS = """
tensor empty zeros ones full rand randn randint randperm arange linspace eye empty_strided
empty_like zeros_like ones_like full_like rand_like randn_like randint_like
""".split()
"""Functions of torch with a keyword `pin_memory` or `generator`."""


def _checked(generator: torch.Generator | None, device: Any) -> None:
    """Raise as torch does where the generator is of another device than the tensor will be."""
    if generator is not None:
        wanted = "cpu" if devices.index_of(device or torch.get_default_device()) is None else "cuda"
        generators.check(generator, wanted)


def _on_host(device: Any) -> bool:
    """Whether that is where a tensor without pinned memory would be as well."""
    return torch.device(device or torch.get_default_device()).type == "cpu"


def _with_options(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if args and not isinstance(args[0], torch.Tensor):
            overriding = getattr(type(args[0]), "__torch_function__", None)
            if overriding is not None:
                # a class that looks functions up found this one in torch; one that was made earlier, torch's own
                found = overriding(wrapper, (type(args[0]),), args, kwargs)
                return function(*args, **kwargs) if found is NotImplemented else found
        if not name.endswith("_like"):
            _checked(kwargs.get("generator"), kwargs.get("device"))
        if kwargs.get("pin_memory") and _on_host(kwargs.get("device")):
            del kwargs["pin_memory"]
            return pinning.mark(function(*args, **kwargs))
        if name.endswith("_like") and kwargs.get("device") is not None and args and _is_compressed(args[0]):
            # C++ code makes one of its parts, and no operation gets to see it
            return function(*args, **{**kwargs, "device": args[0].device}).to(kwargs["device"])
        return function(*args, **kwargs)

    return wrapper


def _is_compressed(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout not in (torch.strided, torch.sparse_coo, torch.jagged)


def install(patches: Patches) -> None:
    """Translate the device in these functions and in `with torch.device("cuda")`."""
    context: Any = _device.DeviceContext
    original_function = context.__torch_function__
    constructors = _device._device_constructors()  # cached by torch, and so made before any of them is replaced

    def torch_function(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in constructors and not (kwargs and kwargs.get("device") is not None):
            kwargs = {**(kwargs or {}), "device": devices.behind(self.device)}
            _checked(kwargs.get("generator"), self.device)
        return original_function(self, func, types, args, kwargs)

    patches.set(context, "__torch_function__", torch_function)
    for name in sorted({*_MOVING, *_WITH_OPTIONS}):
        original = getattr(torch, name)
        replacement = with_device(original) if name in _MOVING else original
        if name in _WITH_OPTIONS:
            replacement = _with_options(replacement, name)
        patches.set(torch, name, replacement)
    patches.set(dataset, "randperm", torch.randperm)  # bound there before it was replaced
