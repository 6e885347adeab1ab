"""Two runs side by side: which lines are the same, what is said of them, and when nothing can be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlint.record import Environment, Frame, Process, Record, Steps
from devlint.report.audit import render
from devlint.report.compare import Both, Comparison, compare
from devlint.report.compare import json as as_json
from devlint.report.compare import text as as_text
from devlint.report.compare.caveats import caveats
from devlint.report.compare.matching import pairs
from tests.report import records
from tests.report.test_audit_any import PATIENCE, RECORDS

EDITED = [
    "# one more line at the top",
    *records.TRAIN_CODE.splitlines()[:11],
    "        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)",
    *records.TRAIN_CODE.splitlines()[12:],
]


def improved() -> Record:
    """The same run after some work: a line more, copies that do not wait, a check less, and the loader pinned."""

    def moved(frame: Frame | None) -> Frame | None:
        return frame and replace(frame, line=frame.line + 1, end_line=None, column=None, end_column=None)

    (process,) = records.cnn().processes
    events = []
    for event in process.events:
        if event.kind == "sync":
            continue
        if event.steady and event.target == "cuda:0":
            event = replace(event, pinned=True, blocking=False, steady=replace(event.steady, seconds=1e-5))
        events.append(replace(event, frame=moved(event.frame)))
    steps = replace(process.steps, step_seconds=0.0082, loader_seconds=0.001)
    process = replace(process, events=tuple(events), steps=steps)
    sources = {records.TRAIN: dict(enumerate(EDITED, 1))}
    return replace(records.cnn(), processes=(process,), findings=(), sources=sources, started="2026-05-05T10:00:00")


def of(before: Record, after: Record) -> Comparison:
    return compare(before, after)


def shown(found: Comparison, width: int = 100) -> str:
    return "\n".join(as_text.render(found, width=width))


def test_what_a_change_bought_is_told_in_figures() -> None:
    found = of(records.cnn(), improved())
    assert found.caveats == []
    assert {figure.name: figure.values for figure in found.figures} == {
        "step time": (0.0123, 0.0082),
        "waiting for the loader": (0.0041, 0.001),
        "host blocked": (pytest.approx(0.00608), pytest.approx(0.00512)),
        "host waits": (4, 1),
        "peak memory": (3 * 2**30, 3 * 2**30),
    }
    totals = {flow.direction: (flow.calls, flow.bytes, flow.seconds) for flow in found.totals}
    assert totals == {
        "H2D": ((2, 2), (201_216, 201_216), (pytest.approx(0.00093), 2e-5)),
        "D2H": ((1, 1), (4, 4), (0.0051, 0.0051)),
        "sync": ((1, 0), (0, 0), (0.00005, 0.0)),
    }


def test_lines_are_known_again_although_they_moved_and_changed() -> None:
    found = of(records.cnn(), improved())
    rows = [(line.before and line.before.line, line.after and line.after.line, line.changed) for line in found.lines]
    assert rows == [(12, 13, True), (18, None, True), (17, 18, False)]


def test_findings_that_are_gone_and_new_are_told_apart() -> None:
    other = {**records.MISSING_PIN, "code": "DVL202", "name": "invariant-transfer-in-loop"}
    moved = {**records.MISSING_PIN, "location": {"row": 8, "column": 10}, "end_location": {"row": 8, "column": 57}}
    found = of(records.cnn(), replace(improved(), findings=(other, moved)))
    assert (found.gone, [finding["code"] for finding in found.new], found.remaining) == ([], ["DVL202"], 1)
    found = of(replace(records.cnn(), findings=(records.MISSING_PIN,) * 2), records.cnn())
    assert ([finding["code"] for finding in found.gone], found.new, found.remaining) == (["DVL301"], [], 1)


def test_the_text_reads_well() -> None:
    text = shown(of(records.cnn(), improved()))
    assert (
        text
        == """\
  before     devlint audit train.py --epochs 2, 2026-05-04 10:00
  after      devlint audit train.py --epochs 2, 2026-05-05 10:00

Findings: 1 gone
  - train.py:7 warning[DVL301] missing-pin-memory: the batches of this `DataLoader` are copied to
      `cuda:0` from pageable memory at every step

Training, per step
                            before     after  change
  step time                12.3 ms   8.20 ms   -33 %
  waiting for the loader   4.10 ms   1.00 ms   -76 %
  host blocked             6.08 ms   5.12 ms   -16 %
  host waits                     4         1   -75 %
  peak memory             3.00 GiB  3.00 GiB    same
  H2D calls                      2         2    same
  H2D bytes                196 KiB   196 KiB    same
  H2D blocked               930 us     20 us   -98 %
  D2H calls                      1         1    same
  D2H bytes                    4 B       4 B    same
  D2H blocked              5.10 ms   5.10 ms    same
  sync calls                     1         0    gone
  sync blocked               50 us      0 us    gone

By line: 2 lines changed, 1 as before
  train.py:13 (was 12)  images, labels = images.to(device, non_blocking=True), labels.to(device,...
      H2D   2 calls, 196 KiB, 930 us -> 20 us blocked
  train.py:18 (gone)  if (labels < 0).any():
      sync  1 -> 0 calls, 50 us -> 0 us blocked"""
    )


def test_json_says_the_same() -> None:
    found = json.loads(as_json.render(of(records.cnn(), improved())))
    assert found["comparable"] is True
    assert (found["phase"], found["per_step"]) == ("train", True)
    assert found["figures"]["step_time"] == {"before": 0.0123, "after": 0.0082}
    assert found["directions"]["sync"]["calls"] == {"before": 1, "after": 0}
    first = found["lines"][0]
    assert first["before"] == {
        "file": "train.py", "line": 12, "function": "<module>",
        "code": "images, labels = images.to(device), labels.to(device)",
    }  # fmt: skip
    assert first["after"]["line"] == 13
    assert first["directions"]["H2D"]["bytes"] == {"before": 201_216, "after": 201_216}
    assert [finding["code"] for finding in found["findings"]["gone"]] == ["DVL301"]
    assert found["findings"]["gone"][0]["filename"] == "train.py"


def test_a_run_compared_with_itself_has_not_changed() -> None:
    for name, record in records.every().items():
        found = of(record, record)
        assert (found.gone, found.new) == ([], []), name
        assert not [line for line in found.lines if line.changed or line.before != line.after], name


# whether runs can be compared


def with_process(**fields: Any) -> Record:
    (process,) = records.cnn().processes
    return replace(records.cnn(), processes=(replace(process, **fields),))


CNN = records.cnn().processes[0]
OTHER_CARD = replace(CNN.environment, devices=(replace(CNN.environment.devices[0], model="NVIDIA A100-SXM4-40GB"),))
INCOMPARABLE: dict[str, tuple[Callable[[], Record], str]] = {
    "another script": (lambda: replace(records.cnn(), command=("eval.py",)), "two scripts, train.py and eval.py"),
    "simulated": (lambda: records.simulated(records.cnn()), "the device was real before and is simulated after"),
    "another card": (
        lambda: with_process(environment=OTHER_CARD),
        "the card was NVIDIA H100 80GB HBM3 before and is NVIDIA A100-SXM4-40GB after",
    ),
    "another torch": (
        lambda: with_process(environment=replace(CNN.environment, torch="2.12.0+cu126")),
        "torch was 2.13.0+cu128 before and is 2.12.0+cu126 after",
    ),
    "another batch": (
        lambda: with_process(loaders=(replace(CNN.loaders[0], batch="float32[32, 784], int64[32]"),)),
        "a batch was float32[64, 784], int64[64] before and is float32[32, 784], int64[32] after",
    ),
    "more ranks": (records.distributed, "1 processes trained before, 2 after"),
    "fewer steps": (
        lambda: with_process(steps=replace(CNN.steps, train=20)),
        "40 training steps before, 20 after: only what is per step can be compared",
    ),
    "too few steps": (
        lambda: with_process(steps=replace(CNN.steps, train=4)),
        "the median of 4 training steps says little",
    ),
    "no steps": (records.mismatch, "the run after has no training step"),
    "it died": (records.mismatch, "the run after did not come to its end"),
}


@pytest.mark.parametrize("why", INCOMPARABLE)
def test_runs_that_are_not_comparable_are_said_to_be(why: str) -> None:
    make, expected = INCOMPARABLE[why]
    found = of(records.cnn(), make())
    assert [caveat for caveat in found.caveats if expected in caveat]
    assert "These runs are not fully comparable" in shown(found)
    assert json.loads(as_json.render(found))["comparable"] is False


def test_other_arguments_are_what_is_compared() -> None:
    assert caveats(records.cnn(), replace(records.cnn(), command=("train.py", "--epochs", "9"))) == []
    assert caveats(records.simulated(records.cnn()), records.simulated(improved())) == []


def test_of_a_simulated_run_no_time_is_compared() -> None:
    found = of(records.cnn(), records.simulated(records.cnn()))
    assert all(flow.seconds == Both(None, None) for flow in found.totals)
    assert [figure.name for figure in found.figures] == ["host waits", "peak memory"]
    assert " us" not in shown(found)
    assert " ms" not in shown(found)


def test_without_training_what_both_did_is_compared() -> None:
    found = of(records.cnn(), records.mismatch())
    assert (found.phase, found.per_step) == ("setup", False)
    (flow,) = found.totals
    assert (flow.direction, flow.calls, flow.bytes) == ("H2D", (6, 6), (203_560, 203_560))


def test_of_nothing_nothing_is_said() -> None:
    text = shown(of(records.nothing(), records.nothing()))
    assert text.endswith("Nothing was copied and nothing was waited for in either run.")


def test_a_figure_that_grows_is_said_to() -> None:
    faster = with_process(steps=Steps(train=40, step_seconds=0.0001))
    assert "step time" in (text := shown(of(faster, records.cnn())))
    assert "123 times" in text
    slower = with_process(steps=Steps(train=40, step_seconds=0.0246))
    assert "+100 %" in shown(of(records.cnn(), slower))
    nearly = with_process(steps=Steps(train=40, step_seconds=0.0120))
    row = next(line for line in shown(of(records.cnn(), nearly)).splitlines() if "step time" in line)
    assert row.split()[-1] == "same"  # what a run differs by from the next


def test_calls_that_cost_by_themselves_have_a_name() -> None:
    emptied = tuple(replace(event, kind="call") if event.kind == "sync" else event for event in CNN.events)
    found = of(records.cnn(), with_process(events=emptied))
    row = next(line for line in shown(found).splitlines() if "costly calls" in line)
    assert row.split() == ["costly", "calls", "0", "1", "new"]
    text = "".join(render(with_process(events=emptied), False, 100))
    assert "call: a call that costs by itself" in text


# matching


def test_items_of_one_key_are_the_same_in_their_order() -> None:
    found = pairs([("a", 1), ("b", 2), ("a", 3)], [("a", 7), ("c", 8), ("a", 9)], lambda item: item[0])
    assert found == [(("a", 1), ("a", 7)), (("a", 3), ("a", 9)), (("b", 2), None), (None, ("c", 8))]


def test_the_surest_key_is_tried_first() -> None:
    found = pairs(["ab", "ac"], ["ac", "ad"], lambda item: item, lambda item: item[0])
    assert found == [("ac", "ac"), ("ab", "ad")]
    assert pairs(["ab"], ["ac"], lambda item: None) == [("ab", None), (None, "ac")]


def test_an_edited_line_is_the_one_that_is_most_alike() -> None:
    before = ["loss = loss.item()", "x = x.to(device)", "y = y.to(device)"]
    after = ["y = y.to(device, non_blocking=True)", "import os", "x = x.to(device, non_blocking=True)"]
    found = pairs(before, after, similar=lambda text: (text, ""))
    assert set(found) == {(before[1], after[2]), (before[2], after[0]), (before[0], None), (None, after[1])}
    assert pairs(before, after, similar=lambda text: (text, text)) == [
        *((text, None) for text in before),
        *((None, text) for text in after),
    ]


@given(st.lists(st.text("ab", max_size=4), max_size=8), st.lists(st.text("ab", max_size=4), max_size=8))
def test_every_item_is_there_once(before: list[str], after: list[str]) -> None:
    found = pairs(before, after, lambda text: text, similar=lambda text: (text, ""))
    assert sorted(old for old, _ in found if old is not None) == sorted(before)
    assert sorted(new for _, new in found if new is not None) == sorted(after)
    same = sum(old == new for old, new in found)
    assert same == sum(min(before.count(text), after.count(text)) for text in {*before})


def test_control_characters_of_a_record_do_not_reach_the_terminal() -> None:
    strange = replace(records.cnn(), started="2026\x1b[2J", command=("a\x1bb",))
    assert "\x1b" not in shown(of(strange, strange), 80)


@settings(PATIENCE, max_examples=30)
@given(RECORDS, RECORDS, st.integers(1, 160))
def test_any_two_records_can_be_compared(before: Record, after: Record, width: int) -> None:
    found = of(before, after)
    assert "\x1b" not in shown(found, width)
    assert json.loads(as_json.render(found))["format"] == as_json.FORMAT


def test_a_record_without_environment_has_no_card() -> None:
    empty = replace(records.cnn(), processes=(Process(pid=1, environment=Environment()),))
    assert not [line for line in caveats(records.cnn(), empty) if "card" in line or "torch" in line]
