"""What reaches the kernels at the dispatch key, as the recorder sees it: copies, reads and waits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from devlint.simulator import backend
from tests.simulator.cases.support import CPU, ONE, ZERO, same

DEVICES = 2


@contextlib.contextmanager
def watched() -> Iterator[list[str]]:
    """What passes the key, in order: `h2d 12` is a copy of 12 bytes, `item` a read, `nonzero` and the like by name."""
    seen: list[str] = []
    active = True
    library = torch.library.Library("aten", "IMPL")

    def kernel(name: str) -> Callable[..., Any]:
        original = backend.KERNELS[name]

        def watching(*args: Any, **kwargs: Any) -> Any:
            if not active:  # torch goes on calling the kernel of a library that is gone
                return original(*args, **kwargs)
            if name == "copy_":
                target, source = args[:2]
                where = source.device if isinstance(source, torch.Tensor) else CPU
                if where != target.device:
                    ends = "d" if where.type != "cpu" else "h", "d" if target.device.type != "cpu" else "h"
                    seen.append(f"{'2'.join(ends)} {target.nbytes}")
            else:
                seen.append("item" if name == "_local_scalar_dense" else name)
            return original(*args, **kwargs)

        return watching

    for name in backend.KERNELS:
        if name != "_pin_memory":
            library.impl(name, kernel(name), backend.KEY, allow_override=True)
    try:
        yield seen
    finally:
        active = False
        library._destroy()


def _seen(action: Callable[[], Any]) -> list[str]:
    with watched() as seen:
        action()
    return seen


def case_moves() -> None:
    host, device = torch.ones(3), torch.ones(3, device=ZERO)
    assert _seen(lambda: host.to(ZERO)) == ["h2d 12"]
    assert _seen(lambda: device.cpu()) == ["d2h 12"]
    assert _seen(lambda: device.to(ONE)) == ["d2d 12"]
    assert _seen(lambda: device.to(ZERO)) == []
    assert _seen(lambda: device.to(torch.float64)) == []
    assert _seen(lambda: device.copy_(host)) == ["h2d 12"]
    assert _seen(lambda: host.copy_(device)) == ["d2h 12"]
    assert _seen(lambda: torch.tensor([1.0, 2.0], device=ZERO)) == ["h2d 8"]
    assert _seen(lambda: torch.as_tensor(host, device=ONE)) == ["h2d 12"]
    assert _seen(lambda: torch.zeros(3, device=ZERO)) == []
    assert _seen(lambda: device.tolist()) == ["d2h 12"]
    assert _seen(lambda: nn.Linear(2, 3).to(ZERO)) == ["h2d 24", "h2d 12"]


def case_reads() -> None:
    device = torch.arange(3.0, device=ZERO)
    one = device.sum()
    for read in (one.item, lambda: bool(one), lambda: float(one), lambda: int(one), lambda: f"{one:.2f}"):
        assert _seen(read) == ["item"]
    assert _seen(lambda: torch.allclose(device, device)) == ["item"]
    assert _seen(lambda: torch.equal(device, device)) == ["equal"]
    assert _seen(lambda: max(device)) == ["item", "item"], "one for each comparison"
    assert _seen(lambda: F.one_hot(device.long())) == ["item"], "the number of classes"


def case_results_whose_size_depends_on_data() -> None:
    device = torch.tensor([1, 0, 2], device=ZERO)
    assert _seen(lambda: device.nonzero()) == ["nonzero"]
    assert _seen(lambda: torch.where(device > 0)) == ["nonzero"]
    assert _seen(lambda: device[device > 0]) == ["nonzero"]
    assert _seen(lambda: torch.unique(device)) == ["_unique2"]
    assert _seen(lambda: torch.unique(device, dim=0)) == ["unique_dim"]
    assert _seen(lambda: torch.unique_consecutive(device)) == ["unique_consecutive"]
    assert _seen(lambda: device.masked_select(device > 0)) == ["masked_select"]
    assert _seen(lambda: torch.bincount(device)) == ["d2h 8", "item"]
    assert _seen(lambda: torch.repeat_interleave(device)) == ["item", "item"]
    assert _seen(lambda: torch.repeat_interleave(device, output_size=3)) == []
    same(device[device > 0], torch.tensor([1, 2]))
    same(torch.eye(2, device=ZERO)[torch.eye(2, device=ZERO) > 0], torch.ones(2))


def case_indices_of_the_host_are_copied() -> None:
    device = torch.arange(6.0, device=ZERO).view(2, 3)
    assert _seen(lambda: device[torch.tensor([1])]) == ["h2d 8"]
    assert _seen(lambda: device[[0, 1]]) == ["h2d 16"]
    assert _seen(lambda: device[:, 1:]) == []
    assert _seen(lambda: device[torch.tensor([True, False])]) == ["h2d 8"], "the mask's one index"
    same(device[torch.tensor([True, False])], torch.tensor([[0.0, 1.0, 2.0]]))


def case_assignments() -> None:
    def assign(index: Any, value: Any) -> list[str]:
        device = torch.arange(4.0, device=ZERO)
        with watched() as seen:
            device[index] = value
        expected = torch.arange(4.0)
        move = lambda v: v.cpu() if isinstance(v, torch.Tensor) else v  # noqa: E731  # used in the next line
        expected[move(index)] = move(value)
        same(device, expected)
        return seen

    mask = torch.tensor([True, False, True, False], device=ZERO)
    assert assign(slice(1, 3), 5.0) == [], "filled"
    assert assign(1, 5.0) == ["h2d 4"], "a number is a tensor of the host until it is written"
    assert assign(mask, 5.0) == [], "filled by the mask"
    assert assign(mask, torch.tensor(5.0, device=ZERO)) == ["nonzero"]
    assert assign(torch.tensor([0, 2]), 5.0) == ["h2d 16", "h2d 4"], "the index, then the value"
    host = torch.arange(4.0)
    assert _seen(lambda: host.__setitem__(mask, 5.0)) == ["nonzero", "d2h 16"], "to what is written into"
    assert host.tolist() == [5.0, 1.0, 5.0, 3.0]


def case_values_that_operations_move_or_read() -> None:
    device, mask = torch.ones(3, device=ZERO), torch.tensor([True, False, True], device=ZERO)
    zero = torch.tensor(0.0, device=ZERO)
    assert _seen(lambda: torch.where(mask, device, torch.tensor(0.0))) == ["h2d 4"]
    assert _seen(lambda: device.masked_fill(mask, 0.0)) == []
    assert _seen(lambda: device.masked_fill(mask, zero)) == ["item"]
    assert _seen(lambda: device.masked_fill_(mask, torch.tensor(0.0))) == []
    assert _seen(lambda: device * torch.tensor(2.0)) == [], "an argument of the kernel"
    assert _seen(lambda: torch.linalg.inv(torch.eye(2, device=ZERO))) == ["item"], "whether it failed"


def case_copies_in_backward() -> None:
    leaf = torch.ones(3, requires_grad=True)
    loss = (leaf.to(ZERO) * 2).to(ONE).sum()
    assert _seen(loss.backward) == ["d2d 12", "d2h 12"]


def case_a_training_step() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).to(ZERO)
    optimizer = torch.optim.Adam(model.parameters())
    batch, labels = torch.randn(2, 4), torch.tensor([0, 2])

    def step() -> None:
        loss = F.cross_entropy(model(batch.to(ZERO)), labels.to(ZERO))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()

    step()
    # The batch is 2 * 4 floats, the labels are 2 integers of 8 bytes.
    assert _seen(step) == ["h2d 32", "h2d 16", "item"]


def case_saving() -> None:
    model = nn.Linear(2, 3).to(ZERO)
    assert _seen(lambda: torch.save(model.state_dict(), __import__("io").BytesIO())) == ["d2h 24", "d2h 12"]
    assert _seen(lambda: nn.Linear(2, 3).to(ZERO).load_state_dict(nn.Linear(2, 3).state_dict()))[2:] == [
        "h2d 24",
        "h2d 12",
    ]


def case_printing() -> None:
    """torch asks each of two integers how wide it is, and then copies both, 2 * 8 B, as a list."""
    x = torch.tensor([1, 20], device=ZERO)
    assert _seen(lambda: repr(x)) == ["item", "item", "d2h 16"]
    # A number is asked for its width, and then for itself.
    assert _seen(lambda: str(x[1])) == ["item", "item"]
    assert _seen(lambda: repr(x[:0])) == []
