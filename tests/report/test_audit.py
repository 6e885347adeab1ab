"""The report of an audited run, as people read it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from devlint.record import Ending, Event, Frame, Models, Part, Party, Process, Record, Sampled, Slice, Steady, Steps
from devlint.report.audit import render
from devlint.report.audit.table import table
from tests.report import records

HERE = Path(__file__).parent


GOLDEN = sorted((HERE / "golden").glob("*.txt"))


def report(record: Record, width: int = 100, color: bool = False, quiet: bool = False) -> str:
    return "\n".join(render(record, color, width, quiet)) + "\n"


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_a_report_reads_as_approved(file: Path) -> None:
    """These files were read by a person; ``record-width.txt``."""
    name, width = file.stem.split("-")
    assert report(records.every()[name], int(width)) == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", records.every())
@pytest.mark.parametrize("width", [72, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    """But for code and what is written under it, which the other report does not break either."""
    for line in report(records.every()[name], width).splitlines():
        framed = re.match(r" *(\d+ )?\|", line)
        assert framed or len(line) <= width, line


@pytest.mark.parametrize("name", records.every())
def test_colours_add_nothing_but_colours(name: str) -> None:
    record = records.every()[name]
    colored = report(record, color=True)
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == report(record)
    assert "\x1b[1mdevlint audit" in colored


def test_quiet_leaves_only_what_was_found() -> None:
    text = report(records.mismatch(), quiet=True)
    assert text.startswith("error[DVL101] device-mismatch: the run died when tensors on cuda:0 and cpu met")
    assert "torch      " not in text
    assert report(records.nothing(), quiet=True) == "\n"


def test_tensors_without_a_name_get_none() -> None:
    record = records.mismatch()
    (process,) = record.processes
    unnamed = tuple(replace(party, text="", why="", origin=None) for party in process.mismatches[0].parties)
    died = replace(process, mismatches=(replace(process.mismatches[0], parties=unnamed),))
    text = report(replace(record, processes=(died,)), quiet=True)
    assert text.startswith("error[DVL101] device-mismatch: the run died when tensors on cuda:0 and cpu met")
    assert "^ they meet here" in text
    assert "``" not in text
    # what to do with which of them nobody knows
    assert "help:" not in text


def test_the_label_names_two_that_differ() -> None:
    record = records.mismatch()
    (process,) = record.processes
    parties = tuple(Party(text=text, device=device) for text, device in (("x", "cpu"), ("h", "cpu"), ("w", "cuda:0")))
    died = replace(process, mismatches=(replace(process.mismatches[0], parties=parties),))
    assert "^ `x` is on cpu, `w` is on cuda:0" in report(replace(record, processes=(died,)), quiet=True)


def test_a_tensor_that_was_alone_has_met_none() -> None:
    record = records.mismatch()
    (process,) = record.processes
    lengths = Party(text="lengths", device="cuda:0", role="input", why="the lengths have to be on the CPU")
    died = replace(process, mismatches=(replace(process.mismatches[0], parties=(lengths,)),))
    text = report(replace(record, processes=(died,)), quiet=True)
    assert "the run died of a tensor on cuda:0 that had to be elsewhere in `heads.0` (Linear)" in " ".join(text.split())


def test_a_simulation_shows_no_time() -> None:
    text = report(records.simulated(records.cnn()))
    assert not re.search(r"\d (us|ms|s|min|h)\b", text)
    assert "the device was simulated" in text


def test_a_run_on_a_kind_of_card_that_was_never_compared_says_so() -> None:
    assert "have not been compared with a profiler's on CUDA hardware yet" in report(records.cnn())
    assert "compared" not in report(records.simulated(records.cnn()))
    assert "compared" not in report(records.nothing())


def test_steps_that_were_not_recorded_whole_are_told() -> None:
    record = records.cnn()
    (process,) = record.processes
    steps = replace(process.steps, train=1_050)
    sampled = replace(record, processes=(replace(process, steps=steps, sampled=Sampled(steps=900, share=0.06)),))
    text = " ".join(report(sampled).split())
    assert "recorded 150 training steps whole, as that takes 6 % of a step;" in text
    assert "--every-step" in text
    assert "recorded " not in report(record)


def test_the_mismatch_comes_first_and_once() -> None:
    text = report(records.mismatch())
    assert text.count("device-mismatch") == 1
    assert text.index("device-mismatch") < text.index("Set-up")
    assert "died after 1.50 s of the mismatch below" in text
    assert "`self.heads[0].weight` (parameter, float32[10, 64]) is on cpu: `heads` is a plain list" in text


def test_what_the_run_died_of_counts_as_an_error_though_a_rule_speaks_of_its_cause() -> None:
    record = records.mismatch()
    assert "Found 1 problem (1 error)." in report(record)
    (named,) = record.findings or ()
    cause = {**named, "code": "DVL105", "name": "unregistered-submodule", "severity": "warning"}
    assert "Found 2 problems (1 error, 1 warning)." in report(replace(record, findings=(cause,)))


def test_what_saw_nothing_does_not_say_that_all_is_well() -> None:
    idle = Process(pid=1, backend="CUDA")
    assert "Nothing was observed: no module ran" in report(Record(processes=(idle,), findings=()))
    busy = replace(idle, models=Models(outermost=("Net",)), ending=Ending(kind="finished"))
    assert "No device problem was found." in report(Record(processes=(busy,), findings=()))


def test_a_mismatch_that_was_caught_is_not_what_the_run_died_of() -> None:
    (process,) = records.mismatch().processes
    caught = replace(process, ending=Ending(kind="exception", code=1, error="ValueError: another one"))
    text = report(replace(records.mismatch(), processes=(caught,)))
    assert "the run died when" not in text
    assert "`self.heads[0]` is on the CPU but its input is on `cuda:0`" in text  # the finding, as it was judged


def test_an_origin_in_another_file_gets_a_frame_of_its_own() -> None:
    record = records.mismatch()
    (process,) = record.processes
    (met,) = process.mismatches
    there = replace(met.parties[1], origin=records.at(6))
    moved = replace(process, mismatches=(replace(met, parties=(met.parties[0], there)),))
    text = report(replace(record, processes=(moved,)))
    assert " ::: train.py:6:1\n" in text
    assert " 6 | model = Net().to(device)\n   | ------------------------ `self.heads[0].weight`, on cpu\n" in text


def test_code_that_the_record_lacks_is_not_invented() -> None:
    text = report(replace(records.cnn(), sources={}), 80)
    assert " --> train.py:7:10\n" in text
    assert "DataLoader(data" not in text
    assert "    17" in text


def test_the_median_counts_for_what_happens_in_every_step_and_the_mean_for_what_does_not() -> None:
    """10 steps: a copy of 100 bytes in each, one of 50 in only 2 of them: 100 and 2 * 50 / 10 = 10 bytes a step."""
    steady = Event(
        kind="copy", name="copy_", phase="train", frame=records.at(12), source="cpu", target="cuda:0", calls=10,
        bytes=1000, steps=10, steady=Steady(calls=1, bytes=100),
    )  # fmt: skip
    rare = replace(steady, frame=records.at(17), calls=2, bytes=100, steps=2, steady=Steady())
    found = table([Process(pid=1, steps=Steps(train=10), events=(steady, rare))], "train")
    assert [(group.line.row, group.rows[0].costs[0][:2]) for group in found.groups] == [(12, (1, 100)), (17, (0.2, 10))]
    assert found.totals[0].costs[0][:2] == (1.2, 110)
    shown = report(Record(processes=(Process(pid=1, steps=Steps(train=10), events=(steady, rare)),)))
    assert "0.2   10 B  2 of 10 steps" in shown


def test_steps_in_which_a_row_happened_by_way_of_several_events_count_once_each() -> None:
    """As the batches of loaders that a library makes anew for each evaluation: each is an event of its own."""
    one = Event(
        kind="copy", name="copy_", phase="eval", frame=records.at(12), source="cpu", target="cuda:0",
        calls=2, bytes=20, steps=2, loader=0,
    )  # fmt: skip
    events = (one, replace(one, loader=1), replace(one, loader=2, calls=1, steps=1))
    happened = [(0,), (0, 1), (1,), (2,), (), (), (), (), ()]
    timeline = [
        Slice(phase="eval", number=number, parts=tuple(Part(event=event) for event in found))
        for number, found in enumerate(happened, 1)
    ]
    every = Process(pid=1, steps=Steps(eval=9), events=events, timeline=tuple(timeline))
    assert "4 of 9 steps" in report(Record(processes=(every,)))
    # of a long run not all steps are kept: of the 5 every second one, 2 of them have it
    thinned = replace(every, timeline=tuple(timeline[::2]))
    assert [row.steps for group in table([thinned], "eval").groups for row in group.rows] == [4]
    assert [row.steps for group in table([replace(every, timeline=())], "eval").groups for row in group.rows] == [2]


def test_the_costliest_line_comes_first() -> None:
    """By the time blocked where there is one; else a sync ranks with a copy of 100,000 bytes."""
    (process,) = records.cnn().processes
    rows = [group.line.row for group in table([process], "train").groups]
    assert rows == [17, 12, 18]  # 5.1 ms, 0.93 ms, 0.05 ms
    (process,) = records.simulated(records.cnn()).processes
    rows = [group.line.row for group in table([process], "train").groups]
    assert rows == [12, 17, 18]  # 2 calls and 201,216 bytes, 1 call and 4 bytes, 1 call


def test_a_long_tail_is_summed_up() -> None:
    """Of 24 rows 15 are shown; the other 9 are those of 1 to 9 times 4 KiB, 45 * 4 = 180 KiB, and 0 to 0.8 ms."""
    text = report(records.framework())
    assert text.count("via transformers/trainer.py") == 15
    assert "and 9 more rows: H2D 9 (180 KiB) 3.60 ms" in text


def test_ranks_that_differ_show_a_range() -> None:
    text = report(records.distributed())
    assert "ranks 0 and 1 share cuda:0" in text
    assert re.search(r"D2H +1-2 +4 B +5\.10-10\.0 ms +item, blocking", text)
    assert "rank 1: killed; this is what was known after 3.00 s" in text


def test_the_head_names_the_devices_of_all_ranks_and_says_run_once() -> None:
    (process,) = records.cnn().processes
    others = (replace(process, pid=2, role="loader worker", steps=Steps()),)
    ranks = tuple(
        replace(
            process, pid=10 + rank, role="rank", rank=rank, models=replace(process.models, devices=(f"cuda:{rank}",))
        )
        for rank in (0, 1)
    )
    text = report(replace(records.cnn(), processes=(*ranks, *others)))
    assert re.search(r"\n  model .* on cuda:0 and cuda:1\n", text)
    assert len(re.findall(r"\n  run  ", text)) == 1
    assert "\n             with 1 loader worker\n  started " in text


def test_what_the_processes_did_that_did_not_train() -> None:
    """Hogwild: children train, the main process evaluates; a worker of a pool only copies."""
    (process,) = records.cnn().processes
    frame = next(event.frame for event in process.events if event.frame)
    item = Event(
        kind="copy", name="item", frame=frame, source="cuda:0", target="cpu", calls=6, bytes=24, phase="eval", steps=3
    )
    main = Process(pid=1, steps=Steps(eval=300), events=(item,))
    pool = Process(pid=2, role="child", events=(replace(item, phase="setup"),))
    beside = (main, replace(process, role="child"), pool)
    text = report(replace(records.cnn(), processes=beside))
    assert "  steps      40 training (40 of Adam), 300 evaluation;" in text
    assert "Evaluation of the main process, per step: the mean of 300 steps\n" in text
    assert "Set-up of process 2, in total\n" in text
    two = report(replace(records.cnn(), processes=(*beside, replace(pool, pid=3))))
    assert "Set-up of other processes, in total of each of 2 processes\n" in two


def test_ranks_that_each_see_one_card_do_not_share_it() -> None:
    record = records.distributed()
    apart = tuple(
        replace(process, environment=replace(process.environment, visible_devices=str(process.rank)))
        for process in record.processes
    )
    assert "share" not in report(replace(record, processes=apart))


def test_what_only_one_process_notes_is_said_of_that_one() -> None:
    first, second = records.distributed().processes
    both = (replace(first, notes=("all",)), replace(second, notes=("all", "mine"), failure="KeyError: 'x'"))
    text = report(replace(records.distributed(), processes=both))
    assert "  - all\n  - rank 1: mine\n  - rank 1: devlint failed" in text


def test_control_characters_of_the_run_do_not_reach_the_terminal() -> None:
    evil = "\x1b[2J\nx"
    (process,) = records.cnn().processes
    events = tuple(replace(event, name=evil, source=f"cuda{evil}") for event in process.events)
    ending = Ending(kind="exception", code=1, error=evil)
    process = replace(process, notes=(evil,), ending=ending, events=events)
    sources = {records.TRAIN: {row: line + " # " + evil for row, line in records.SOURCES[records.TRAIN].items()}}
    text = report(replace(records.cnn(), command=(evil,), processes=(process,), sources=sources, advice=(evil,)))
    assert "\x1b" not in text


def test_several_copies_in_one_line_are_told_apart_by_their_expressions() -> None:
    text = report(records.cnn(), 100)
    assert re.search(r"H2D +1 +196 KiB +900 us  pageable, blocking  images\.to\(device\)\n", text)
    assert re.search(r"H2D +1 +512 B +30 us  pageable, blocking  labels\.to\(device\)\n", text)
    narrow = report(records.cnn(), 60)
    assert re.search(r"\n +images\.to\(device\)\n +H2D +1 +196 KiB ", narrow), "above, where there is no room beside"
    assert re.search(r"\n +labels\.to\(device\)\n +H2D +1 +512 B ", narrow)


def test_an_expression_that_is_the_whole_line_is_not_said_again() -> None:
    whole = "print(model(images.to(device)).item())"
    code = records.cnn()
    sources = {records.TRAIN: {**code.sources[records.TRAIN], 3: whole}}
    frame = Frame(file=records.TRAIN, line=3, column=0, end_line=3, end_column=len(whole))
    part = replace(frame, column=12, end_column=29)
    events = (
        Event(kind="copy", name="item", phase="setup", frame=frame, source="cuda:0", target="cpu", calls=1, bytes=4),
        Event(kind="copy", name="copy_", phase="setup", frame=part, source="cpu", target="cuda:0", calls=1, bytes=8),
    )
    text = report(replace(code, processes=(Process(pid=1, events=events),), sources=sources, findings=()))
    assert text.count(whole) == 1
    assert re.search(r"D2H +1 +4 B  item\n", text)
    assert re.search(r"H2D +1 +8 B +images\.to\(device\)\n", text)


def test_copies_of_what_had_not_changed_are_called_repeated() -> None:
    again = replace(records.copy(records.at(12, "labels.to(device)"), 1, 40, 0.001), repeats=39)
    (process,) = records.cnn().processes
    text = report(replace(records.cnn(), processes=(replace(process, events=(again,)),)))
    assert "pageable, blocking, repeated" in text
    seldom = replace(again, repeats=19)  # of 40
    text = report(replace(records.cnn(), processes=(replace(process, events=(seldom,)),)))
    assert "repeated" not in text


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (Ending(kind="finished"), "finished after 4.20 s"),
        (Ending(kind="exit", code=3), "exited after 4.20 s with code 3"),
        (Ending(kind="steps"), "stopped by --steps after 4.20 s"),
        (Ending(kind="interrupted", code=130), "interrupted by Ctrl-C after 4.20 s"),
        (Ending(kind="terminated", code=143, error="SIGTERM"), "terminated by SIGTERM after 4.20 s"),
        (Ending(kind="exception", code=1, error="KeyError: 'x'"), "died after 4.20 s: KeyError: 'x'"),
        (Ending(kind="exception", code=1), "died after 4.20 s of an exception"),
        (Ending(), "killed; this is what was known after 4.20 s"),
    ],
    ids=lambda value: value.kind if isinstance(value, Ending) else "",
)
def test_how_a_run_ended(ending: Ending, text: str) -> None:
    (process,) = records.cnn().processes
    shown = report(replace(records.cnn(), processes=(replace(process, ending=ending),)))
    assert f"  run        {text}\n" in shown


def test_a_copy_that_was_to_be_asynchronous_out_of_pageable_memory_is_explained() -> None:
    record = records.cnn()
    (process,) = record.processes
    event = replace(process.events[0], blocking=None, non_blocking=True)
    text = report(replace(record, processes=(replace(process, events=(event,)),)))
    assert "pageable, staged" in text
    assert "staged: `non_blocking` has little use out of pageable memory" in " ".join(text.split())
    assert "staged" not in report(record)


def test_the_line_of_a_library_is_never_cut_off() -> None:
    """Rows that differ in it alone would read alike."""
    record = records.cnn()
    (process,) = record.processes
    via = Frame(file=f"/env/lib/python3.11/site-packages/{'deeply/' * 12}loop.py", line=4711)
    event = replace(process.events[0], via=via)
    text = report(replace(record, processes=(replace(process, events=(event,)),)), width=72)
    assert "/loop.py:4711\n" in text


def test_what_another_line_has_copied_before_is_told() -> None:
    record = records.cnn()
    (process,) = record.processes
    event = replace(process.events[0], doubled=40, double=records.at(6))
    assert "pageable, blocking, as line 6 did" in report(
        replace(record, processes=(replace(process, events=(event,)),))
    )
    other = replace(event, double=replace(records.at(6), file="/home/me/other.py"))
    assert "as other.py:6 did" in report(replace(record, processes=(replace(process, events=(other,)),)))
    seldom = replace(event, doubled=3)
    assert " did" not in report(replace(record, processes=(replace(process, events=(seldom,)),)))
