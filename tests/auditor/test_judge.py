"""Each rule on records of runs, made by hand: it fires where it should, and near misses are left alone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devlint.auditor.judgement.judge import judge
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Severity
from devlint.record import (
    Device,
    Environment,
    Event,
    Frame,
    Mismatch,
    Party,
    Process,
    Record,
    Steady,
    Steps,
    Wrapper,
)
from tests.auditor.judging import (
    BATCH,
    ERROR,
    EVERY_RULE,
    STEPS,
    codes,
    copy,
    findings,
    loading,
    only,
    run,
    stray,
)
from tests.auditor.script import Script


def move(frame: Frame, **fields: Any) -> Event:
    """A move that returned its input at each training step."""
    values = {"kind": "move", "name": "to", "source": "cuda:0", "subject": "tensor", "bytes": 0, "pinned": None}
    return copy(frame, **(values | fields))


# -- DVL201 ----------------------------------------------------------------------------------------------------------


def test_a_move_that_never_moves(script: Script) -> None:
    finding = only(run(move(script.at("images.to(device)"))))
    assert (finding["code"], finding["severity"]) == ("DVL201", "warning")
    assert finding["filename"] == str(script.path)
    frame = script.at("images.to(device)")
    assert finding["location"] == {"row": frame.line, "column": frame.column + 1}
    assert "`images` is already on `cuda:0`" in finding["message"]
    # ten steps, one call in each
    assert finding["measured"]["calls"] == 10
    assert finding["measured"]["steps"] == 10
    assert finding["measured"]["per_step"] == 1
    assert finding["fix"]["applicability"] == "unsafe"


def test_a_move_to_where_another_value_is_may_be_careful(script: Script) -> None:
    assert only(run(move(script.at("self.mean.to(x.device)"))))["severity"] == "info"


@pytest.mark.parametrize(
    "fields",
    [
        {"phase": "setup"},
        # in two steps only, or in less than every second one
        {"calls": 2, "steps": 2, "steady": Steady(calls=1)},
        {"calls": 4, "steps": 4, "steady": Steady(calls=0)},
        # without an accelerator the same line has nothing to do
        {"target": "cpu", "source": "cpu"},
        {"via": Frame(file="/usr/lib/python3/site-packages/accelerate/utils/operations.py", line=148)},
    ],
    ids=["set-up", "two steps", "rarely", "on the CPU", "in a library"],
)
def test_a_move_that_may_be_right(script: Script, fields: dict[str, Any]) -> None:
    assert not findings(run(move(script.at("images.to(device)"), **fields)))


def test_a_move_that_sometimes_copies(script: Script) -> None:
    frame = script.at("images.to(device)")
    assert not findings(run(move(frame), copy(frame, phase="setup", steps=0, steady=None, calls=1)))


def test_a_move_that_asks_for_a_dtype(script: Script) -> None:
    assert not findings(run(move(script.at("images.to(device, torch.float16)"))))


def test_what_stays_on_the_cpu_is_at_most_a_hint(script: Script) -> None:
    assert only(run(move(script.at("output.cpu()"), name="cpu", target="cpu", source="cpu")))["severity"] == "info"


def test_pageable_batches(script: Script) -> None:
    finding = only(loading(script, "DataLoader(dataset, batch_size=64)"))
    assert (finding["code"], finding["severity"]) == ("DVL301", "warning")
    assert finding["location"]["row"] == script.at("DataLoader(dataset, batch_size=64)").line
    assert [place["location"]["row"] for place in finding["related"]] == [script.at("images.to(device)").line]
    assert finding["measured"]["bytes_per_step"] == BATCH
    assert finding["fix"]["edits"][0]["content"] == "DataLoader(dataset, batch_size=64, pin_memory=True)"


def test_pageable_batches_that_a_library_copies(script: Script) -> None:
    via = Frame(file="/usr/lib/python3/site-packages/lightning/fabric/utilities/apply_func.py", line=110)
    finding = only(loading(script, "DataLoader(dataset, batch_size=64)", {"via": via}))
    assert finding["code"] == "DVL301"
    assert "lightning/fabric" not in finding["message"]
    assert "in `lightning/fabric/utilities/apply_func.py:110`" in finding["related"][0]["message"]


def test_a_loader_that_a_library_made(script: Script) -> None:
    # as `accelerator.prepare(loader)` does
    finding = only(loading(script, "nn.DataParallel(model)", name="accelerate.data_loader.DataLoaderShard"))
    assert finding["code"] == "DVL301"
    assert finding["fix"] is None
    # nor does a call of another name tell a library from a class in a variable
    assert finding["label"] == "made in this call, without `pin_memory`"


def test_a_loader_that_was_told_not_to_pin_is_not_told_that_nobody_said_so(script: Script) -> None:
    """As a factory with a default, or an option of the command line, does."""
    finding = only(loading(script, "nn.DataParallel(model)", name="timm.data.Loader", pin_memory_given=True))
    assert (finding["code"], finding["severity"]) == ("DVL301", "info")
    assert finding["label"] == "gets `pin_memory=False` from elsewhere"
    assert finding["help"].startswith("turn it on where that is chosen")


def test_arguments_from_elsewhere_are_a_hint(script: Script) -> None:
    assert only(loading(script, "DataLoader(dataset, **options)"))["severity"] == "info"


@pytest.mark.parametrize(
    ("made", "event", "fields"),
    [
        ("DataLoader(dataset, pin_memory=False)", {}, {}),
        (
            "DataLoader(dataset, batch_size=64)",
            {"pinned": True, "non_blocking": True, "blocking": False},
            {"pinned": True},
        ),
        ("DataLoader(dataset, batch_size=64)", {"target": "mps:0"}, {}),
        ("DataLoader(dataset, batch_size=64)", {"calls": 2, "steps": 2}, {}),
        ("DataLoader(dataset, batch_size=64)", {"phase": "setup"}, {}),
        ("DataLoader(dataset, batch_size=64)", {}, {"custom": True}),
        ("DataLoader(dataset, batch_size=64)", {}, {"device": "cuda:0"}),
    ],
    ids=["decided", "pinned", "mps", "two steps", "set-up", "own type", "on the device"],
)
def test_batches_that_are_well(script: Script, made: str, event: dict[str, Any], fields: dict[str, Any]) -> None:
    assert not findings(loading(script, made, event, **fields))


def test_batches_of_evaluation_count_by_its_steps(script: Script) -> None:
    record = loading(script, "DataLoader(dataset, batch_size=64)", {"phase": "eval", "steady": None})
    evaluated = replace(record.processes[0], steps=Steps(eval=STEPS))
    finding = only(replace(record, processes=(evaluated,)))
    assert finding["code"] == "DVL301"
    assert finding["measured"]["per_step"] == 1


def test_operands_that_met(script: Script) -> None:
    parties = (
        Party(text="images", device="cuda:0", example="float32[64, 3]", origin=script.at("images.to(device)")),
        Party(text="weights", device="cpu", example="float32[3]", why="`weights` was never moved"),
    )
    frame = script.at("images * weights.to(device)")
    finding = only(run(mismatches=(Mismatch(frame=frame, parties=parties, error=ERROR),)))
    assert (finding["code"], finding["severity"]) == ("DVL101", "error")
    assert finding["message"] == "`weights` is on the CPU but `images` is on `cuda:0`; this raises"
    assert finding["label"] == "`*` needs its operands on one device"
    assert finding["help"] == "move it first: `weights.to(device)`"
    assert {place["message"] for place in finding["related"]} == {
        "`weights` was never moved",
        "`images` was put on `cuda:0` here",
    }


def test_a_module_and_its_input(script: Script) -> None:
    parties = (
        Party(text="encoder.weight", device="cpu", example="float32[2, 3]", role="parameter"),
        Party(text="x", device="cuda:0", example="float32[64, 3]", role="input"),
    )
    mismatch = Mismatch(
        frame=script.at("model(images)"), module="encoder", module_class="Linear", parties=parties, error=ERROR
    )
    finding = only(run(mismatches=(mismatch,)))
    assert finding["code"] == "DVL101"
    assert finding["message"] == "`encoder` is on the CPU but `x` is on `cuda:0`; this raises"
    assert finding["help"] == "put `encoder` on the device of `x` first"


def test_a_meeting_that_torch_did_not_mind(script: Script) -> None:
    parties = (Party(text="a", device="cuda:0"), Party(text="b", device="cpu"))
    frame = script.at("images * weights.to(device)")
    assert not findings(run(mismatches=(Mismatch(frame=frame, parties=parties),)))


def test_an_attribute_that_is_copied_again_and_again(script: Script) -> None:
    copied = script.at("self.mean.to(x.device)")
    finding = only(run(strays=(stray(script, moved=(copied,)),)))
    assert (finding["code"], finding["severity"]) == ("DVL104", "warning")
    assert finding["location"]["row"] == script.at("torch.ones(3)").line
    assert finding["location"]["column"] == script.at("torch.ones(3)").column + 1
    assert finding["related"][0]["location"]["row"] == copied.line
    assert 'self.register_buffer("mean", torch.ones(3), persistent=False)' in finding["help"]


def test_an_attribute_that_killed_the_run(script: Script) -> None:
    parties = (
        Party(text="x", device="cuda:0", example="float32[64, 3]", role="input"),
        Party(text="self.mean", device="cpu", example="float32[3]", role="attribute"),
    )
    mismatch = Mismatch(frame=script.at("x - self.mean.to(x.device)"), module_class="Net", parties=parties, error=ERROR)
    # one mistake is told once, where it can be mended
    finding = only(run(mismatches=(mismatch,), strays=(stray(script),)))
    assert finding["code"] == "DVL104"
    assert finding["related"][0]["location"]["row"] == mismatch.frame.line  # type: ignore[union-attr]  # it has one
    # of a stray whose assignment is not known, the meeting tells
    assert codes(run(mismatches=(mismatch,), strays=(stray(script, frame=None),))) == ["DVL101"]


def test_an_attribute_is_no_invariant_transfer_besides(script: Script) -> None:
    copied = script.at("self.mean.to(x.device)")
    finding = only(run(copy(copied, repeats=9), strays=(stray(script, moved=(copied,)),)))
    assert finding["code"] == "DVL104"
    assert finding["measured"]["calls"] == 10
    assert finding["measured"]["bytes_per_step"] == BATCH


@pytest.mark.parametrize("fields", [{}, {"device": "cuda:0"}], ids=["unused", "on the device"])
def test_an_attribute_that_harms_nobody(script: Script, fields: dict[str, Any]) -> None:
    assert not findings(run(strays=(stray(script, **fields),)))


CARD = Device(name="cuda:0")


# -- DVL501 ----------------------------------------------------------------------------------------------------------


def test_data_parallel(script: Script) -> None:
    wrapper = Wrapper(name="torch.nn.DataParallel", frame=script.at("nn.DataParallel(model)"), device_ids=(0, 1))
    finding = only(run(wrappers=(wrapper,)))
    assert finding["code"] == "DVL501"
    assert finding["message"].startswith("`nn.DataParallel` drives all GPUs from one process")
    single = only(run(wrappers=(replace(wrapper, device_ids=(0,)),)))
    assert "with one device id" in single["message"]
    # all that the machine has, be it one: the code would serve several
    everything = only(run(wrappers=(replace(wrapper, device_ids=None),)))
    assert everything["message"] == finding["message"]
    # a run in which there was but one has seen no copy to another
    one = Process(pid=1, wrappers=(replace(wrapper, device_ids=None),), environment=Environment(devices=(CARD,)))
    alone = only(Record(processes=(one,)))
    assert (alone["severity"], finding["severity"]) == ("info", "warning")
    assert "had one device in this run" in alone["message"]


# -- the run as a whole ----------------------------------------------------------------------------------------------


def test_ranks_are_one_finding(script: Script) -> None:
    event = move(script.at("images.to(device)"))
    processes = tuple(
        Process(
            pid=rank,
            rank=rank,
            role="rank",
            device=f"cuda:{rank}",
            steps=Steps(train=STEPS),
            events=(replace(event, target=f"cuda:{rank}", source=f"cuda:{rank}"),),
        )
        for rank in range(2)
    )
    finding = only(Record(processes=processes))
    assert "already on `cuda`" in finding["message"]
    # two ranks of ten steps, and each step of each has one
    assert finding["measured"]["calls"] == 20
    assert finding["measured"]["steps"] == 20
    assert finding["measured"]["per_step"] == 1
    assert finding["measured"]["ranks"] == [0, 1]


def test_comments_and_configuration_silence(script: Script, tmp_path: Path) -> None:
    line = "images = images.to(device)"
    silenced = Script(tmp_path / "quiet.py", script.text.replace(line, f"{line}  # devlint: ignore[DVL201]"))
    assert not findings(run(move(silenced.at("images.to(device)"))))
    record = run(move(script.at("images.to(device)")))
    ignoring = Config(rule_layers=(RuleLayer(ignore=("DVL2",)),))
    assert not findings(record, ignoring)
    for pattern, expected in (("train.py", 0), ("other.py", 1)):
        config = Config(per_file_ignores=((pattern, ("DVL201",)),), root=str(tmp_path))
        assert len(findings(record, config)) == expected
    assert len(findings(record, None)) == 1
    (tmp_path / "pyproject.toml").write_text('[tool.devlint]\nignore = ["DVL201"]\n', encoding="utf-8")
    assert not findings(record, None)


def test_the_configuration_has_the_last_word_on_severity(script: Script) -> None:
    record = run(move(script.at("images.to(device)")))
    config = replace(EVERY_RULE, severity=(("DVL2", Severity.INFO), ("redundant-move", Severity.ERROR)))
    assert [finding["severity"] for finding in judge(record, config).findings or ()] == ["error"]


def test_the_record_keeps_the_code_it_speaks_of(script: Script) -> None:
    frame = script.at("images.to(device)")
    library = Frame(file="/usr/lib/python3/site-packages/gone.py", line=3)
    judged = judge(run(move(frame), copy(script.line("weights.to(device)"), via=library)), EVERY_RULE)
    lines = judged.sources[frame.file]
    assert lines[frame.line] == "        images = images.to(device)"
    assert script.line("weights.to(device)").line in lines
    assert library.file not in judged.sources
    # shown again without the file, it says the same
    script.path.unlink()
    assert judge(judged, EVERY_RULE).sources == judged.sources


def test_a_finding_without_its_file_still_has_a_place(script: Script) -> None:
    record = loading(script, "DataLoader(dataset, batch_size=64)")
    script.path.unlink()
    finding = only(record)
    assert finding["code"] == "DVL301"
    assert finding["location"]["row"] == script.at("DataLoader(dataset, batch_size=64)").line
    assert finding["fix"] is None


def test_a_record_is_judged_without_torch() -> None:
    code = "import sys, devlint.record as r\nfrom devlint.auditor.judgement.judge import judge\n"
    code += "judge(r.Record(processes=(r.Process(pid=1),)))\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_nothing_seen_is_nothing_found() -> None:
    judged = judge(Record(), EVERY_RULE)
    assert judged.findings == ()
    assert judged.sources == {}
    assert findings(run(environment=Environment())) == []
