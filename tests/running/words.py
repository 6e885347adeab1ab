"""More words for `# run:` comments: models, data and objects that the cases of the later rules are called with."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.running.arguments import filled

PLACE = [torch.device("cpu")]
"""Where models are made: the accelerator of the machine, if it has one."""


class Score(nn.Module):
    """Any tensors to one number, which depends on a parameter."""

    def __init__(self, place: Any = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.to(place or PLACE[0])

    def forward(self, *tensors: Any, **named: Any) -> Any:
        """Their means, weighted and in sum."""
        found = [value for value in (*tensors, *named.values()) if isinstance(value, torch.Tensor)]
        return sum(tensor.float().mean() * self.weight for tensor in found)


class AnyPlace(Score):
    """The same for tensors that are on several devices."""

    def forward(self, *tensors: Any, **named: Any) -> Any:
        """Their means, on the device of the model."""
        return super().forward(*(tensor.to(PLACE[0]) for tensor in tensors), **named)


class Layers(nn.Module):
    """Layers on the host, which somebody else calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What came out of them."""
        return x


class Short(Score):
    """A model for which memory never suffices."""

    def forward(self, *tensors: Any, **named: Any) -> Any:
        """Raises as an accelerator does."""
        raise torch.OutOfMemoryError("out of memory")


def net(outputs: int = 2) -> nn.Linear:
    """A model of 8 inputs."""
    return nn.Linear(8, outputs).to(PLACE[0])


def losing(model: nn.Module) -> nn.Module:
    """The model, when it returns an object with a loss."""
    linear = model.forward
    model.forward = lambda x: SimpleNamespace(loss=linear(x).sum())  # type: ignore[method-assign]  # of this one only
    return model


def sgd(model: nn.Module | None = None) -> torch.optim.Optimizer:
    """An optimizer."""
    return torch.optim.SGD((model or nn.Linear(1, 1)).parameters(), 0.1)


class Rows(Dataset[Any]):
    """Rows of 8 floats, made one by one: of ones, or what a function makes of the number."""

    def __init__(self, n: int = 16, make: Callable[[int], Any] = lambda i: torch.full((8,), float(i))) -> None:
        self.n, self.make = n, make

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


def rows(n: int = 16, width: int = 8) -> torch.Tensor:
    """Rows of floats, on the host."""
    return torch.arange(n * float(width)).view(n, width) / 8


def singles(n: int = 16, width: int = 8) -> DataLoader[Any]:
    """Batches of 4 rows, and nothing else."""
    return DataLoader(rows(n, width), batch_size=4)  # type: ignore[arg-type]  # a tensor will do for a data set


def pairs(n: int = 16, width: int = 8) -> DataLoader[Any]:
    """Batches of 4 rows and their classes."""
    return DataLoader(TensorDataset(rows(n, width), torch.arange(n) % 2), batch_size=4)


def files(*names: str) -> list[str]:
    """Files with a tensor each."""
    names = names or tuple(f"{number}.pt" for number in range(8))
    for name in names:
        torch.save(torch.ones(8), name)
    return list(names)


def arrays() -> list[str]:
    """Files with an array each."""
    names = [f"{number}.npy" for number in range(4)]
    for name in names:
        np.save(name, np.ones(3, dtype="float32"))
    return names


def consumed(loaders: Iterable[Iterable[Any]], device: Any = None) -> list[Any]:
    """All batches of some loaders, copied to a device if one is given."""
    found = []
    for loader in loaders:
        for batch in loader:
            parts = batch if isinstance(batch, list | tuple) else [batch]
            found.append([part if device is None else part.to(device) for part in parts])
    return found


def times(number: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What so many calls return."""
    return [function(*arguments) for _ in range(number)]


def outputs(model: Callable[..., Any]) -> Any:
    """What a model makes of four rows of the host."""
    return model(torch.ones(4, 8))


def reduced(model: Any, device: Any = None) -> int:
    """How many buckets of gradients a DDP sends round in a step."""
    sent = []

    def hook(state, bucket):  # type: ignore[no-untyped-def]  # torch wants its own annotations or none
        sent.append(bucket.index())
        future: Any = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    model.register_comm_hook(None, hook)
    model(torch.ones(4, 8, device=device or PLACE[0])).sum().backward()
    return len(sent)


def ranked(call: Callable[[], Any], rank: int = 0, group: bool = True) -> Any:
    """What a function returns in one of two processes; the other one is only imagined.

    Without a `group`, the code is to make one; whichever it asks for, it gets an imagined one.
    """
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
    if group:
        torch.distributed.init_process_group("fake", store=imagined_store(), rank=rank, world_size=2)
    return call()


def imagined_store() -> Any:
    """What the backend "fake" takes for a store."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    return FakeStore()


class Moved:
    """What is no tensor and has a `.to`: it moves what it holds, and returns itself."""

    def __init__(self) -> None:
        self.x = torch.ones(3)

    def to(self, device: Any) -> Moved:
        """Move all of it."""
        for name, value in vars(self).items():
            setattr(self, name, value.to(device))
        return self

    def renewed(self) -> Moved:
        """With another part of the host."""
        self.mask = torch.ones(3)
        return self


def restored(holder: Any) -> Any:
    """What was taken away and brought back."""
    holder.offload()
    return holder.restore()


def denoised(schedule: Any, *noise: Any) -> Any:
    """What three steps of a schedule make of a tensor."""
    x = torch.ones(4, device=PLACE[0])
    for step in range(3):
        x = schedule.noisy(x, *noise, torch.tensor([step], device=PLACE[0]))
    return x


def sampling(kind: type[Any]) -> Any:
    """An object whose methods nobody wrote."""
    sampler = kind()
    sampler.encode = lambda mask: mask
    sampler.denoise = lambda latents, now, lengths=None: latents * 0.9
    sampler.guide = lambda latents, now: latents
    sampler.report = lambda values: None
    sampler.finished = lambda step: False
    sampler.interrupted, sampler.guided, sampler.last = False, True, 3
    return sampler


def after(thing: Any, call: Callable[[Any], Any]) -> Any:
    """An object that something was done with."""
    call(thing)
    return thing


def preparing(device: Any) -> Any:
    """What moves the batches of a loader, as accelerate does."""
    prepare = lambda loader: [[part.to(device, non_blocking=True) for part in batch] for batch in loader]  # noqa: E731  # as an attribute
    return SimpleNamespace(prepare=prepare, backward=torch.Tensor.backward)


@contextmanager
def saved_on_cuda() -> Iterator[None]:
    """Files that are saved in here say that their tensors were on CUDA."""
    serialization: Any = torch.serialization
    original = serialization.location_tag
    serialization.location_tag = lambda storage: "cuda:0"
    try:
        yield
    finally:
        serialization.location_tag = original


def checkpoint(name: str = "model.pt", value: Any = None) -> str:
    """A file that was saved on a machine with CUDA: the weights of a `net`, if nothing else is given."""
    with saved_on_cuda():
        torch.save(nn.Linear(8, 2).state_dict() if value is None else value, name)
    return name


def url(path: str) -> str:
    """An address for a file, in a cache of its own."""
    torch.hub.set_dir(os.path.abspath("hub"))
    return f"file://{os.path.abspath(path)}"


def words() -> dict[str, Any]:
    """All of them by name."""
    made = {name: value for name, value in globals().items() if getattr(value, "__module__", "") == __name__}
    return {**made, "Path": Path}


def filling(function: Any, machine: str) -> Any:
    """The function, called with conventional values for the parameters that are not given."""
    if not inspect.isfunction(function) or function.__module__ != "fixture.case":
        return function

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        bound = inspect.signature(function).bind_partial(*arguments, **named)
        return function(*arguments, **named, **filled(function, machine, bound.arguments))

    return call
