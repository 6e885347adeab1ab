"""Loops that no loader feeds: which optimizer's step ends one, and what belongs to it."""

from __future__ import annotations

import sys

from tests.auditor.test_steps import A, Loop

EVALUATE = "Loop.evaluate" if sys.version_info >= (3, 11) else "evaluate"
"""As code is named, which knows its class since Python 3.11."""


def test_parts_that_are_trained_one_by_one_each_have_their_steps() -> None:
    """Two optimizers, each with 3 steps of its own, and one batch for both; what follows is no step."""
    loop = Loop()
    loop.next(does="pin")
    loop.steps.gone(A)
    loop.happens("model")
    for optimizer in (0, 1):
        for _ in range(3):
            loop.happens("x")
            loop.learn()
            loop.optimize(optimizer)
    loop.evaluate()
    loop.happens("x", "save")
    assert loop.counts() == (6, 0, "optimizer")
    assert loop.sums() == {
        ("setup", "pin"): (1, 1),
        ("setup", "model"): (1, 1),
        ("train", "x"): (6, 6),
        ("teardown", "x"): (1, 1),
        ("teardown", "save"): (1, 1),
    }


def test_an_optimizer_that_steps_in_turn_with_the_first_does_not_take_over() -> None:
    """One step of a generator, then 2 of its critic; the critic may step 3 times later on."""
    loop = Loop()
    for number in range(6):
        for _ in range(2 if number < 3 else 3):
            loop.happens("x")
            loop.learn()
            loop.optimize(1)
            if number == 0:
                break
        loop.learn()
        loop.optimize(0)
    # the critic came first, and is what ends a step
    assert loop.counts()[0] == loop.steps.describe().optimizer_steps["SGD"] == 1 + 2 + 2 + 3 + 3 + 3


def test_optimizers_that_step_after_one_backward_make_one_step() -> None:
    """As where each parameter has its own, in libraries of probabilistic models."""
    loop = Loop()
    for _ in range(6):
        loop.happens("x")
        loop.learn()
        for number in range(3):
            loop.optimize(number)
    assert loop.counts() == (6, 0, "optimizer")


def test_an_evaluation_after_a_loop_without_a_loader_is_none_of_its_steps() -> None:
    """Its forward copies what that of a step copies, too."""
    loop = Loop()
    for _ in range(3):
        loop.learn()
        loop.happens("mask")
        loop.optimize()
        loop.happens("item")
    for _ in range(4):
        loop.evaluate()
        loop.happens("mask", "item")
    assert loop.counts() == (3, 0, "optimizer")
    assert loop.sums() == {
        ("train", "mask"): (3, 3),
        ("train", "item"): (3, 3),
        ("inference", "mask"): (4, 4),
        ("inference", "item"): (4, 4),
    }
    assert loop.steps.describe().inference == {EVALUATE: 4}


def test_a_forward_without_autograd_at_the_beginning_of_a_step_is_a_part_of_it() -> None:
    """As that of a teacher, or of an actor."""
    loop = Loop()
    for _ in range(4):
        loop.evaluate()
        loop.happens("x")
        loop.learn()
        loop.optimize()
        loop.happens("item")
    assert loop.counts() == (4, 0, "optimizer")
    assert loop.sums() == {("train", "x"): (4, 4), ("train", "item"): (4, 4)}


def test_a_step_before_anything_was_learnt_is_none() -> None:
    """As it is made to have the state of an optimizer before one is loaded."""
    loop = Loop()
    loop.optimize()
    loop.happens("load")
    for _ in range(3):
        loop.happens("x")
        loop.learn()
        loop.optimize()
    assert loop.counts() == (3, 0, "optimizer")
    assert loop.sums() == {("setup", "load"): (1, 1), ("train", "x"): (3, 3)}


def test_an_evaluation_without_a_loader_is_one_wherever_it_comes() -> None:
    """Before the first step, between two, and after the last; it makes its batches as the training does."""
    loop = Loop()
    loop.happens("model", "x")
    for number in range(4):
        if number % 2 == 0:
            loop.detached = True
            for _ in range(3):
                loop.happens("x")
                loop.evaluate()
                loop.happens("item")
            loop.detached = False
        loop.learn()
        loop.happens("x")
        loop.optimize()
    assert loop.counts() == (4, 0, "optimizer")
    assert loop.steps.describe().inference == {EVALUATE: 6}
    sums = {(event.phase, event.name): event.calls for event in loop.ledger.events()}
    assert sums == {
        ("setup", "model"): 1,
        ("train", "x"): 5,  # one for each step, and the first before the loop: it recurs
        ("inference", "x"): 6,
        ("inference", "item"): 6,
    }


def test_a_rollout_reads_its_actions_with_autograd_on() -> None:
    """As libraries of reinforcement learning do: only the policy runs without."""
    loop = Loop()
    for _ in range(3):
        for _ in range(5):
            loop.happens("observation")
            loop.evaluate()
            loop.happens("action")
        for _ in range(2):
            loop.happens("x")
            loop.learn()
            loop.optimize()
    assert loop.counts() == (6, 0, "optimizer")
    assert loop.sums() == {
        ("inference", "observation"): (15, 15),
        ("inference", "action"): (15, 15),
        ("train", "x"): (6, 6),
    }


def test_two_networks_that_run_once_each_are_a_part_of_the_step() -> None:
    """The targets of an actor and of a critic: none of the two calls comes again before something is learnt."""
    loop = Loop()
    for _ in range(4):
        for place in (loop.ledger.frames.here(), loop.ledger.frames.here()):
            loop.steps.forward(False, place)
            loop.happens("target")
        loop.learn()
        loop.optimize()
    assert loop.counts() == (4, 0, "optimizer")
    assert loop.sums() == {("train", "target"): (8, 4)}
    assert loop.steps.describe().inference == {}


def test_a_script_that_only_infers_has_passes() -> None:
    """What is known while it runs is what is known at its end."""
    loop = Loop()
    loop.happens("model")
    for number in range(3):
        loop.evaluate()
        loop.happens("token")
        assert loop.steps.describe().inference == ({EVALUATE: number + 1} if number else {})
    loop.happens("save")
    assert loop.sums() == {("setup", "model"): (1, 1), ("inference", "token"): (3, 3), ("teardown", "save"): (1, 1)}


def test_samples_that_are_drawn_after_an_epoch_are_none_of_its_steps() -> None:
    """The loop over the loader goes on afterwards, in the next epoch."""
    loop = Loop()
    for _ in range(2):
        for _ in range(3):
            loop.train()
        for _ in range(4):
            loop.evaluate()
            loop.happens("noise")
        loop.stop()
    assert loop.counts() == (6, 0, "loader")
    assert loop.sums() == {("train", "x"): (6, 6), ("train", "item"): (6, 6), ("inference", "noise"): (8, 8)}


def test_long_inference_takes_no_memory() -> None:
    loop = Loop()
    for _ in range(1_000):
        loop.evaluate()
        loop.happens("token")
    passages = loop.steps._passages
    assert not passages._parts
    assert len(passages._current) <= 1
