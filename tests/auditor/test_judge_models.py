"""The rules on live modules, optimizers and wrappers that an audit saw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devlint.config.schema import Config
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
    Stray,
    Wrapper,
)
from devlint.report.audit.processes import shared
from tests.auditor.judging import (
    ERROR,
    codes,
    copy,
    findings,
    loading,
    only,
    run,
    stray,
)
from tests.auditor.script import Script

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
    assert (finding["code"], finding["severity"]) == ("DVL404", "info")
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
    common: dict[str, Any] = {"role": "rank", "world_size": 2, "device": "cuda:0"}
    return Record(processes=tuple(Process(pid=9, rank=at, **(common | own)) for at, own in enumerate(fields)))


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


def test_simulated_machines_have_devices_of_their_own(script: Script) -> None:
    wrappers = {"wrappers": (ddp(script),)}
    tried = two_ranks({"local_rank": 0} | wrappers, {"local_rank": 0} | wrappers)
    assert not findings(replace(tried, simulated=True))
    # two launchers on one machine with a GPU do share it, and so do two ranks of one launcher
    assert only(tried)["message"] == "ranks 0 and 1 both use `cuda:0`"
    one = two_ranks({"local_rank": 0} | wrappers, {"local_rank": 1} | wrappers)
    assert only(replace(one, simulated=True))["message"] == "ranks 0 and 1 both use `cuda:0`"


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


def test_two_ranks_that_see_one_device_among_others(script: Script) -> None:
    seen = [{"wrappers": (ddp(script),), "environment": Environment(visible_devices=text)} for text in ("0", "0,1")]
    record = two_ranks(*seen)
    assert only(record)["message"] == "ranks 0 and 1 both use `cuda:0`"
    assert [device for device, _ in shared(record)] == ["cuda:0"]  # what advice goes by
