"""Each rule on records of runs, made by hand: it fires where it should, and near misses are left alone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devlint.auditor.judge import judge
from devlint.config import Config, Selection
from devlint.record import (
    Device,
    Environment,
    Event,
    Frame,
    Loader,
    Mismatch,
    Optimizer,
    Party,
    Process,
    Record,
    Steady,
    Steps,
    Stray,
    Wrapper,
)
from tests.auditor.script import Script

EVERY_RULE = Config(selections=(Selection(select=("ALL",)),))
BATCH = 4096
STEPS = 10

TRAIN = """
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = torch.ones(3)
            self.heads = [nn.Linear(3, 2), nn.Linear(3, 2)]

        def forward(self, x):
            x = x - self.mean.to(x.device)
            return self.heads[0](x)


    def train(dataset, model, device, weights, options):
        loader = DataLoader(dataset, batch_size=64)
        pinned = DataLoader(dataset, pin_memory=True)
        unpinned = DataLoader(dataset, pin_memory=False)
        given = DataLoader(dataset, **options)
        optimizer = torch.optim.Adam(model.parameters())
        model.to(device)
        parallel = nn.DataParallel(model)
        model = DDP(model, device_ids=[0])
        for images in loader:
            images = images.to(device)
            images = images.to(device, torch.float16)
            loss = model(images) + images * weights.to(device)
            output = loss.to("cpu", non_blocking=True)
            print(loss.item())
            torch.cuda.empty_cache()
            kept = output.cpu()
"""


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path / "train.py", TRAIN)


def copy(frame: Frame, steps: int = STEPS, **fields: Any) -> Event:
    """A copy of a batch from pageable memory at each training step."""
    values: dict[str, Any] = {
        "kind": "copy",
        "name": "copy_",
        "phase": "train",
        "source": "cpu",
        "target": "cuda:0",
        "pinned": False,
        "blocking": True,
        "calls": steps,
        "bytes": steps * BATCH,
        "steps": steps,
        "steady": Steady(calls=1, bytes=BATCH),
    }
    return Event(frame=frame, **(values | fields))


def move(frame: Frame, **fields: Any) -> Event:
    """A move that returned its input at each training step."""
    values = {"kind": "move", "name": "to", "source": "cuda:0", "subject": "tensor", "bytes": 0, "pinned": None}
    return copy(frame, **(values | fields))


def run(*events: Event, steps: int = STEPS, **fields: Any) -> Record:
    """A run of one process."""
    return Record(processes=(Process(pid=1, device="cuda:0", events=events, steps=Steps(train=steps), **fields),))


def findings(record: Record, config: Config | None = EVERY_RULE) -> list[dict[str, Any]]:
    found = judge(record, config).findings
    assert found is not None
    return list(found)


def codes(record: Record) -> list[str]:
    return [finding["code"] for finding in findings(record)]


def only(record: Record) -> dict[str, Any]:
    (finding,) = findings(record)
    return finding


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


# -- DVL301 ----------------------------------------------------------------------------------------------------------


def loading(script: Script, made: str, event: dict[str, Any] | None = None, **fields: Any) -> Record:
    """A run whose loader, made at ``made``, has its batches copied at each step."""
    values: dict[str, Any] = {
        "name": "torch.utils.data.DataLoader",
        "device": "cpu",
        "pinned": False,
        "batches": STEPS,
        "training": True,
    }
    loader = Loader(frame=script.at(made), **(values | fields))
    return run(copy(script.at("images.to(device)"), loader=0, **(event or {})), loaders=(loader,))


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


# -- DVL101 and DVL104 -----------------------------------------------------------------------------------------------

ERROR = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"


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


def stray(script: Script, **fields: Any) -> Stray:
    values: dict[str, Any] = {
        "owner": "Net",
        "path": "",
        "name": "mean",
        "kind": "tensor",
        "device": "cpu",
        "owner_device": "cuda:0",
        "example": "float32[3]",
        "frame": script.at("self.mean = torch.ones(3)"),
    }
    return Stray(**(values | fields))


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


# -- DVL501 ----------------------------------------------------------------------------------------------------------


def test_data_parallel(script: Script) -> None:
    wrapper = Wrapper(name="torch.nn.DataParallel", frame=script.at("nn.DataParallel(model)"), device_ids=(0, 1))
    finding = only(run(wrappers=(wrapper,)))
    assert finding["code"] == "DVL501"
    assert finding["message"].startswith("`nn.DataParallel` drives all GPUs from one process")
    single = only(run(wrappers=(replace(wrapper, device_ids=(0,)),)))
    assert "with one device id" in single["message"]


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
    ignoring = Config(selections=(Selection(ignore=("DVL2",)),))
    assert not findings(record, ignoring)
    for pattern, expected in (("train.py", 0), ("other.py", 1)):
        config = Config(per_file_ignores=((pattern, ("DVL201",)),), root=str(tmp_path))
        assert len(findings(record, config)) == expected
    assert len(findings(record, None)) == 1
    (tmp_path / "pyproject.toml").write_text('[tool.devlint]\nignore = ["DVL201"]\n', encoding="utf-8")
    assert not findings(record, None)


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
    code = "import sys, devlint.auditor.judge, devlint.record as r\n"
    code += "devlint.auditor.judge.judge(r.Record(processes=(r.Process(pid=1),)))\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_nothing_seen_is_nothing_found() -> None:
    judged = judge(Record(), EVERY_RULE)
    assert judged.findings == ()
    assert judged.sources == {}
    assert findings(run(environment=Environment())) == []


# -- DVL302 ------------------------------------------------------------------------------------------------------------


def test_batches_that_cannot_be_pinned(script: Script) -> None:
    made = script.at("DataLoader(dataset, pin_memory=True)")
    error = "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"
    loader = Loader(name="torch.utils.data.DataLoader", frame=made, pin_memory=True, error=error)
    finding = only(run(loaders=(loader,)))
    assert (finding["code"], finding["severity"]) == ("DVL302", "error")
    assert "on `cuda:0`, which raises:" in finding["message"]
    assert finding["fix"]["edits"][0]["content"] == "DataLoader(dataset)"
    # the same loader, whatever else it died of
    assert not findings(run(loaders=(replace(loader, error="KeyError: 3", device="cpu", pinned=True),)))
    assert not findings(run(loaders=(replace(loader, error="", device="cuda:0", pin_memory=False),)))


# -- DVL404 ------------------------------------------------------------------------------------------------------------


def flush(script: Script, **fields: Any) -> Event:
    values = {"kind": "call", "name": "torch.cuda.empty_cache", "source": "", "target": "", "bytes": 0}
    return copy(script.at("torch.cuda.empty_cache()"), **(values | fields))


def test_memory_given_back_in_every_step(script: Script) -> None:
    finding = only(run(flush(script)))
    assert (finding["code"], finding["severity"]) == ("DVL404", "warning")
    assert finding["fix"]["applicability"] == "unsafe"


@pytest.mark.parametrize(
    "fields",
    [
        {"phase": "between"},
        {"calls": 3, "steps": 3, "steady": Steady(calls=0)},
        {"calls": 2, "steps": 2},
        {"via": Frame(file="/usr/lib/python3/site-packages/transformers/trainer.py", line=3)},
        {"name": "torch.cuda.reset_peak_memory_stats"},
    ],
    ids=["between epochs", "rarely", "two steps", "in a library", "another function"],
)
def test_memory_given_back_now_and_then(script: Script, fields: dict[str, Any]) -> None:
    assert not findings(run(flush(script, **fields)))


# -- DVL105 ------------------------------------------------------------------------------------------------------------


def hidden(script: Script, **fields: Any) -> Stray:
    """Modules in a plain list, of a run that went on all the same."""
    values: dict[str, Any] = {
        "name": "heads",
        "kind": "module",
        "container": "list",
        "parameters": 16,
        "example": "",
        "frame": script.at("self.heads = [nn.Linear(3, 2), nn.Linear(3, 2)]"),
    }
    return stray(script, **(values | fields))


def test_modules_in_a_list(script: Script) -> None:
    finding = only(run(strays=(hidden(script),)))
    assert (finding["code"], finding["severity"]) == ("DVL105", "warning")
    assert finding["fix"]["edits"][0]["content"] == "nn.ModuleList([nn.Linear(3, 2), nn.Linear(3, 2)])"
    # two instances of the class are one mistake
    assert codes(run(strays=(hidden(script), hidden(script, path="second")))) == ["DVL105"]


def test_modules_in_a_list_that_killed_the_run(script: Script) -> None:
    parties = (
        Party(text="x", device="cuda:0", example="float32[64, 3]", role="input"),
        Party(text="heads.0.weight", device="cpu", example="float32[2, 3]", role="parameter"),
    )
    frame = script.at("self.heads[0](x)")
    mismatch = Mismatch(frame=frame, module="heads.0", module_class="Linear", parties=parties, error=ERROR)
    finding = only(run(strays=(hidden(script),), mismatches=(mismatch,)))
    assert finding["code"] == "DVL105"
    assert finding["related"][0]["location"]["row"] == frame.line


@pytest.mark.parametrize(
    "fields",
    [{"device": "cuda:0", "name": "_teacher"}, {"device": "cuda:0", "optimized": True, "name": "_heads"}],
    ids=["hidden on purpose", "cared for"],
)
def test_modules_that_are_hidden_on_purpose(script: Script, fields: dict[str, Any]) -> None:
    assert not findings(run(strays=(hidden(script, **fields),)))


# -- DVL202, DVL204 and DVL205 -----------------------------------------------------------------------------------------


def test_the_same_tensor_in_every_step(script: Script) -> None:
    # the first of ten copies was new
    finding = only(run(copy(script.at("weights.to(device)"), repeats=9)))
    assert (finding["code"], finding["severity"]) == ("DVL202", "warning")
    assert finding["message"].startswith("`weights` had not changed, but is copied to `cuda:0` again")
    assert finding["measured"]["repeats"] == 9


@pytest.mark.parametrize(
    "fields",
    [
        {"repeats": 0},
        # two batches that are kept on the host, copied five times each
        {"repeats": 8},
        {"repeats": 9, "phase": "setup"},
        {"repeats": 2, "calls": 3, "steps": 3},
        {"repeats": 4, "calls": 5, "steps": 5, "steady": Steady(calls=0)},
        {"repeats": 9, "backward": True},
    ],
    ids=["new each time", "several in turn", "set-up", "three times", "rarely", "by autograd"],
)
def test_tensors_that_need_their_copies(script: Script, fields: dict[str, Any]) -> None:
    assert not findings(run(copy(script.at("weights.to(device)"), **fields)))


def test_what_comes_back_is_moved_to_save_memory(tmp_path: Path) -> None:
    script = Script(tmp_path / "offload.py", "while True:\n    w.to(device)\n    w.to('cpu')\n")
    there = copy(script.at("w.to(device)"), repeats=9)
    back = copy(script.at("w.to('cpu')"), source="cuda:0", target="cpu")
    assert [finding["code"] for finding in findings(run(there))] == ["DVL202"]
    assert "DVL202" not in codes(run(there, back))


def test_pinned_batches_that_are_waited_for(script: Script) -> None:
    made = "DataLoader(dataset, pin_memory=True)"
    finding = only(loading(script, made, {"pinned": True}, pinned=True, pin_memory=True))
    assert (finding["code"], finding["severity"]) == ("DVL204", "info")
    assert finding["location"]["row"] == script.at("images.to(device)").line
    assert finding["related"][0]["location"]["row"] == script.at(made).line
    assert finding["fix"]["edits"][0]["content"] == "images.to(device, non_blocking=True)"


@pytest.mark.parametrize("library", ["transformers/models/gpt2/tokenization_gpt2.py", "accelerate/utils/operations.py"])
def test_a_library_that_can_be_told_not_to_wait(script: Script, library: str) -> None:
    via = Frame(file=f"/usr/lib/python3/site-packages/{library}", line=3810)
    finding = only(run(copy(script.at("model(images)"), pinned=True, via=via)))
    assert (finding["code"], finding["severity"]) == ("DVL204", "info")
    assert f"in `{library}:3810`" in finding["message"]
    assert "DataLoaderConfiguration(non_blocking=True)" in finding["help"]
    assert finding["fix"] is None


@pytest.mark.parametrize(
    "fields",
    [
        {"pinned": False},
        {"pinned": True, "non_blocking": True, "blocking": False},
        {"pinned": True, "steps": 2, "calls": 2},
        {"pinned": True, "target": "cpu", "source": "cuda:0"},
        {"pinned": True, "via": Frame(file="/usr/lib/python3/site-packages/ignite/utils.py", line=3)},
    ],
    ids=["pageable", "asynchronous", "two steps", "to the host", "a library of its own mind"],
)
def test_copies_that_are_as_they_should_be(script: Script, fields: dict[str, Any]) -> None:
    assert "DVL204" not in codes(run(copy(script.at("images.to(device)"), **fields)))


def test_a_copy_to_the_host_that_was_read_too_early(script: Script) -> None:
    values = {"source": "cuda:0", "target": "cpu", "pinned": True, "blocking": False, "non_blocking": True}
    frame = script.at('loss.to("cpu", non_blocking=True)')
    finding = only(run(copy(frame, unwaited=1, **values)))
    assert (finding["code"], finding["severity"]) == ("DVL205", "error")
    assert finding["fix"]["edits"][0]["content"] == 'loss.to("cpu")'
    assert not findings(run(copy(frame, **values)))
    # garbage is garbage, however rare
    assert codes(run(copy(frame, unwaited=1, calls=1, steps=1, **values))) == ["DVL205"]
    assert codes(run(copy(frame, unwaited=1, phase="setup", steady=None, **values))) == ["DVL205"]


# -- DVL109 ------------------------------------------------------------------------------------------------------------


def optimizer(script: Script, **fields: Any) -> Record:
    values: dict[str, Any] = {
        "name": "Adam",
        "made_on": ("cpu",),
        "stepped_on": ("cuda:0",),
        "moved": script.at("model.to(device)"),
    }
    frame = script.at("torch.optim.Adam(model.parameters())")
    return run(optimizers=(Optimizer(frame=frame, **(values | fields)),))


@pytest.mark.parametrize(
    ("fields", "severity"),
    [({}, "info"), ({"state_on": ("cpu",)}, "error"), ({"orphans": 2}, "error")],
    ids=["kept its parameters", "left its state behind", "steps what is gone"],
)
def test_an_optimizer_that_was_made_too_early(script: Script, fields: dict[str, Any], severity: str) -> None:
    finding = only(optimizer(script, **fields))
    assert (finding["code"], finding["severity"]) == ("DVL109", severity)
    assert finding["related"][0]["location"]["row"] == script.at("model.to(device)").line


def test_an_optimizer_that_killed_the_run(script: Script) -> None:
    parties = (Party(text="state of Adam['exp_avg']", device="cpu"), Party(text="parameter", device="cuda:0"))
    mismatch = Mismatch(frame=script.at("loss.item()"), parties=parties, error=ERROR)
    early = optimizer(script, state_on=("cpu",)).processes[0]
    assert codes(Record(processes=(replace(early, mismatches=(mismatch,)),))) == ["DVL109"]


@pytest.mark.parametrize(
    "fields",
    [{"made_on": ("cuda:0",)}, {"stepped_on": ("cpu",)}, {"moved": None, "stepped_on": ("cpu",)}],
    ids=["made there", "moved to another dtype", "never moved"],
)
def test_an_optimizer_in_its_place(script: Script, fields: dict[str, Any]) -> None:
    assert not findings(optimizer(script, **fields))


def test_an_optimizer_that_a_library_takes_care_of(script: Script) -> None:
    # as `accelerator.prepare(model, optimizer)` does
    moved = script.at("nn.DataParallel(model)")
    assert not findings(optimizer(script, moved=moved))
    assert only(optimizer(script, moved=moved, state_on=("cpu",)))["severity"] == "error"


# -- DVL401 ------------------------------------------------------------------------------------------------------------

READ = {"name": "item", "source": "cuda:0", "target": "cpu", "pinned": None}


def test_waiting_in_every_step(script: Script) -> None:
    finding = only(run(copy(script.at("loss.item()"), **READ)))
    assert (finding["code"], finding["severity"]) == ("DVL401", "info")
    assert finding["message"] == "`loss.item()` waits for the device in every training step"
    # off unless it is asked for
    assert not findings(run(copy(script.at("loss.item()"), **READ)), Config())
    wait = copy(script.at("print(loss.item())"), kind="sync", name="torch.cuda.synchronize", source="", target="")
    assert codes(run(wait)) == ["DVL401"]


@pytest.mark.parametrize(
    "fields",
    [
        {"phase": "eval", "steady": None},
        {"calls": 4, "steps": 4, "steady": Steady(calls=0)},
        {"via": Frame(file="/usr/lib/python3/site-packages/torchmetrics/metric.py", line=3)},
        {"blocking": False},
    ],
    ids=["evaluation", "now and then", "in a library", "asynchronous"],
)
def test_reading_now_and_then(script: Script, fields: dict[str, Any]) -> None:
    assert not findings(run(copy(script.at("loss.item()"), **(READ | fields))))


def test_what_torch_waits_for_itself(tmp_path: Path) -> None:
    script = Script(tmp_path / "amp.py", "for x in y:\n    scaler.step(optimizer)\n")
    assert not findings(run(copy(script.at("scaler.step(optimizer)"), **READ)))


# -- DVL502 ------------------------------------------------------------------------------------------------------------


def ddp(script: Script, **fields: Any) -> Wrapper:
    values: dict[str, Any] = {
        "name": "torch.nn.parallel.DistributedDataParallel",
        "frame": script.at("DDP(model, device_ids=[0])"),
        "device_ids": (0,),
        "module_device": "cuda:0",
    }
    return Wrapper(**(values | fields))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"device_ids": (0, 1), "error": "device_ids can only be None or contain a single element."}, "2 device ids"),
        ({"module_device": "cpu"}, "the module is on the CPU"),
        ({"error": "Default process group has not been initialized"}, "no process group"),
    ],
    ids=["two ids", "on the CPU", "no group"],
)
def test_a_wrapper_that_cannot_work(script: Script, fields: dict[str, Any], said: str) -> None:
    finding = only(run(wrappers=(ddp(script, **fields),)))
    assert (finding["code"], finding["severity"]) == ("DVL502", "error")
    assert said in finding["message"]


def test_a_wrapper_that_works(script: Script) -> None:
    assert not findings(run(wrappers=(ddp(script), ddp(script, device_ids=None, module_device="cpu"))))


def two_ranks(*fields: dict[str, Any]) -> Record:
    shared: dict[str, Any] = {"role": "rank", "world_size": 2, "device": "cuda:0"}
    return Record(processes=tuple(Process(pid=9, rank=at, **(shared | own)) for at, own in enumerate(fields)))


def test_two_ranks_on_one_device(script: Script) -> None:
    wrappers = (ddp(script),)
    finding = only(two_ranks({"wrappers": wrappers}, {"wrappers": wrappers}))
    assert (finding["code"], finding["severity"]) == ("DVL502", "warning")
    assert finding["message"] == "ranks 0 and 1 both use `cuda:0`"
    machine = {"wrappers": wrappers, "environment": Environment(devices=(Device(name="cuda:0"), Device(name="cuda:1")))}
    finding = only(two_ranks(machine, machine, machine))
    assert finding["message"] == "ranks 0, 1 and 2 all use `cuda:0`, though there are 2 devices"
    # without a wrapper, the place is where most of the data went to the device
    moving = copy(script.at("model.to(device)"), phase="setup", steady=None, bytes=1_000_000)
    finding = only(two_ranks({"events": (moving,)}, {"events": (moving,)}))
    assert finding["location"]["row"] == script.at("model.to(device)").line


@pytest.mark.parametrize(
    "other",
    [
        {"device": "cuda:1"},
        {"device": "cpu"},
        {"environment": Environment(visible_devices="1")},
        {"environment": Environment(host="node2", visible_devices="0")},
    ],
    ids=["another device", "the CPU", "another one by the same name", "another machine"],
)
def test_two_ranks_with_a_device_each(script: Script, other: dict[str, Any]) -> None:
    first = {"environment": Environment(visible_devices="0")}
    wrappers = {"wrappers": (ddp(script),)}
    assert not findings(two_ranks(first | wrappers, other | wrappers))
