"""What the cases of the fixtures are called with: the words of `# run:` comments, and values by a parameter's name."""

from __future__ import annotations

import argparse
import asyncio
import inspect
import os
import pickle
import socket
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

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


def there(*size: int) -> torch.Tensor:
    """Random numbers on the accelerator, or on the host where there is none."""
    return torch.rand(*size, device="cuda" if torch.cuda.is_available() else "cpu")


def each_method(thing: Any, *args: Any, but: Sequence[str] = ()) -> None:
    """Call all public methods of the object's own class."""
    for name in vars(type(thing)):
        if not name.startswith("_") and name not in but:
            getattr(thing, name)(*args)


def alone(backend: str = "") -> bool:
    """Make this the only process of a distributed run, and open its process group if a backend is named."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    if backend:
        torch.distributed.init_process_group(backend)
    return True


def scattered(values: torch.Tensor, index: torch.Tensor, dim_size: int = 4) -> torch.Tensor:
    """Sums of the values by index: what such functions of other libraries do."""
    return torch.zeros(dim_size, device=index.device).scatter_add(0, index, values)


def given(target: Any, **names: Any) -> Any:
    """The target, once a function has these globals, or another object these attributes."""
    if isinstance(target, FunctionType):
        inspect.unwrap(target).__globals__.update(names)
    else:
        for name, value in names.items():
            setattr(target, name, value)
    return target


def under(device: Any, function: Callable[..., Any], *args: Any) -> Any:
    """What the function returns where the device is torch's default."""
    with torch.device(device):
        return function(*args)


def overwriting(function: Callable[..., Any], *args: Any) -> Any:
    """What the function returns where modules that are moved get new parameters, as they do for some accelerators."""
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    return function(*args)


def stepped(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimizer after a step, with the state that it has by then."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            weight.grad = torch.zeros_like(weight)
    optimizer.step()
    return optimizer


def saved(value: Any, path: str) -> str:
    """The path of a file in which a value has been saved, in the way that its ending says."""
    if path.endswith(".npy"):
        np.save(path, value)
    elif path.endswith(".pkl"):
        Path(path).write_bytes(pickle.dumps(value))
    else:
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
    made = (
        *(tensor_dataset, loader, batches, there, command, each_method, given, under, saved),
        *(overwriting, stepped, accelerator, alone, scattered),
    )
    device = torch.device("cpu" if machine == "host" else "cuda")
    made_too = _more_words(device)
    return {
        **words,
        **{function.__name__: function for function in made},
        **made_too,
        "Namespace": SimpleNamespace,
        "asyncio": asyncio,
        "argparse": argparse,
        "Mock": MagicMock,
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
