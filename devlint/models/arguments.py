"""Arguments: what a function is called with, to see what it does with devices."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from devlint.flow.catalog.schema import Row

PLACES = ("cpu", "cuda")
"""Where the tensors are that are put in, one after the other."""
_KINDS = ("x", "model", "batch", "loader", "4")
"""What is tried where nothing says what a function takes."""
_KINDS_OF_CLASSES = ("4", "model", "loader", "batch", "x")
"""The same for a class, most of which are made of numbers."""
_BY_NAME = {
    **dict.fromkeys(("model", "module", "net", "network", "backbone"), "model"),
    **dict.fromkeys(("loader", "dataloader", "data_loader", "train_loader"), "loader"),
    **dict.fromkeys(("device", "map_location"), "device"),
}
_BY_ANNOTATION = {
    "int": "4", "float": "1.0", "bool": "True", "str": "'x'", "Tensor": "x", "Module": "model", "DataLoader": "loader",
    "dict": "batch", "device": "device",
}  # fmt: skip

ERRORS = (Exception, SystemExit)
"""What somebody else's code may raise."""


class CannotCallError(Exception):
    """There is no way to call it; the text says why."""


@dataclass(frozen=True)
class Given:
    """The arguments of a call, and where the tensors among them are."""

    place: str
    device: str
    text: str
    """How they are written, as `example` does."""
    positional: tuple[Any, ...]
    named: dict[str, Any]
    parameters: tuple[str, ...]

    def name(self, stated: str) -> str:
        """The name of the parameter at a position, where it is one that has a name."""
        known = stated.isdigit() and int(stated) < len(self.parameters)
        return self.parameters[int(stated)] if known else stated

    def all(self) -> dict[str, Any]:
        """Each argument by the name of its parameter, or by its position."""
        names = (*self.parameters, *map(str, range(len(self.parameters), len(self.positional))))
        return {**dict(zip(names, self.positional, strict=False)), **self.named}


def made(text: str, place: str, device: str, named: tuple[str, ...]) -> Given:
    """The arguments that a text stands for; a :class:`CannotCallError` says that it stands for none."""
    x, model = torch.ones(4, 4, device=place), nn.Linear(4, 4).to(place)
    loader = DataLoader(TensorDataset(x, x), batch_size=2)
    words = {"torch": torch, "nn": nn, "x": x, "model": model, "batch": {"x": x}, "loader": loader, "device": device}
    try:
        positional, keywords = eval(f"(lambda *args, **kwargs: (args, kwargs))({text})", words)
    except ERRORS as error:
        raise CannotCallError(f"its arguments ({text}) are none: {said(error)}") from error
    return Given(place, device, text, positional, keywords, named)


def texts(row: Row, function: Callable[..., Any]) -> list[str]:
    """What to call it with: what the row says, else what the parameters' names and annotations make likely."""
    if row.example:
        return [row.example]
    kinds = _KINDS_OF_CLASSES if isinstance(function, type) else _KINDS
    known = _signature(function)
    if known is None:
        return [*kinds, ""]
    asked = row.place.removeprefix("argument:") if row.place.startswith("argument:") else row.device_argument
    needed = [one for one in known if one.default is one.empty or one.name == asked]
    given = [(one, _hinted(one) or ("device" if one.name == asked else "")) for one in needed]
    written = (
        ", ".join(f"{'' if one.kind is one.POSITIONAL_ONLY else f'{one.name}='}{word or kind}" for one, word in given)
        for kind in kinds
    )
    return list(dict.fromkeys(written))


def _hinted(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    said = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return _BY_NAME.get(parameter.name, "") or _BY_ANNOTATION.get(said.rpartition(".")[2], "")


def device_parameter(function: Callable[..., Any]) -> tuple[str, bool]:
    """The parameter that takes a device, and whether it has to be given."""
    found = [(one.name, one.default is one.empty) for one in _signature(function) or () if _hinted(one) == "device"]
    return found[0] if found else ("", False)


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The positional parameters, as far as Python knows them."""
    return tuple(one.name for one in _signature(function) or () if one.kind is not one.KEYWORD_ONLY)


def _signature(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters, ``None`` where Python does not know them."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [one for one in found if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]


def said(error: BaseException | None) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
