"""Loops that no loader feeds: which optimizer's step ends one, and what belongs to it."""

from __future__ import annotations

from tests.auditor.test_steps import A, Loop


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
        ("teardown", "mask"): (4, 1),
        ("teardown", "item"): (4, 1),
    }


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
