"""Arguments: what a function is called with, to see what it does with devices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from devlint.flow.catalog.schema import Row

PLACES = ("cpu", "cuda")
"""Where the tensors are that are put in, one after the other."""
_MODULES = frozenset({"model", "module", "net", "network", "inner", "backbone"})
_LOADERS = frozenset({"loader", "dataloader", "data_loader", "train_loader"})
_DEVICES = frozenset({"device", "map_location"})


@dataclass(frozen=True)
class Given:
    """The arguments of a call, and where the tensors among them are."""

    place: str
    positional: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()

    def at(self, stated: str) -> Any:
        """The argument of a name, or at a position; a LookupError says that there is none."""
        position = int(stated) if stated.isdigit() else -1
        if 0 <= position < len(self.positional):
            return self.positional[position]
        name = self.parameters[position] if position >= 0 else stated
        return self.named[name] if name in self.named else self.positional[self.parameters.index(name)]


def tensor(place: str) -> torch.Tensor:
    """A tensor somewhere."""
    return torch.ones(4, 4, device=place)


def module(place: str) -> nn.Module:
    """A module somewhere."""
    return nn.Linear(4, 4).to(place)


def loader(place: str) -> DataLoader[Any]:
    """A loader whose batches are somewhere."""
    return DataLoader(TensorDataset(tensor(place), tensor(place)), batch_size=2)


def mapping(place: str) -> dict[str, torch.Tensor]:
    """A batch as a dict."""
    return {"x": tensor(place)}


KINDS: tuple[Callable[[str], Any], ...] = (tensor, module, mapping, loader)
"""What is tried where nothing says what a function takes."""


def of(row: Row, function: Callable[..., Any], place: str, device: str) -> Iterator[Given]:
    """The arguments to try, with tensors at ``place`` and, where a device is asked for, ``device``."""
    parameters = row.parameters or _parameters(function)
    if row.example:
        words = {"torch": torch, "nn": nn, "x": tensor(place), "model": module(place), "device": device}
        positional, named = eval(f"(lambda *args, **kwargs: (args, kwargs))({row.example})", words)
        yield Given(place, positional, named, parameters)
        return
    needed = list(_required(function, row))
    asked = row.place.removeprefix("argument:") if row.place.startswith("argument:") else row.device_argument
    for kind in KINDS:
        made = {name: _value(name, kind, place, device, asked) for name in needed}
        if asked and asked not in made and asked in parameters:
            made[asked] = device
        yield Given(place, (), made, parameters)


def _value(name: str, kind: Callable[[str], Any], place: str, device: str, asked: str) -> Any:
    if name == asked or name in _DEVICES:
        return device
    if name in _MODULES:
        return module(place)
    return loader(place) if name in _LOADERS else kind(place)


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The positional parameters, as far as Python knows them."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(one.name for one in found if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD))


def _required(function: Callable[..., Any], row: Row) -> Iterator[str]:
    """The parameters that have no default."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        yield from row.parameters[:1]
        return
    for one in found:
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            yield one.name
