"""How to find the tensors in whatever holds them.

Nothing here runs code of the script: attributes are read from ``__dict__``, containers through the methods of the
built-in types.
"""

from __future__ import annotations

import types
from collections import UserDict
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

_DEPTH = 4
_WIDTH = 64
"""So many elements of a container are looked at."""
_OPAQUE = (type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.CodeType)
_PLAIN = (str, bytes, int, float, bool, type(None), torch.device, torch.dtype)


def device_of(tensor: torch.Tensor) -> str:
    """Its device as torch writes it: ``cuda:0``."""
    return str(tensor.device)


def fields(value: object) -> dict[str, Any]:
    """The attributes that an instance holds itself, without asking its class; an empty dict if it has none."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


def is_plain(key: object) -> bool:
    """Whether a key of a dict can be written down: that of anything but plain data is code of the script, or a read."""
    return type(key) in _PLAIN or (type(key) is tuple and all(is_plain(part) for part in key))


def members(value: object) -> Iterator[tuple[object, str, Any]]:
    """What a container or an object directly holds: key, how code reaches it (``[0]``, ``['x']``, ``.x``), value.

    Containers are lists, tuples, named tuples, dicts and what is derived from them (``ModelOutput``), ``UserDict``
    (``BatchEncoding``); of any other object, such as a dataclass, its own attributes.
    """
    if isinstance(value, UserDict):
        value = fields(value).get("data")
    if isinstance(value, dict):
        for key, item in list(dict.items(value))[:_WIDTH]:
            yield key, f"[{key!r}]" if is_plain(key) else "[...]", item
    elif isinstance(value, (list, tuple)):
        names = getattr(type(value), "_fields", ()) if isinstance(value, tuple) else ()
        base: Any = tuple if isinstance(value, tuple) else list
        for index, item in enumerate(base.__iter__(value)):
            if index >= _WIDTH:
                break
            name = names[index] if index < len(names) else None
            yield index, f"[{index}]" if name is None else f".{name}", item
    elif not isinstance(value, _OPAQUE):
        for name, item in [*_slots(value), *list(fields(value).items())][:_WIDTH]:
            yield name, f".{name}", item


def leaves(value: object, text: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in a value, however nested, each with how code reaches it; modules are not entered."""
    if isinstance(value, torch.Tensor):
        yield text, value
    elif depth > 0 and not isinstance(value, (str, bytes, int, float, complex, nn.Module, type(None))):
        for _, access, item in members(value):
            yield from leaves(item, text + access, depth - 1)


def _slots(value: object) -> Iterator[tuple[str, Any]]:
    for cls in type(value).__mro__:
        for name, slot in vars(cls).items():
            # the slot's own descriptor reads memory and nothing else
            if isinstance(slot, types.MemberDescriptorType) and cls.__module__ != "builtins":
                try:
                    yield name, slot.__get__(value)
                except AttributeError:  # never assigned
                    continue


def own_tensors(
    module: nn.Module, kinds: Iterable[str] = ("_parameters", "_buffers")
) -> Iterator[tuple[str, torch.Tensor]]:
    """The parameters and buffers that a module registers itself, not those of the modules in it."""
    own = fields(module)
    for kind in kinds:
        for name, tensor in (own.get(kind) or {}).items():
            if isinstance(tensor, torch.Tensor):
                yield name, tensor


def children(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The modules that a module registers itself."""
    for name, child in (fields(module).get("_modules") or {}).items():
        if isinstance(child, nn.Module):
            yield name, child


def walk(root: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """All modules registered in ``root``, that one first, each once and with its path."""
    seen = {id(root)}
    waiting = [("", root)]
    while waiting:
        path, module = waiting.pop()
        yield path, module
        found = []
        for name, child in children(module):
            if id(child) not in seen:
                seen.add(id(child))
                found.append((f"{path}.{name}" if path else name, child))
        waiting += reversed(found)


def all_tensors(root: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The parameters and buffers of a module and of all modules in it, with their paths."""
    for path, module in walk(root):
        for name, tensor in own_tensors(module):
            yield f"{path}.{name}" if path else name, tensor


def path_of(root: nn.Module, module: nn.Module) -> str | None:
    """The path of a registered module, ``None`` if ``root`` does not register it."""
    return next((path for path, found in walk(root) if found is module), None)


def owner_of(root: nn.Module, tensor: torch.Tensor) -> nn.Module | None:
    """The module that registers a parameter or buffer."""
    return next((module for _, module in walk(root) for _, found in own_tensors(module) if found is tensor), None)


def is_placed(tensor: torch.Tensor) -> bool:
    """Whether it has to be on one device with what it meets: neither managed nor a scalar of the host."""
    return not is_managed(tensor) and not is_scalar(tensor)


def is_managed(tensor: torch.Tensor) -> bool:
    """Whether something else decides where it is: it has no data (``meta``, a freed shard), or is distributed."""
    without_data = tensor.device.type == "meta" or type(tensor).__name__ in ("DTensor", "FlatParameter")
    return without_data or tensor.numel() == 0


def is_scalar(tensor: torch.Tensor) -> bool:
    """Whether it is a 0-dim tensor on the CPU, which may meet tensors on any device."""
    return tensor.dim() == 0 and tensor.device.type == "cpu"


def describe(tensor: torch.Tensor) -> str:
    """Dtype and shape: ``float32[64, 3, 32, 32]``."""
    return f"{dtype_name(tensor.dtype)}{list(tensor.shape)}"


def dtype_name(dtype: torch.dtype) -> str:
    """Its name without that of torch: ``float32``."""
    return str(dtype).removeprefix("torch.")


def home(module: nn.Module) -> str:
    """The one device of what a module and the modules in it register, empty if there is none or more than one."""
    found = {device_of(tensor) for _, tensor in all_tensors(module) if is_placed(tensor)}
    return found.pop() if len(found) == 1 else ""


def storage_of(tensor: torch.Tensor) -> int:
    """What identifies the memory of a tensor while it lives: the ``_cdata`` of its storage."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError, AttributeError):  # sparse, or a wrapper without storage
        return id(tensor)
