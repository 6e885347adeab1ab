"""Sums by phase, medians by step, in memory that does not grow."""

from __future__ import annotations

import random
import statistics
import threading

import pytest

from devlint.auditor.frames import Frames
from devlint.auditor.history import What, merged
from devlint.auditor.ledger import Ledger, Samples, Share
from devlint.record import Event, Steady

X, Y = What("copy", "x"), What("copy", "y")


def ledger(timed: bool = True) -> Ledger:
    return Ledger(Frames(), timed)


def only(events: tuple[Event, ...]) -> Event:
    (event,) = events
    return event


def test_sums_are_kept_by_phase() -> None:
    books = ledger()
    books.add(X, 10, 0.5).example = "float32[2]"
    books.add(X, 20, 0.25).repeats += 1
    books.add(Y, 1)
    books.settle(books.take(), "setup", step=False)
    books.add(X, 5).threads.add("MainThread")
    books.settle(books.take(), "teardown", step=False)
    found = {(event.phase, event.name): event for event in books.events()}
    assert list(found) == [("setup", "x"), ("setup", "y"), ("teardown", "x")]  # by phase, then by bytes
    event = found["setup", "x"]
    assert (event.calls, event.bytes, event.seconds, event.repeats, event.steps) == (2, 30, 0.75, 1, 1)
    assert event.example == "float32[2]"
    assert event.steady is None
    assert found["teardown", "x"].threads == ("MainThread",)


def test_the_median_leaves_out_the_first_two_steps_and_counts_absence_as_nothing() -> None:
    books = ledger()
    for calls in (100, 100, 1, 0, 0, 2, 3):  # after the warm-up 1, 0, 0, 2, 3: the median is 1
        for _ in range(calls):
            books.add(X, 4, 1.0)
        books.settle(books.take(), "train")
    event = only(books.events())
    assert event.steady == Steady(calls=1, bytes=4, seconds=1.0)
    assert (event.calls, event.steps) == (206, 5)


def test_the_median_of_an_even_number_is_the_mean_of_the_middle() -> None:
    books = ledger()
    for calls in (0, 0, 1, 2, 4, 7):  # 1, 2, 4, 7: the median is 3
        for _ in range(calls):
            books.add(X, 10)
        books.settle(books.take(), "train")
    assert only(books.events()).steady == Steady(calls=3, bytes=30, seconds=0.0)


@pytest.mark.parametrize(("steps", "expected"), [((5,), 5), ((5, 1), 3)])
def test_the_median_of_a_short_run_is_over_all_of_its_steps(steps: tuple[int, ...], expected: float) -> None:
    books = ledger()
    for calls in steps:
        for _ in range(calls):
            books.add(X)
        books.settle(books.take(), "train")
    steady = only(books.events()).steady
    assert steady is not None
    assert steady.calls == expected


def test_what_is_no_step_has_no_share_in_the_median() -> None:
    books = ledger()
    for _ in range(4):
        books.add(X)
        books.settle(books.take(), "train")
    for _ in range(9):
        books.add(X)
    books.settle(books.take(), "train", step=False)
    event = only(books.events())
    assert event.calls == 13
    assert event.steady == Steady(calls=1, bytes=0, seconds=0.0)


def test_times_mean_nothing_in_simulation() -> None:
    books = ledger(timed=False)
    books.add(X, seconds=1.0)
    books.settle(books.take(), "train")
    event = only(books.events())
    assert event.seconds is None
    assert event.steady == Steady(calls=1, bytes=0, seconds=None)


def test_the_unsettled_is_told_but_stays_unsettled() -> None:
    books = ledger()
    books.add(X, 1)
    books.settle(books.take(), "train")
    books.add(X, 2)
    books.rest = lambda: (Share(books.pending, "train", True),)
    assert only(books.events()).bytes == 3
    assert only(books.events()).bytes == 3
    books.rest = lambda: ()
    assert only(books.events()).bytes == 1
    assert books.steps["train"] == 1


def test_after_each_step_the_books_tell_all_of_it() -> None:
    books = ledger()
    for number in range(1, 41):
        assert not books.known(Y, "eval")
        books.add(X, number)
        books.settle(books.take(), "train")
        assert books.known(X, "train")
        event = only(books.events())
        assert (event.calls, event.bytes, event.steps) == (number, number * (number + 1) // 2, number)
        assert [slice_.number for slice_ in books.timeline()] == list(range(1, number + 1))
        assert [part.bytes for slice_ in books.timeline() for part in slice_.parts] == list(range(1, number + 1))


def test_merging_changes_no_part() -> None:
    books = ledger()
    books.add(X, 1)
    first = books.take()
    books.add(X, 2)
    books.add(Y, 3)
    second = books.take()
    whole = merged([first, second])
    assert {what.name: (tally.calls, tally.bytes) for what, tally in whole.items()} == {"x": (2, 3), "y": (1, 3)}
    assert first[X].bytes == 1
    assert second[X].bytes == 2
    assert not books.pending


def test_what_a_thread_does_ahead_waits_until_it_is_due() -> None:
    """A thread pins 3 batches of 2 tensors at once; 2 of the batches are delivered, one in each of two steps."""
    books = ledger()
    pin = What("pin", "pin_memory")
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        books.works_ahead(threading.current_thread())
        for size in range(6):
            books.add(pin, size)
        ready.set()
        done.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(10)
    assert not books.pending
    books.due(thread, 2)
    assert books.pending[pin].bytes == 0 + 1
    books.settle(books.take(), "train")
    books.due(thread, 2)
    assert books.pending[pin].bytes == 2 + 3
    books.settle(books.take(), "train")
    # the last batch was never asked for
    assert {event.phase: event.bytes for event in books.events()} == {"train": 6, "teardown": 9}
    books.due(thread)
    assert books.pending[pin].bytes == 4 + 5
    done.set()
    thread.join()


def test_a_long_run_takes_no_more_memory_than_a_short_one() -> None:
    books = ledger()
    for number in range(5_000):
        books.add(X, 8, 0.001 * (number % 10))
        books.settle(books.take(), "train")
    total = books._totals["train", X]
    assert len(total.late_seconds._kept) <= 2_000
    assert len(total.late_calls) == 1
    steady = only(books.events()).steady
    assert steady is not None
    assert (steady.calls, steady.bytes) == (1, 8)
    # 0 to 9 ms, evenly: of the half that is kept after each thinning, the median stays in the middle
    assert steady.seconds == pytest.approx(0.0045, abs=0.001)


def test_the_median_of_samples_is_that_of_all_values() -> None:
    values = [random.Random(0).random() for _ in range(1_000)]
    samples = Samples()
    for value in values:
        samples.add(value)
    assert samples.median() == statistics.median(values)
    assert samples.median(zeros=1_000) == statistics.median([*values, *[0.0] * 1_000])
    other = samples.copy()
    other.add(2.0)
    assert samples.median() == statistics.median(values)
    assert Samples().median() is None


def test_threads_may_add_while_a_step_is_settled() -> None:
    books = ledger()
    done = threading.Event()

    def work() -> None:
        number = 0
        while not done.is_set():
            books.add(What("copy", str(number % 50)))
            number += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(300):
            books.settle(books.take(), "train")
            books.events()
    finally:
        done.set()
        thread.join()
