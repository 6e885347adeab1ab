"""The sentence that sums up a run: what a step copies, how often it waits, and where to look first."""

from __future__ import annotations

from dataclasses import replace

from devlint.record import Event, Record, Steps
from devlint.report.audit.code import Code
from devlint.report.audit.summary import in_short
from tests.report import records
from tests.report.records import at, copy

BATCH = copy(at(12, "images.to(device)"), 2, 4096, 0.004)
WAIT = copy(at(17, "loss.item()"), 1, 4, 0.001, name="item", source="cuda:0", target="cpu")


def told(*events: Event, simulated: bool = False, **more: object) -> str:
    (process,) = records.cnn().processes
    record = replace(records.cnn(), processes=(replace(process, events=events, **more),))
    return summary(records.simulated(record) if simulated else record)


def summary(record: Record) -> str:
    return in_short(record, Code(record))


def test_times_are_told_where_they_are_real() -> None:
    assert told(BATCH, WAIT) == (
        "each training step: 2 copies to the device (4.00 KiB), 1 copy from it (4 B) and 1 wait for it; "
        "the host is blocked for 5.00 ms of 12.3 ms (41 %); most of it at train.py:12, "
        "`images, labels = images.to(device), labels.to(device)`"
    )


def test_without_times_a_line_that_waits_comes_first() -> None:
    """However many bytes another one copies: a wait ends all that the device could do ahead."""
    text = told(BATCH, WAIT, simulated=True)
    assert text.endswith("1 wait for it; look first at train.py:17, `total += loss.item()`")
    assert "blocked" not in text
    assert told(BATCH, simulated=True).endswith(
        "look first at train.py:12, `images, labels = images.to(device), labels.to(device)`"
    )


def test_a_blocking_copy_to_the_device_is_no_wait_for_it() -> None:
    assert "wait" not in told(BATCH)


def test_the_device_is_named_before_it_is_it() -> None:
    assert told(WAIT).startswith("each training step: 1 copy from the device (4 B) and 1 wait for it;")


def test_what_happens_in_few_steps_is_not_said_of_each() -> None:
    """As what is copied to save a checkpoint in 2 of 40: it is the most, and no step is told by it."""
    saved = copy(at(6, "Net().to(device)"), 80, 4_000_000, 0.001, source="cuda:0", target="cpu", steps=2)
    assert told(BATCH, WAIT, saved, simulated=True) == told(BATCH, WAIT, simulated=True)
    assert "80 waits" in told(saved, simulated=True)


def test_a_loop_that_keeps_to_the_device_is_said_to() -> None:
    setup = copy(at(6, "Net().to(device)"), 6, 203_560, 0.002, phase="setup", steps=0)
    assert told(setup) == "each training step keeps to the device: no copies, and no waits for it"


def test_evaluation_is_summed_up_where_nothing_trained() -> None:
    event = copy(at(12, "images.to(device)"), 8, 8 * 512, 0.008, phase="eval", steps=8)
    text = told(event, steps=Steps(eval=8))
    assert text.startswith("each evaluation step: 1 copy to the device (512 B); the host is blocked for 1.00 ms; most")


def test_without_a_loop_there_is_nothing_to_sum_up() -> None:
    assert told(BATCH, steps=Steps()) == ""
    assert summary(records.nothing()) == ""
