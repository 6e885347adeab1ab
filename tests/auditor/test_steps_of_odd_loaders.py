"""The shapes of loops whose loaders are read ahead, have no end, or are left alone before it."""

from __future__ import annotations

import pytest

from tests.auditor.test_steps import A, B, Loop


def test_what_judges_a_model_uses_no_batch_up() -> None:
    """The module of a loss is called after the model: that one batch is still owed is known all the same."""
    loop = Loop()
    loop.next()
    loop.next()
    loop.evaluate()
    loop.evaluate()
    loop.happens("item")
    loop.stop()
    loop.evaluate()
    loop.evaluate()
    loop.happens("item", "report")
    assert loop.counts() == (0, 2, "")
    assert loop.sums() == {("eval", "item"): (2, 2), ("teardown", "report"): (1, 1)}


def test_a_batch_that_waits_while_a_wrapper_is_ahead_and_another_loop_runs() -> None:
    """It was read before the validation, is copied after it, and is one of the training's."""
    loop = Loop()
    loop.next()
    loop.happens("x", of=A)
    for number in range(4):
        loop.next()
        loop.learn()
        loop.optimize()
        if number % 2:
            loop.next(B)
            loop.happens("v", of=B)
            loop.next(B)
            loop.evaluate()
            loop.happens("v", of=B)
            loop.stop(B)
            loop.evaluate()
            loop.happens("report")
        loop.happens("x", of=A)
    loop.stop()
    loop.learn()
    loop.optimize()
    assert loop.counts() == (5, 4, "loader")
    sums = loop.sums()
    # two in each first step of those between validations, one in the last: that of the batch which has waited
    assert (sums["train", "x"], sums["eval", "v"][0]) == ((5, 3), 4)
    assert sums["between", "report"] == (2, 2)


@pytest.mark.parametrize("endless", [False, True])
def test_what_follows_an_evaluation_that_nobody_ends(endless: bool) -> None:
    """The loader is endless, or was left alone before its end: what no earlier step of it did is none of it."""
    loop = Loop()
    for epoch in range(2):
        for number in range(2):
            loop.train(anew=epoch > number)
        if not endless:
            loop.stop()
        for number in range(2):
            loop.next(B, anew=endless and epoch > number)
            loop.happens("v")
            loop.evaluate()
            loop.happens("read")
        loop.happens("save")
    assert loop.counts() == (4, 4, "loader")
    assert loop.sums() == {
        ("train", "x"): (4, 4),
        ("train", "item"): (4, 4),
        ("eval", "v"): (4, 4),
        ("eval", "read"): (4, 4),
        ("between", "save"): (1, 1),
        ("teardown", "save"): (1, 1),
    }
