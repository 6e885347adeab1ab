"""The trace against the Trace Event Format: what each kind of event has to have, and what it means."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from devlint.record import Call, Part, Record, Slice
from devlint.report.trace import NoTimelineError, trace
from tests.report import pages, records
from tests.report.test_audit_any import PATIENCE, RECORDS

NUMBER = (int, float)
REQUIRED: dict[str, dict[str, Any]] = {
    "X": {"ph": str, "pid": int, "tid": int, "ts": NUMBER, "dur": NUMBER, "name": str, "cat": str, "args": dict},
    "C": {"ph": str, "pid": int, "tid": int, "ts": NUMBER, "name": str, "args": dict},
    "M": {"ph": str, "pid": int, "tid": int, "name": str, "args": dict},
}  # fmt: skip
"""The fields of complete events, counters and metadata, with the types that the format gives them."""
METADATA = {
    "process_name": "name",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}
ROUNDED = 0.002
"""Times are rounded to nanoseconds."""


def made(record: Record) -> list[dict[str, Any]]:
    """The events of a trace, which keep to the format."""
    found = json.loads(trace(record))
    assert set(found) <= {"traceEvents", "displayTimeUnit", "otherData", "systemTraceEvents", "stackFrames", "samples"}
    assert found["displayTimeUnit"] in ("ms", "ns")
    events: list[dict[str, Any]] = found["traceEvents"]
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    named = set()
    for event in events:
        fields = REQUIRED[event["ph"]]
        assert event.keys() == fields.keys()
        assert [name for name, kind in fields.items() if not isinstance(event[name], kind)] == []
        if event["ph"] == "M":
            assert METADATA[event["name"]] in event["args"]
            named.add((event["pid"], event["tid"]))
        if event["ph"] == "C":
            assert all(isinstance(value, NUMBER) for value in event["args"].values())
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert tracks.keys() <= named
    for (_, track), spans in tracks.items():
        spans.sort()
        if track:  # complete events of one track must be nested, or apart
            assert all(start >= end - ROUNDED for (_, end), (start, _) in pairwise(spans))
    return events


def complete(events: list[dict[str, Any]], track: int) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X" and event["tid"] == track]


def test_steps_and_calls_are_where_they_were() -> None:
    events = made(pages.every()["cnn"])
    steps = complete(events, 0)
    assert [step["name"] for step in steps] == [f"train step {number}" for number in range(1, 41)]
    assert (steps[0]["ts"], steps[0]["dur"]) == (500_000, 12_100)
    assert steps[0]["args"] == {"step": 1, "phase": "train", "waited for the loader (ms)": 4.0}
    item = next(event for event in complete(events, 1) if event["name"] == "D2H loss.item()")
    assert (item["ts"], item["dur"], item["cat"]) == (503_000, 5_100, "D2H")
    assert item["args"] == {
        "operation": "item", "phase": "train", "step": 1, "line": "train.py:17", "function": "<module>",
        "code": "total += loss.item()", "how": "item, blocking", "from": "cuda:0", "to": "cpu",
        "calls in this step": 1, "bytes": 4,
    }  # fmt: skip
    counter = next(event for event in events if event["ph"] == "C")
    assert (counter["ts"], counter["args"]) == (500_000, {"H2D": 201_216, "D2H": 4})


def test_what_happened_at_once_is_on_tracks_of_its_own() -> None:
    (process,) = pages.every()["cnn"].processes
    calls = [(0.0, 1.0), (0.5, 1.0), (0.75, 0.125), (1.0, 0.25), (1.5, 0.5)]
    parts = tuple(
        Part(event=0, calls=1, bytes=1, first=(Call(start=start, seconds=seconds, bytes=1),))
        for start, seconds in calls
    )
    process = replace(process, timeline=(Slice(phase="train", number=1, start=0.0, seconds=3.0, parts=parts),))
    events = made(replace(records.cnn(), processes=(process,)))
    starts = [[event["ts"] / 1e6 for event in complete(events, track)] for track in (1, 2, 3)]
    assert starts == [[0.0, 1.0, 1.5], [0.5], [0.75]]


def test_ranks_are_processes_on_one_clock() -> None:
    events = made(pages.every()["distributed"])
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {0: "rank 0, cuda:0", 1: "rank 1, cuda:0"}
    first = {pid: min(step["ts"] for step in complete(events, 0) if step["pid"] == pid) for pid in names}
    assert first[1] - first[0] == pytest.approx(250_000, abs=1)  # the second one began a quarter of a second later


def test_what_works_for_a_rank_is_a_process_of_its_own() -> None:
    record = pages.every()["distributed"]
    first, second = record.processes
    helper = replace(second, role="loader worker")
    found = made(replace(record, processes=(first, second, helper, replace(helper, rank=None))))
    names = [event["pid"] for event in found if event["name"] == "process_name"]
    assert names == [0, 1, 2, 3]
    alone = made(replace(record, processes=(replace(first, rank=3), replace(first, rank=None))))
    assert len({event["pid"] for event in alone}) == 2


def test_calls_that_are_not_told_one_by_one_are_said_to_be_missing() -> None:
    (process,) = pages.every()["cnn"].processes
    part = Part(event=0, calls=500, bytes=9, first=(Call(start=0.0, seconds=0.1, bytes=4), Call(start=0.2, bytes=5)))
    process = replace(process, timeline=(Slice(phase="train", number=1, start=0.0, seconds=3.0, parts=(part,)),))
    found = complete(made(replace(records.cnn(), processes=(process,))), 1)
    assert [event["args"]["bytes"] for event in found] == [4, 5]
    assert {event["args"]["shown"] for event in found} == {"the first 2 of 500 calls"}


def test_a_simulated_run_shows_the_order_and_says_so() -> None:
    record = pages.every()["simulated"]
    events = made(record)
    assert json.loads(trace(record))["otherData"]["clock"].startswith("order only")
    assert "simulated" in next(event["args"]["name"] for event in events if event["name"] == "process_name")
    steps = complete(events, 0)
    assert [step["dur"] for step in steps] == [4] * 40  # four calls each
    assert steps[0]["ts"] == 6  # after those of the set-up
    inside = [event["args"]["step"] for event in complete(events, 1)[1:5]]
    assert inside == [1, 1, 1, 1]


def test_text_is_text() -> None:
    names = [event["name"] for event in made(pages.hostile())]
    assert f"H2D {pages.HOSTILE}" in names


def test_a_record_without_steps_makes_no_trace() -> None:
    with pytest.raises(NoTimelineError, match="older devlint"):
        trace(records.cnn())
    assert complete(made(records.nothing()), 0) == []


@settings(PATIENCE, max_examples=40)
@given(RECORDS)
def test_any_record_makes_a_trace_or_says_why_not(record: Record) -> None:
    try:
        made(record)
    except NoTimelineError:
        assert any(process.events for process in record.processes)
