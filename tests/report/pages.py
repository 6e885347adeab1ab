"""Records for the tests of the page: with steps one by one, with hostile text, and very large ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from devlint.record import Call, Event, Frame, Part, Process, Record, Slice, Steady, Steps
from devlint.report.html import page
from tests.report import records

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>&amp;\"'`<!--"
LINES = 10_000
_FILES = 50


def stepwise(record: Record) -> Record:
    """The same run, whose training steps are told one by one; each is a little longer than the one before."""
    return replace(record, processes=tuple(_timeline(process, record.simulated) for process in record.processes))


def _timeline(process: Process, simulated: bool) -> Process:
    slices, start = [], 0.5
    for number in range(1, process.steps.train + 1):
        seconds = 0.012 + number * 1e-4
        parts = [_part(index, event, start, simulated) for index, event in enumerate(process.events) if event.steady]
        when: dict[str, Any] = {} if simulated else {"start": start, "seconds": seconds, "waited": 0.004}
        slices.append(Slice(phase="train", number=number, parts=tuple(parts), **when))
        start += seconds
    setup = [
        _part(index, event, 0.1, simulated) for index, event in enumerate(process.events) if event.phase == "setup"
    ]
    whole = (Slice(phase="setup", parts=tuple(setup)), *slices)
    return replace(process, began=1_700_000_000.0 + (process.rank or 0) * 0.25, timeline=whole)


def _part(index: int, event: Event, start: float, simulated: bool) -> Part:
    each = event.steady or Steady(calls=event.calls, bytes=event.bytes, seconds=event.seconds)
    seconds, calls = each.seconds or 0.0, int(each.calls)
    if simulated:
        return Part(event=index, calls=calls, bytes=int(each.bytes))
    first = Call(start=start + 0.001 * (index + 1), seconds=seconds, bytes=int(each.bytes))
    return Part(event=index, calls=calls, bytes=int(each.bytes), seconds=seconds, first=(first,))


def hostile() -> Record:
    """A run whose every text would like to be markup."""
    file = f"{records.HOME}/{HOSTILE}.py"
    frame = Frame(file=file, line=1, function=HOSTILE, column=0, end_line=1, end_column=len(HOSTILE))
    events = (
        replace(records.copy(frame, 1, 64, 0.5, name=HOSTILE), example=HOSTILE),
        records.copy(None, 1, 64, 0.5, name=HOSTILE, via=frame),
    )
    place = {"location": {"row": 1, "column": 1}, "end_location": {"row": 1, "column": 9}, "filename": file}
    finding = {
        **records.MISSING_PIN, **place, "message": HOSTILE, "label": HOSTILE, "help": HOSTILE, "name": HOSTILE,
        "related": [{**place, "message": HOSTILE}],
    }  # fmt: skip
    (process,) = records.cnn().processes
    process = replace(
        process,
        events=events,
        notes=(HOSTILE,),
        ending=replace(process.ending, kind="exception", error=HOSTILE),
        models=replace(process.models, outermost=(HOSTILE,)),
        environment=replace(process.environment, torch=HOSTILE, platform=HOSTILE),
    )
    return stepwise(
        replace(
            records.cnn(),
            processes=(process,),
            command=(HOSTILE, HOSTILE),
            advice=(HOSTILE,),
            findings=(finding, *[{**finding, "code": "DVL999"}] * 120),
            sources={file: {1: HOSTILE}},
        )
    )


def large() -> Record:
    """10,000 lines of code, each with a copy of its own and a finding, in 2,000 steps."""
    per_file = LINES // _FILES
    files = [f"{records.HOME}/package/module_{number:02}.py" for number in range(_FILES)]
    text = "        prediction_{0} = self.encoder(inputs_{0}.to(device), mask=None)  # of batch {0}"
    events, found = [], []
    for index in range(LINES):
        file, row = files[index % _FILES], index // _FILES + 1
        line = text.format(row)
        start = line.index("inputs")
        frame = Frame(file=file, line=row, function="Model.forward", column=start, end_line=row, end_column=start + 20)
        events.append(records.copy(frame, 1, 4096 + 16 * index, 1e-6 * index + 1e-5))
        place = {"location": {"row": row, "column": start + 1}, "end_location": {"row": row, "column": start + 21}}
        found.append({**records.MISSING_PIN, **place, "filename": file, "related": []})
    (process,) = records.cnn().processes
    parts = tuple(Part(event=index, calls=1, bytes=4096, seconds=1e-5) for index in range(5))
    steps = tuple(
        Slice(phase="train", number=number, start=number * 0.01, seconds=0.01, waited=0.001, parts=parts)
        for number in range(1, 2001)
    )
    process = replace(process, events=tuple(events), timeline=steps, began=1.7e9, steps=Steps(train=2000))
    sources = {file: {row: text.format(row) for row in range(1, per_file + 1)} for file in files}
    return replace(records.cnn(), processes=(process,), findings=tuple(found), sources=sources, advice=())


@cache
def large_page() -> str:
    """The page of it, which takes some seconds to make."""
    return page(large())


def every() -> dict[str, Record]:
    """All records of :mod:`tests.report.records`, with steps where there were any, and the hostile one."""
    return {**{name: stepwise(record) for name, record in records.every().items()}, "hostile": hostile()}
