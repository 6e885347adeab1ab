"""The shapes of loops, told by signals alone; torch is not needed here.

In these loops ``x`` is the copy of a batch, ``item`` a read after the optimizer's step, ``model`` and ``save`` happen
once, before and after.
"""

from __future__ import annotations

import pytest

from devlint.auditor.frames import Frames
from devlint.auditor.history import What
from devlint.auditor.ledger import Ledger
from devlint.auditor.loop.steps import LoopSteps, StepsReached

A, B = 0, 1
Sums = dict[tuple[str, str], tuple[int, int]]


class Loop:
    """A script that is spelled out: what happens, and the signals in between."""

    def __init__(self, limit: int | None = None, optimizers: bool = True) -> None:
        self.now = 0.0
        self.detached = False
        self.ledger = Ledger(Frames())
        self.steps = LoopSteps(self.ledger, limit, lambda: optimizers, lambda: self.now)

    def happens(self, *names: str, of: int | None = None) -> None:
        """Copies; they are of a batch ``of`` a loader, if one is named."""
        for name in names:
            self.ledger.add(What("copy", name, loader=of, detached=self.detached), bytes_=10, seconds=1.0)

    def next(self, loader: int = A, seconds: float = 0.0, does: str = "", anew: bool = False) -> None:
        """A batch, for which the loader ``does`` something."""
        self.steps.batch(loader, anew)
        self.steps.stop_if_due()
        self.now += seconds
        if does:
            self.happens(does)
        self.steps.delivered(seconds)

    def stop(self, loader: int = A) -> None:
        self.steps.batch(loader)
        self.steps.exhausted(loader)

    def learn(self) -> None:
        """Forward and backward."""
        self.steps.forward()
        self.steps.backward()
        self.steps.backward_done()

    def evaluate(self) -> None:
        """A forward without autograd, always from this line."""
        self.steps.forward(False, self.ledger.frames.here())

    def optimize(self, optimizer: int = 0, name: str = "SGD") -> None:
        self.steps.optimizer_step(optimizer, name)
        self.steps.stop_if_due()

    def train(self, loader: int = A, anew: bool = False) -> None:
        """A plain step."""
        self.next(loader, anew=anew)
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


def test_what_goes_before_the_first_forward_of_the_only_step_is_set_up() -> None:
    """Unless it happens again in the middle of the step, as a batch for each of several backwards."""
    loop = Loop()
    loop.happens("model", "x")
    loop.steps.forward()
    loop.happens("mask")
    loop.steps.backward()
    loop.steps.backward_done()
    loop.happens("x")
    loop.learn()
    loop.optimize()
    loop.happens("save")
    assert loop.counts() == (1, 0, "optimizer")
    assert loop.sums() == {
        ("setup", "model"): (1, 1),
        ("train", "x"): (2, 1),
        ("train", "mask"): (1, 1),
        ("teardown", "save"): (1, 1),
    }


def test_a_batch_to_look_at_before_the_loop_is_no_step() -> None:
    """`next(iter(loader))`, the model goes to its device, then the loop begins: that is set-up."""
    loop = Loop()
    loop.next(does="pin")
    loop.steps.gone(A)
    loop.happens("model")
    for _ in range(3):
        loop.train()
    loop.stop()
    assert loop.counts() == (3, 0, "loader")
    assert loop.sums() == {
        ("setup", "pin"): (1, 1),
        ("setup", "model"): (1, 1),
        ("train", "x"): (3, 3),
        ("train", "item"): (3, 3),
    }


def test_a_loop_that_calls_no_module_is_no_step() -> None:
    """The mean of the data, computed before training."""
    loop = Loop()
    for _ in range(5):
        loop.next()
        loop.happens("mean")
    loop.stop()
    for _ in range(3):
        loop.train(B)
    loop.stop(B)
    assert loop.counts() == (3, 0, "loader")
    assert loop.sums()["setup", "mean"] == (5, 1)
    assert ("train", "mean") not in loop.sums()


def test_a_wrapper_that_is_a_batch_ahead() -> None:
    """As accelerate's: it asks for the next batch before it hands one out; the last comes when its loader is done."""
    loop = Loop()
    loop.happens("model")
    for _ in range(2):
        loop.next(does="first pin")  # another line of the wrapper, which runs once in an epoch
        loop.happens("x")
        for _ in range(2):
            loop.next(does="pin")
            loop.learn()
            loop.optimize()
            loop.happens("item")
            loop.happens("x")
        loop.stop()
        loop.learn()
        loop.optimize()
        loop.happens("item")
        loop.happens("save")
    assert loop.counts() == (6, 0, "loader")
    assert loop.sums() == {
        ("setup", "model"): (1, 1),
        ("train", "first pin"): (2, 2),
        ("train", "pin"): (4, 4),
        # in the first step both the first and the second batch are copied, in the last none is
        ("train", "x"): (6, 4),
        # the item after the last step of the first epoch is settled by itself, so is that of the second
        ("train", "item"): (6, 6),
        ("between", "save"): (1, 1),
        ("teardown", "save"): (1, 1),
    }


def test_the_last_batch_of_an_evaluation_that_is_a_batch_ahead() -> None:
    loop = Loop()
    for batches in (2, 3, 1):
        for number in range(batches):
            loop.next()
            if number:
                loop.evaluate()
        loop.stop()
        loop.evaluate()
    assert loop.counts() == (0, 6, "")


def test_validation_inside_of_an_epoch_leaves_the_training_steps_alone() -> None:
    loop = Loop()
    for number in range(4):
        loop.train(A)
        if number % 2:
            for _ in range(3):
                loop.next(B)
                loop.happens("v")
                loop.evaluate()
            loop.stop(B)
            loop.happens("metric")
    loop.stop(A)
    assert loop.counts() == (4, 6, "loader")
    assert loop.sums() == {
        ("train", "x"): (4, 4),
        ("train", "item"): (4, 4),
        ("eval", "v"): (6, 6),
        ("between", "metric"): (2, 2),
    }
    assert loop.steps.training_loaders == {A}


def test_an_evaluation_after_the_training_is_no_teardown() -> None:
    loop = Loop()
    loop.train()
    loop.stop()
    loop.happens("save")
    loop.next(B)
    loop.evaluate()
    loop.happens("v")
    loop.stop(B)
    loop.happens("report")
    assert loop.counts() == (1, 1, "loader")
    assert loop.sums()["between", "save"] == (1, 1)
    assert loop.sums()["eval", "v"] == (1, 1)
    assert loop.sums()["teardown", "report"] == (1, 1)


def test_after_a_break_the_loop_is_over() -> None:
    """The iterator is freed; what is left is no part of the last step."""
    loop = Loop()
    for _ in range(3):
        loop.train()
    loop.steps.gone(A)
    loop.happens("save")
    assert loop.counts() == (3, 0, "loader")
    assert loop.sums()["train", "item"] == (3, 3)
    assert loop.sums()["teardown", "save"] == (1, 1)


def test_after_a_break_that_keeps_the_iterator_what_recurs_is_the_steps() -> None:
    loop = Loop()
    for _ in range(3):
        loop.train()
    loop.happens("save")
    assert loop.counts() == (3, 0, "loader")
    assert loop.sums() == {("train", "x"): (3, 3), ("train", "item"): (3, 3), ("teardown", "save"): (1, 1)}


def test_a_run_that_dies_in_its_first_forward_was_training() -> None:
    loop = Loop()
    loop.happens("model")
    loop.next()
    loop.happens("x")
    loop.steps.forward()
    assert loop.counts() == (0, 0, "")
    assert loop.sums() == {("setup", "model"): (1, 1), ("train", "x"): (1, 1)}


def test_a_loader_that_feeds_no_more_is_given_up() -> None:
    """One batch, fitted again and again: each step of the optimizer is a step."""
    loop = Loop()
    loop.next()
    for _ in range(6):
        loop.happens("x")
        loop.learn()
        loop.optimize()
        loop.happens("item")
    assert loop.counts() == (6, 0, "optimizer")
    assert loop.sums() == {("train", "x"): (6, 6), ("train", "item"): (6, 6)}


def test_a_loader_that_feeds_several_updates_is_waited_for() -> None:
    """3 updates a batch: the first batch counts as 3 steps, until the second shows that it was one."""
    loop = Loop()
    for _ in range(5):
        loop.next()
        for _ in range(3):
            loop.learn()
            loop.optimize()
    loop.stop()
    assert loop.counts() == (3 + 4, 0, "loader")


@pytest.mark.parametrize("in_turn", [False, True])
def test_another_optimizer_takes_over(in_turn: bool) -> None:
    """At its second step, as parts are trained one by one; of two that stepped in turn not before the eighth."""
    loop = Loop()
    for _ in range(4):
        loop.learn()
        loop.optimize(0, "SGD")
        if in_turn:
            loop.optimize(1, "Adam")
    for _ in range(20):
        loop.learn()
        loop.optimize(1, "Adam")
    assert loop.counts()[0] == (4 + 21 - 7 if in_turn else 4 + 20)


def test_a_step_of_an_optimizer_without_a_backward_is_no_step() -> None:
    """As scripts do before they make a scheduler."""
    loop = Loop()
    loop.optimize()
    loop.happens("model")
    for _ in range(3):
        loop.train()
    loop.stop()
    assert loop.counts() == (3, 0, "loader")
    assert loop.sums()["setup", "model"] == (1, 1)


def test_many_optimizers_of_a_class_share_a_name() -> None:
    loop = Loop()
    for number in range(20):
        loop.optimize(number)
    found = loop.steps.describe().optimizer_steps
    assert len(found) == 8
    assert sum(found.values()) == 20


def test_steps_and_waits_are_medians_without_the_first_two() -> None:
    """Steps take 100, 100, 4, 5 and 9 seconds, of which the loader takes 50, 50, 1, 2 and 3."""
    loop = Loop()
    for whole, wait in ((100, 50), (100, 50), (4, 1), (5, 2), (9, 3)):
        loop.next(seconds=wait)
        loop.learn()
        loop.optimize()
        loop.now += whole - wait
    loop.stop()
    found = loop.steps.describe()
    assert (found.step_seconds, found.loader_seconds) == (5, 2)


def test_an_iterator_freed_in_the_middle_of_a_signal_is_heard_later() -> None:
    """The garbage collector runs whenever it likes, in any thread."""
    loop = Loop()
    loop.train()
    with loop.steps._lock:
        loop.steps.gone(A)
    loop.happens("save")
    loop.next(B)
    assert loop.counts()[0] == 1


def test_a_reader_in_a_signal_handler_does_not_wait_for_ever() -> None:
    loop = Loop()
    loop.train()
    with loop.steps._lock:
        assert loop.counts() == (1, 0, "loader")


def test_the_only_batch_of_an_evaluation_that_is_a_batch_ahead() -> None:
    """Its copy is of the evaluation, though the loader is done before the module is called."""
    loop = Loop()
    loop.train()
    loop.stop()
    loop.happens("save")
    loop.next(B, does="pin")
    loop.happens("v")
    loop.stop(B)
    loop.evaluate()
    loop.happens("report")
    assert loop.counts() == (1, 1, "loader")
    assert loop.sums() == {
        ("train", "x"): (1, 1),
        ("train", "item"): (1, 1),
        ("eval", "pin"): (1, 1),
        ("eval", "v"): (1, 1),
        ("between", "save"): (1, 1),
        ("teardown", "report"): (1, 1),
    }
