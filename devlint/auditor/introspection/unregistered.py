"""Tensors and modules that a module holds without having registered them, so that ``.to()`` leaves them alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from torch import nn

from devlint.auditor.introspection.tensors import (
    all_tensors,
    device_of,
    fields,
    is_managed,
    is_placed,
    is_plain,
    members,
    storage_of,
    walk,
)

_OWN = frozenset(vars(nn.Module()))
_DEPTH = 2
"""Lists of lists are looked into, not deeper."""


class Held(NamedTuple):
    """Something that ``owner`` holds in its attribute ``name``, or in a container there."""

    owner: nn.Module
    path: str
    """The path of the owner from the outermost module."""
    name: str
    keys: tuple[str, ...]
    """Where it is in the container, by key or, where no key can be written down, by number; empty if it is in none."""
    container: Literal["", "list", "tuple", "dict"]
    value: torch.Tensor | nn.Module

    @property
    def text(self) -> str:
        """Its path as torch would write it if it were registered: ``encoder.heads.0``."""
        return ".".join([part for part in (self.path, self.name) if part] + [*self.keys])

    @property
    def tensors(self) -> list[torch.Tensor]:
        """Itself, or the parameters and buffers of the module."""
        if isinstance(self.value, torch.Tensor):
            return [self.value]
        return [tensor for _, tensor in all_tensors(self.value)]

    @property
    def device(self) -> str:
        """Where it is, by its first tensor."""
        return device_of(self.tensors[0])


def unregistered(root: nn.Module) -> Iterator[Held]:
    """Everything with tensors that a module of ``root`` holds and none of them registers.

    A view of a registered tensor and a second reference to a registered module are none; nor are tensors without
    dimensions on the CPU.
    """
    modules = list(walk(root))
    known = {id(module) for _, module in modules}
    storages = {storage_of(tensor) for _, tensor in all_tensors(root)}
    for path, module in modules:
        for name, value in list(fields(module).items()):
            if name not in _OWN:
                yield from _held(Held(module, path, name, (), "", nn.Identity()), value, known, storages, _DEPTH)


def _held(at: Held, value: object, known: set[int], storages: set[int], depth: int) -> Iterator[Held]:
    if isinstance(value, torch.Tensor):
        if is_placed(value) and storage_of(value) not in storages:
            yield at._replace(value=value)
    elif isinstance(value, nn.Module):
        tensors = [tensor for _, tensor in all_tensors(value)]
        # the parent of what refers to it, such as the trainer's wrapper around the model, is not held by that
        parent = any(id(inner) in known for _, inner in walk(value))
        if not parent and tensors and not all(map(is_managed, tensors)):
            yield at._replace(value=value)
    elif depth > 0 and isinstance(value, (list, tuple, dict)):
        kind: Literal["list", "tuple", "dict"]
        kind = "list" if isinstance(value, list) else "tuple" if isinstance(value, tuple) else "dict"
        for number, (key, _, item) in enumerate(members(value)):
            keys = (*at.keys, str(key if is_plain(key) else number))
            inner = at._replace(keys=keys, container=at.container or kind)
            yield from _held(inner, item, known, storages, depth - 1)
