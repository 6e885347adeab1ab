"""What the cases of the fixtures are called with: the words of `# run:` comments, and values by a parameter's name."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

Values = dict[str, Callable[[], Any]]


class Unfilled(Exception):
    """Nothing is known to pass for a parameter: the case needs a `# run:`."""


def tensor_dataset(n: int = 16) -> TensorDataset:
    """Rows of 8 floats with a class from 0 to 1 each, on the host."""
    return TensorDataset(torch.randn(n, 8), torch.arange(n) % 2)


def loader(n: int = 16, **options: Any) -> DataLoader[Any]:
    """Batches of 4 of a `tensor_dataset`, pinned where there is an accelerator, unless the options say otherwise."""
    return DataLoader(tensor_dataset(n), **{"batch_size": 4, "pin_memory": torch.cuda.is_available(), **options})


def batches(n: int = 3) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Batches in a list: pairs of 4 rows and their classes, on the host."""
    return [(torch.randn(4, 8), torch.arange(4) % 2) for _ in range(n)]


def command(main: Callable[[], Any], *words: str) -> Any:
    """What a function returns that reads the command line."""
    sys.argv[1:] = words
    return main()


def given(target: Any, **names: Any) -> Any:
    """The target, once a function has these globals, or another object these attributes."""
    if isinstance(target, FunctionType):
        target.__globals__.update(names)
    else:
        for name, value in names.items():
            setattr(target, name, value)
    return target


def under(device: Any, function: Callable[..., Any], *args: Any) -> Any:
    """What the function returns where the device is torch's default."""
    with torch.device(device):
        return function(*args)


def saved(value: Any, path: str) -> str:
    """The path of a file in which a value has been saved."""
    torch.save(value, path)
    return path


def accelerator() -> Any:
    """The one of Hugging Face's `accelerate`."""
    from accelerate import Accelerator

    return Accelerator()


def vocabulary(machine: str) -> dict[str, Any]:
    """The names in a `# run:`, besides those of the file, which come first.

    ``cuda`` is the accelerator, and the host itself on a machine that has none.
    """
    words = {"torch": torch, "nn": nn, "F": F, "np": np, "TensorDataset": TensorDataset, "DataLoader": DataLoader}
    made = (tensor_dataset, loader, batches, command, given, under, saved, accelerator)
    device = torch.device("cpu" if machine == "host" else "cuda")
    made_too = _more_words(device)
    return {
        **words,
        **{function.__name__: function for function in made},
        **made_too,
        "Namespace": SimpleNamespace,
        "cuda": device,
    }


def _more_words(device: torch.device) -> dict[str, Any]:
    from tests.running import words

    words.PLACE[0] = device
    return words.words()


def conventional(machine: str) -> Values:
    """What is passed for a parameter of that name where a case has no `# run:`."""
    device = vocabulary(machine)["cuda"]
    values: Values = {
        "device": lambda: device,
        "x": lambda: torch.rand(4, 8, device=device),
        "y": lambda: torch.rand(4, 8, device=device),
        "inputs": lambda: torch.rand(4, 8, device=device),
        "logits": lambda: torch.rand(4, 2, device=device),
        "labels": lambda: torch.arange(4, device=device) % 2,
        "model": lambda: nn.Linear(8, 2).to(device),
        "criterion": lambda: nn.CrossEntropyLoss(),
        "dataset": tensor_dataset,
        "loader": loader,
        "dataloader": loader,
        "batches": batches,
        "width": lambda: 8,
        "length": lambda: 8,
        "n": lambda: 4,
        "rank": lambda: 0,
        "seed": lambda: 0,
        "steps": lambda: 3,
        "epochs": lambda: 2,
        "optimizer": lambda: torch.optim.SGD(nn.Linear(1, 1).parameters(), 0.1),
        "loss_fn": lambda: F.cross_entropy,
        "size": lambda: 4,
        "count": lambda: 4,
        "flag": lambda: True,
        "gpu": lambda: 0,
        "value": lambda: 1.0,
        "enabled": lambda: False,
        "index": lambda: 0,
    }
    return values


def filled(function: Callable[..., Any], machine: str, given: Collection[str] = ()) -> dict[str, Any]:
    """Values for the parameters that have no default and are not given, by name."""
    known = conventional(machine)
    needed = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.name not in given
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    unknown = [name for name in needed if name not in known]
    if unknown:
        raise Unfilled(f"nothing is known to pass for {', '.join(unknown)}: give it a `# run:`")
    values = {name: known[name]() for name in needed}
    if {"model", "loader"} <= set(needed) and "device" not in inspect.signature(function).parameters:
        values["model"].cpu()  # where the batches are
    return values
