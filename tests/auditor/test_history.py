"""The steps one by one: what is kept of them, how they are spread over a long run, and when they were."""

from __future__ import annotations

from time import perf_counter

import pytest

from devlint.auditor import history
from devlint.auditor.frames import Frames
from devlint.auditor.history import What, When
from devlint.auditor.ledger import Ledger, Share
from devlint.record import FIRST_CALLS, Slice
from tests.auditor.test_steps import Loop

X, Y = What("copy", "x"), What("copy", "y")


def numbers(slices: tuple[Slice, ...]) -> list[int | None]:
    return [each.number for each in slices]


def test_each_step_is_told_with_what_happened_in_it() -> None:
    books = Ledger(Frames())
    books.add(Y, 7)
    books.settle(books.take(), "setup", step=False)
    for step in range(3):
        books.add(X, 10, 0.5)
        books.add(X, 20 + step, 0.25)
        books.settle(books.take(), "train", True, When(books.origin + step, 0.75, 0.125))
    first, *steps = books.timeline()
    events = books.events()
    assert (first.phase, first.number, first.start, first.seconds) == ("setup", None, None, None)
    assert [events[part.event].name for part in first.parts] == ["y"]
    for number, each in enumerate(steps):
        assert (each.phase, each.number, each.seconds, each.waited) == ("train", number + 1, 0.75, 0.125)
        assert each.start == pytest.approx(number)
        (part,) = each.parts
        assert (events[part.event].name, events[part.event].phase) == ("x", "train")
        assert (part.calls, part.bytes, part.seconds) == (2, 30 + number, 0.75)
        assert [(call.seconds, call.bytes) for call in part.first] == [(0.5, 10), (0.25, 20 + number)]


def test_a_call_began_so_long_before_it_was_counted_as_it_took() -> None:
    books = Ledger(Frames())
    before = perf_counter()
    books.add(X, 1, 10.0)
    after = perf_counter()
    books.settle(books.take(), "train")
    ((part,),) = (each.parts for each in books.timeline())
    assert before - 10.0 <= part.first[0].start + books.origin <= after - 10.0


def test_of_many_calls_in_a_step_the_first_are_told_one_by_one() -> None:
    books = Ledger(Frames())
    for number in range(3 * FIRST_CALLS):
        books.add(X, number)
    books.settle(books.take(), "train")
    ((part,),) = (each.parts for each in books.timeline())
    assert part.calls == 3 * FIRST_CALLS
    assert [call.bytes for call in part.first] == [*range(FIRST_CALLS)]


def test_a_simulated_run_has_no_times() -> None:
    books = Ledger(Frames(), timed=False)
    books.add(X, 5, 1.0)
    books.settle(books.take(), "train", True, When(1.0, 2.0))
    (step,) = books.timeline()
    (part,) = step.parts
    assert (step.start, step.seconds, step.waited) == (None, None, None)
    assert (part.calls, part.bytes, part.seconds, part.first) == (1, 5, None, ())


def test_of_a_long_run_evenly_spread_steps_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_STEPS", 4)
    books = Ledger(Frames())
    books.add(Y)
    books.settle(books.take(), "setup", step=False)
    for _ in range(21):
        books.add(X)
        books.settle(books.take(), "train")
    assert numbers(books.timeline()) == [None, 1, 5, 9, 13, 17, 21]


def test_steps_in_which_much_happens_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_MOST_PARTS", 60)
    books = Ledger(Frames())
    for _ in range(16):
        for place in range(10):
            books.add(What("copy", "x", place))
        books.settle(books.take(), "train")
    kept = books.timeline()
    assert numbers(kept) == [1, 9]  # a third would be 60 parts and calls
    assert [len(each.parts) for each in kept] == [10, 10]


def test_what_is_not_settled_is_told_too_and_only_once() -> None:
    books = Ledger(Frames())
    books.add(X)
    books.settle(books.take(), "train")
    books.add(X, 3)
    books.rest = lambda: (Share(books.pending, "train", True, When(books.origin, 1.0)),)
    for _ in range(2):
        assert numbers(books.timeline()) == [1, 2]


def test_moves_are_no_part_of_it() -> None:
    books = Ledger(Frames())
    books.tally(What("move", "to")).calls += 1
    books.settle(books.take(), "train")
    (step,) = books.timeline()
    assert step.parts == ()


def test_a_step_lasts_from_its_batch_to_the_next() -> None:
    loop = Loop()
    for _ in range(3):
        loop.next(seconds=0.25)
        loop.happens("x")
        loop.now += 1.0
        loop.learn()
        loop.optimize()
        loop.now += 0.5
    loop.next()
    loop.evaluate()
    loop.now += 2.0
    loop.stop()
    steps = [each for each in loop.ledger.timeline() if each.number is not None]
    assert [(each.phase, each.number) for each in steps] == [("train", 1), ("train", 2), ("train", 3), ("eval", 1)]
    assert [(each.seconds, each.waited) for each in steps] == [(1.75, 0.25)] * 3 + [(2.0, 0.0)]
    starts = [(each.start or 0.0) + loop.ledger.origin for each in steps]
    assert starts == pytest.approx([0.0, 1.75, 3.5, 5.25], abs=1e-6)
