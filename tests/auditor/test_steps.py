"""The shapes of loops, told by signals alone; torch is not needed here.

In these loops ``x`` is the copy of a batch, ``item`` a read after the optimizer's step, ``model`` and ``save`` happen
once, before and after.
"""

from __future__ import annotations

import pytest

from devlint.auditor.frames import Frames
from devlint.auditor.ledger import Ledger, What
from devlint.auditor.steps import LoopSteps, StepsReached

A, B = 0, 1
Sums = dict[tuple[str, str], tuple[int, int]]


class Loop:
    """A script that is spelled out: what happens, and the signals in between."""

    def __init__(self, limit: int | None = None, optimizers: bool = True) -> None:
        self.now = 0.0
        self.ledger = Ledger(Frames())
        self.steps = LoopSteps(self.ledger, limit, lambda: optimizers, lambda: self.now)

    def happens(self, *names: str) -> None:
        for name in names:
            self.ledger.add(What("copy", name), bytes_=10, seconds=1.0)

    def next(self, loader: int = A, seconds: float = 0.0) -> None:
        self.steps.batch(loader)
        self.steps.stop_if_due()
        self.now += seconds
        self.steps.waited(seconds)

    def stop(self, loader: int = A) -> None:
        self.steps.batch(loader)
        self.steps.exhausted(loader)

    def learn(self) -> None:
        """Forward and backward."""
        self.steps.forward()
        self.steps.backward()
        self.steps.backward_done()

    def evaluate(self) -> None:
        self.steps.forward(recorded=False)

    def optimize(self, optimizer: int = 0, name: str = "SGD") -> None:
        self.steps.optimizer_step(optimizer, name)
        self.steps.stop_if_due()

    def train(self, loader: int = A) -> None:
        """A plain step."""
        self.next(loader)
        self.happens("x")
        self.learn()
        self.optimize()
        self.happens("item")

    def sums(self) -> Sums:
        """(phase, name) to (calls, steps)."""
        return {(event.phase, event.name): (event.calls, event.steps) for event in self.ledger.events()}

    def counts(self) -> tuple[int, int, str]:
        found = self.steps.describe()
        return found.train, found.eval, found.boundary


def test_a_plain_loop_has_a_step_per_batch() -> None:
    loop = Loop()
    loop.happens("model")
    for _ in range(2):
        for _ in range(3):
            loop.train()
        loop.stop()
        loop.happens("save")
    assert loop.counts() == (6, 0, "loader")
    assert loop.sums() == {
        ("setup", "model"): (1, 1),
        ("train", "x"): (6, 6),
        ("train", "item"): (6, 6),
        ("between", "save"): (1, 1),  # after the first epoch, another one came
        ("teardown", "save"): (1, 1),
    }


def test_steps_accumulate_gradients_by_batch() -> None:
    """4 batches, 4 backwards, 2 steps of the optimizer: 4 training steps."""
    loop = Loop()
    for number in range(4):
        loop.next()
        loop.happens("x")
        loop.learn()
        if number % 2:
            loop.optimize()
    loop.stop()
    assert loop.counts() == (4, 0, "loader")
    assert loop.steps.describe().optimizer_steps == {"SGD": 2}


def test_without_a_loader_the_optimizer_ends_a_step() -> None:
    loop = Loop()
    loop.happens("model")
    for _ in range(5):
        for _ in range(2):
            loop.happens("x")
            loop.learn()
        loop.optimize()
        loop.happens("item")
    loop.happens("save")
    assert loop.counts() == (5, 0, "optimizer")
    assert loop.sums() == {
        ("setup", "model"): (1, 1),
        ("train", "x"): (10, 5),
        ("train", "item"): (5, 5),
        ("teardown", "save"): (1, 1),
    }


def test_without_an_optimizer_each_backward_ends_a_step() -> None:
    loop = Loop(optimizers=False)
    loop.happens("model")
    for _ in range(5):
        loop.happens("x")
        loop.learn()
        loop.happens("item")
    loop.happens("save")
    assert loop.counts() == (5, 0, "backward")
    assert loop.sums()["setup", "model"] == (1, 1)
    assert loop.sums()["train", "x"] == (5, 5)
    assert loop.sums()["train", "item"] == (5, 5)
    assert loop.sums()["teardown", "save"] == (1, 1)


@pytest.mark.parametrize("shape", ["loader", "free"])
def test_the_run_stops_after_so_many_steps_and_stays_stopped(shape: str) -> None:
    loop = Loop(limit=3)

    def run() -> None:
        for _ in range(9):
            if shape == "loader":
                loop.next()
            loop.learn()
            loop.optimize()

    with pytest.raises(StepsReached) as reached:
        run()
    assert reached.value.code == 0
    assert loop.counts()[0] == 3
    assert loop.steps.describe().limited
    with pytest.raises(StepsReached):
        loop.next()
