"""Steps that are not recorded whole, on torch's meta device: its copies are real calls, and it needs no GPU.

The clock is the tests' own, so that a step is as short as they say.
"""

from __future__ import annotations

import itertools
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from devlint.auditor.listeners import listeners
from devlint.auditor.recorder import sampling
from devlint.auditor.session import Session, Settings
from devlint.record import Ending, Event, Process, Sampled

pytestmark = pytest.mark.skipif(not hasattr(torch.library, "get_kernel"), reason="torch is older than 2.9")

LAYERS, MOVES = 13, 3
"""Each layer converts its input and converts it back, so that a pass makes two copies on the device per layer, and
their gradients two more."""
WHOLE, STEPS = sampling.WHOLE, 100


class Net(nn.Module):
    def __init__(self, layers: int = LAYERS) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(layers))
        self.tables = [torch.ones(4) for _ in range(MOVES)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).to(torch.float64).to(torch.float32)
        for table in self.tables:
            x = x + table.to(x.device)
        return x


@contextmanager
def audited(step: float, every_step: bool = False) -> Iterator[Session]:
    """An audit at the key of the meta device, in which a step takes ``step`` seconds."""
    session = Session(Settings(key="Meta", roots=(os.path.dirname(__file__),), sampling=not every_step))
    heard = listeners(session)
    for listener in heard:
        if isinstance(listener, sampling.Sampling):
            listener.clock = itertools.count(step=step).__next__
    session.start(heard)
    assert not session.failure
    try:
        yield session
    finally:
        session.stop()
    assert not session.failure


def train(before: Callable[[int], object] = lambda number: None, inside: Callable[[int], object] | None = None) -> None:
    net = Net().to("meta")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(STEPS):
        before(number)
        loss = net(torch.ones(2, 4).to("meta")).sum()
        if inside is not None:
            inside(number)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def copies(process: Process) -> dict[str, int]:
    """How often tensors of each shape went to the device while the loop ran."""
    found: dict[str, int] = {}
    for event in process.events:
        if event.kind == "copy" and event.phase == "train":
            found[event.example] = found.get(event.example, 0) + event.calls
    return found


def seen(session: Session) -> Process:
    return session.process(Ending())


IN_LOOP, IN_PASS = "float32[2, 4]", "float32[4]"


def test_a_short_step_is_recorded_whole_now_and_then_and_counted_all_the_same() -> None:
    asking = 4 * LAYERS * 8.5e-6
    with audited(step=asking / 0.05) as session:  # asking takes a twentieth of it: five times what it may
        train()
        process = seen(session)
    whole = WHOLE + (STEPS - WHOLE) // 5
    assert process.sampled == Sampled(steps=STEPS - whole, share=pytest.approx(0.05, rel=0.05))
    assert process.steps.train == STEPS
    assert copies(process) == {IN_LOOP: STEPS, IN_PASS: MOVES * STEPS}
    steady = [event.steady.calls for event in process.events if event.steady and event.example == IN_PASS]
    assert steady == [MOVES]
    assert {part.calls for part in process.timeline[-1].parts} == {1, MOVES}


@pytest.mark.parametrize("settings", [{"step": 10.0}, {"step": 0.001, "every_step": True}])
def test_a_long_step_is_always_recorded_whole_and_so_is_every_one_if_asked(
    settings: dict[str, Any],
) -> None:
    with audited(**settings) as session:
        train()
        process = seen(session)
    assert process.sampled is None
    assert copies(process) == {IN_LOOP: STEPS, IN_PASS: MOVES * STEPS}


def test_what_happens_once_is_counted_where_it_is_seen_and_not_repeated() -> None:
    def once(number: int) -> None:
        if number == STEPS // 2:
            torch.ones(7).to("meta")

    with audited(step=0.001) as session:
        train(before=once)  # before the pass, where everything is seen
        outside = copies(seen(session))
    assert outside == {IN_LOOP: STEPS, IN_PASS: MOVES * STEPS, "float32[7]": 1}
    with audited(step=0.001) as session:
        train(inside=lambda number: torch.ones(7).to("meta") if number == WHOLE - 1 else None)
        inside = copies(seen(session))
    assert inside == {**outside, "float32[7]": 1}


def test_copies_are_seen_again_when_the_loop_is_over() -> None:
    with audited(step=0.001) as session:
        train()
        assert seen(session).sampled is not None
        with torch.no_grad():
            Net().to("meta")(torch.ones(2, 4, device="meta"))
        process = seen(session)
    after = sum(event.calls for event in process.events if event.phase in ("between", "teardown", "eval"))
    assert after >= 2 * LAYERS + MOVES  # weights and biases, and the tables


def test_nothing_is_left_alone_while_another_thread_copies() -> None:
    done = threading.Event()

    def work() -> None:
        torch.ones(3, device="meta").to(torch.float64)
        done.wait()

    with audited(step=0.001) as session:
        thread = threading.Thread(target=work)
        thread.start()
        try:
            train()
            process = seen(session)
        finally:
            done.set()
            thread.join()
    assert copies(process) == {IN_LOOP: STEPS, IN_PASS: MOVES * STEPS}
    assert process.sampled is None


def test_python_shows_a_warning_of_the_script_as_often_as_without() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")  # once for each line, unless a filter has changed since
        with audited(step=0.001) as session:
            train(before=lambda number: warnings.warn("the script's own", stacklevel=1))
            assert seen(session).sampled is not None
    assert [str(warning.message) for warning in shown] == ["the script's own"]


def test_nothing_of_it_is_left_in_torch() -> None:
    with audited(step=0.001) as session:
        net = Net().to("meta")
        for _ in range(WHOLE + 5):
            loss = net(torch.ones(2, 4, device="meta")).sum()
            loss.backward()
        net(torch.ones(2, 4, device="meta"))  # the audit ends in the middle of a pass
        assert not session.failure
    registered = torch._C._dispatch_dump("aten::copy_")
    assert "kernels.py" not in registered
    assert torch.ones(2).to("meta").device.type == "meta"


def batches(loader: bool) -> Iterable[torch.Tensor]:
    return DataLoader(torch.ones(24, 4), batch_size=1) if loader else [torch.ones(1, 4)] * 24


def with_evaluation(loader: bool) -> None:
    net = Net(1).to("meta")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        for number, x in enumerate(batches(loader)):
            net(x.to("meta")).sum().backward()
            optimizer.step()
            if number % 4 == 3:
                with torch.no_grad():
                    net(torch.ones(2, 4).to("meta"))
        torch.ones(9).to("meta")


def in_turn(loader: bool) -> None:
    one, other = Net(1).to("meta"), Net(2).to("meta")
    first, second = torch.optim.Adam(one.parameters()), torch.optim.SGD(other.parameters(), lr=0.1)
    for x in batches(loader):
        x = x.to("meta")
        (other(x) + other(one(x).detach())).sum().backward()
        second.step()
        other(one(x)).sum().backward()
        first.step()


def accumulating(loader: bool) -> None:
    net, criterion = Net(2).to("meta"), nn.MSELoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number, x in enumerate(batches(loader)):
        loss = criterion(net(x.to("meta")), torch.ones(1, 4).to("meta"))
        (loss * torch.ones(1).to("meta")).sum().backward()
        if number % 3 == 2:
            optimizer.step()
            torch.ones(5).to("meta")


def with_a_closure(loader: bool) -> None:
    net = Net(2).to("meta")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in batches(loader):

        def closure(x: torch.Tensor = x) -> torch.Tensor:
            loss = net(x.to("meta")).sum()
            loss.backward()
            return loss

        optimizer.step(closure)


@pytest.mark.parametrize("loader", [True, False], ids=["loader", "no loader"])
@pytest.mark.parametrize("loop", [with_evaluation, in_turn, accumulating, with_a_closure])
def test_every_kind_of_loop_is_counted_as_if_each_step_were_recorded(
    monkeypatch: pytest.MonkeyPatch, loop: Callable[[bool], None], loader: bool
) -> None:
    monkeypatch.setattr(sampling, "WHOLE", 4)
    monkeypatch.setattr(sampling, "_SWITCHING", 0.0)
    found = []
    for every_step in (True, False):
        with audited(step=1e-5, every_step=every_step) as session:
            loop(loader)
            process = seen(session)
        assert (process.sampled is None) is every_step
        events = {replace(event, seconds=None, steady=None): steady(event) for event in process.events}
        found.append((process.steps.train, process.steps.eval, events))
    whole, sampled = found
    assert whole == sampled


def steady(event: Event) -> tuple[float, float] | None:
    return (event.steady.calls, event.steady.bytes) if event.steady is not None else None
