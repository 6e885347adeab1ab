"""Training loops of many shapes, on the CPU, with the steps that they make."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

cross_entropy = nn.functional.cross_entropy


def data() -> TensorDataset:
    numbers = torch.arange(128, dtype=torch.float32).reshape(32, 4) / 128
    return TensorDataset(numbers, torch.arange(32) % 2)


def net() -> nn.Module:
    return nn.Linear(4, 2)


def sgd(*models: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([parameter for model in models for parameter in model.parameters()], 0.1)


def plain() -> None:
    model = net()
    optimizer = sgd(model)
    for x, y in DataLoader(data(), 8):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()


def two_epochs_and_validation() -> None:
    model = net()
    optimizer = sgd(model)
    training, validation = DataLoader(data(), 8), DataLoader(data(), 16)
    for _ in range(2):
        for x, y in training:
            cross_entropy(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            for x, _ in validation:
                model(x)


def accumulation() -> None:
    model = net()
    optimizer = sgd(model)
    for number, (x, y) in enumerate(DataLoader(data(), 8)):
        cross_entropy(model(x), y).backward()
        if number % 2:
            optimizer.step()


def scaler() -> None:
    if not hasattr(torch.amp, "GradScaler"):
        pytest.skip("only torch 2.3 and newer scale gradients on the CPU")
    model = net()
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu")
    for x, y in DataLoader(data(), 8):
        scaler.scale(cross_entropy(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()


def closures() -> None:
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    for x, y in DataLoader(data(), 8):

        def closure(x: Any = x, y: Any = y) -> Any:
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)


def closures_without_a_loader() -> None:
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x, y = data().tensors

    def closure() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(4):
        optimizer.step(closure)


def adversaries() -> None:
    generator, critic = net(), net()
    first, second = torch.optim.Adam(critic.parameters()), torch.optim.Adam(generator.parameters())
    for x, _ in DataLoader(data(), 8):
        critic(x).sum().backward()
        first.step()
        generator(x).sum().backward()
        second.step()


def made_late() -> None:
    """One for each parameter, once it has a gradient, as libraries of probabilistic models have them."""
    model = net()
    x, y = data().tensors
    made: dict[nn.Parameter, torch.optim.Optimizer] = {}
    for _ in range(4):
        cross_entropy(model(x), y).backward()
        for parameter in model.parameters():
            if parameter not in made:
                made[parameter] = torch.optim.Adam([parameter])
            made[parameter].step()


def evaluation() -> None:
    model = net().eval()
    with torch.no_grad():
        for x, _ in DataLoader(data(), 8):
            model(x)


def forces() -> None:
    """A gradient by the inputs is no training."""
    model = net().eval()
    for x, _ in DataLoader(data(), 8):
        x.requires_grad_()
        torch.autograd.grad(model(x).sum(), x)


def by_hand() -> None:
    model = net()
    for x, y in DataLoader(data(), 8):
        grads = torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters()))
        with torch.no_grad():
            for parameter, grad in zip(model.parameters(), grads, strict=True):
                parameter -= 0.1 * grad


def by_hand_without_a_loader() -> None:
    model = net()
    x, y = data().tensors
    for _ in range(4):
        cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad


def own_optimizer() -> None:
    class Descent(torch.optim.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {})

        def step(self, closure: Any = None) -> None:
            with torch.no_grad():
                for group in self.param_groups:
                    for parameter in group["params"]:
                        parameter -= 0.1 * parameter.grad

    model = net()
    optimizer = Descent(model.parameters())
    for x, y in DataLoader(data(), 8):
        cross_entropy(model(x), y).backward()
        optimizer.step()


def in_backward() -> None:
    model = net()
    optimizers = {parameter: torch.optim.SGD([parameter], 0.1) for parameter in model.parameters()}

    def step(parameter: Any) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    hooks = [parameter.register_post_accumulate_grad_hook(step) for parameter in model.parameters()]
    try:
        for x, y in DataLoader(data(), 8):
            cross_entropy(model(x), y).backward()
    finally:
        for hook in hooks:
            hook.remove()  # the optimizers would never be freed


def scheduled() -> None:
    model = net()
    optimizer = sgd(model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for x, y in DataLoader(data(), 8):
        cross_entropy(model(x), y).backward()
        optimizer.step()
        scheduler.step()


def endless() -> None:
    def cycle(loader: Any) -> Iterator[Any]:
        while True:
            yield from loader

    model = net()
    optimizer = sgd(model)
    batches = cycle(DataLoader(data(), 8))
    for _ in range(6):
        x, y = next(batches)
        cross_entropy(model(x), y).backward()
        optimizer.step()


def broken_off() -> None:
    model = net()
    optimizer = sgd(model)
    for number, (x, y) in enumerate(DataLoader(data(), 8)):
        cross_entropy(model(x), y).backward()
        optimizer.step()
        if number == 2:
            break


def validation_inside() -> None:
    """After every second step, 2 batches are validated; training goes on with the same loader."""
    model = net()
    optimizer = sgd(model)
    validation = DataLoader(data(), 16)
    for number, (x, y) in enumerate(DataLoader(data(), 8)):
        cross_entropy(model(x), y).backward()
        optimizer.step()
        if number % 2:
            with torch.no_grad():
                for other, _ in validation:
                    model(other)


def zipped() -> None:
    model = net()
    optimizer = sgd(model)
    for (x, y), (other, _) in zip(DataLoader(data(), 8), DataLoader(data(), 8), strict=True):
        (cross_entropy(model(x), y) + model(other).sum()).backward()
        optimizer.step()


def in_turns() -> None:
    """A forward after the batch of the one, then the batch of the other: one step."""
    model = net()
    optimizer = sgd(model)
    labelled, unlabelled = iter(DataLoader(data(), 8)), iter(DataLoader(data(), 8))
    for _ in range(4):
        x, y = next(labelled)
        loss = cross_entropy(model(x), y)
        other, _ = next(unlabelled)
        (loss + model(other).sum()).backward()
        optimizer.step()


def one_shot() -> None:
    model = net()
    optimizer = sgd(model)
    loader = DataLoader(data(), 8, shuffle=True)
    for _ in range(4):
        x, y = next(iter(loader))
        cross_entropy(model(x), y).backward()
        optimizer.step()


def overfitted() -> None:
    model = net()
    optimizer = sgd(model)
    batches = iter(DataLoader(data(), 8))
    x, y = next(batches)
    for _ in range(5):
        cross_entropy(model(x), y).backward()
        optimizer.step()


def several_updates_a_batch() -> None:
    """3 updates a batch; until the loader feeds again, the loop seems to go on without it, and 3 steps are counted."""
    model = net()
    optimizer = sgd(model)
    for x, y in DataLoader(data(), 8):
        for _ in range(3):
            cross_entropy(model(x), y).backward()
            optimizer.step()


def micro_batches() -> None:
    """As in nanoGPT: no loader, and 2 backwards per step."""
    model = net()
    optimizer = sgd(model)
    x, y = data().tensors
    for _ in range(4):
        for _ in range(2):
            cross_entropy(model(x), y).backward()
        optimizer.step()


def lookahead_thread() -> None:
    """Batches that another thread fetches are no boundaries; the optimizer's steps are."""
    from queue import Queue

    model = net()
    optimizer = sgd(model)
    queue: Queue[Any] = Queue()

    def fetch() -> None:
        for batch in DataLoader(data(), 8):
            queue.put(batch)

    thread = threading.Thread(target=fetch)
    thread.start()
    for _ in range(4):
        x, y = queue.get()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    thread.join()


def nested_data() -> None:
    """A data set that is fed by a loader of its own, and calls a module."""

    class Features(Dataset):  # type: ignore[type-arg]  # of whatever
        def __init__(self) -> None:
            self.model, self.inner = net(), iter(DataLoader(data(), 1))

        def __len__(self) -> int:
            return 32

        def __getitem__(self, index: int) -> Any:
            x, y = next(self.inner)
            with torch.no_grad():
                self.model(x)
            return x[0], y[0]

    model = net()
    optimizer = sgd(model)
    for x, y in DataLoader(Features(), 8):
        cross_entropy(model(x), y).backward()
        optimizer.step()


# expected: training steps, evaluation steps, what ended them, optimizer steps
LOOPS: dict[Callable[[], None], tuple[int, int, str, dict[str, int]]] = {
    plain: (4, 0, "loader", {"SGD": 4}),
    two_epochs_and_validation: (8, 4, "loader", {"SGD": 8}),
    accumulation: (4, 0, "loader", {"SGD": 2}),
    scaler: (4, 0, "loader", {"SGD": 4}),
    closures: (4, 0, "loader", {"LBFGS": 4}),
    closures_without_a_loader: (4, 0, "optimizer", {"LBFGS": 4}),
    adversaries: (4, 0, "loader", {"Adam": 4, "Adam 2": 4}),
    made_late: (4, 0, "optimizer", {"Adam": 4, "Adam 2": 4}),
    evaluation: (0, 4, "", {}),
    forces: (0, 4, "", {}),
    by_hand: (4, 0, "loader", {}),
    by_hand_without_a_loader: (4, 0, "backward", {}),
    own_optimizer: (4, 0, "loader", {"Descent": 4}),
    in_backward: (4, 0, "loader", {"SGD": 4, "SGD 2": 4}),
    scheduled: (4, 0, "loader", {"SGD": 4}),
    endless: (6, 0, "loader", {"SGD": 6}),
    broken_off: (3, 0, "loader", {"SGD": 3}),
    validation_inside: (4, 4, "loader", {"SGD": 4}),
    zipped: (4, 0, "loader", {"SGD": 4}),
    in_turns: (4, 0, "loader", {"SGD": 4}),
    one_shot: (4, 0, "optimizer", {"SGD": 4}),
    overfitted: (5, 0, "optimizer", {"SGD": 5}),
    several_updates_a_batch: (6, 0, "loader", {"SGD": 12}),
    micro_batches: (4, 0, "optimizer", {"SGD": 4}),
    lookahead_thread: (4, 0, "optimizer", {"SGD": 4}),
    nested_data: (4, 0, "loader", {"SGD": 4}),
}
