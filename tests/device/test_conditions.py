"""Path conditions: equal ones are one object, and what follows from which."""

from __future__ import annotations

import gc
import itertools

import pytest

from devlint.device import (
    AVAILABLE,
    ITEMS,
    Condition,
    Conjunction,
    EachItem,
    LoopRound,
    PathTaken,
    Predicate,
    Returned,
    Topic,
    Truth,
    Wanted,
    conditions,
)

X, Y = Predicate("x"), Predicate("y")


def several() -> list[Condition]:
    """A few of each class, made anew."""
    return [
        *(AVAILABLE, ITEMS, Truth(True), Truth(False), X, Y, Wanted(X), Wanted(Y), EachItem(1), EachItem(2)),
        *(Conjunction(((X, True), (Y, True))), Conjunction(((X, True), (Y, False)))),
        *(LoopRound("1:0"), LoopRound("1:0", 1), LoopRound("2:0"), Returned(0, "f"), Returned(1, "f")),
        *(PathTaken("try", "1:0"), PathTaken("case", "1:0"), PathTaken("case", "1:0", 1)),
    ]


def test_equal_conditions_are_one_object_and_others_are_not() -> None:
    for (here, one), (there, two) in itertools.product(enumerate(several()), repeat=2):
        assert (one is two) is (one == two) is (here == there)
    assert len({condition.text for condition in several()}) == len(several())


def test_nothing_is_kept_of_conditions_that_nobody_has() -> None:
    def mine() -> int:
        # of the others some may go at any time
        return sum("only here" in str(key) for key in list(conditions._instances))

    kept = [Predicate(f"only here {number}") for number in range(100)]
    assert mine() == len(kept)
    del kept
    gc.collect()
    assert mine() == 0


def test_what_follows_from_which() -> None:
    follows = {(one.text, two.text) for one, two in itertools.permutations(several(), 2) if one.implies(two)}
    assert follows == {("x and y", "x"), ("x and y", "y"), ("x and not y", "x"), ("loop 1:0 again", "loop 1:0")}
    assert all(condition.implies(condition) for condition in several())


def test_a_name_that_begins_like_another_says_nothing_of_it() -> None:
    assert not Predicate("x == 3").implies(X)
    assert not LoopRound("1:0 again").implies(LoopRound("1:0"))


@pytest.mark.parametrize(
    ("condition", "necessary"),
    [
        (AVAILABLE, True),
        (Wanted(X), True),
        (Predicate("x.is_cuda", "", "", (Topic.PLACE,)), True),
        (X, False),
        # several have to hold: which one fails is not known
        (Conjunction(((Wanted(X), True), (Y, True))), False),
        (Conjunction(((Y, True), (AVAILABLE, True))), False),
        (LoopRound("1:0"), False),
    ],
)
def test_without_what_there_is_no_accelerator(condition: Condition, necessary: bool) -> None:
    assert condition.necessary is necessary
