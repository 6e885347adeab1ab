"""Traces of torch.profiler, old and new, read as records of runs."""

from __future__ import annotations

import gzip
import json
import math
import os
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from devlint.auditor.profile import reading, stream
from devlint.auditor.profile.stacks import blamed
from devlint.auditor.running import storage
from devlint.cli import main
from devlint.record import Event, Record
from tests.auditor import large_trace
from tests.report import records

LOADER = "/env/lib/python3.10/site-packages/timm/data/loader.py(12): __iter__"
INSIDE = "torch/nn/modules/module.py(1501): _call_impl"


class Written:
    """A trace, as Kineto writes one; times are microseconds from 0."""

    def __init__(self, old: bool = False, **facts: Any) -> None:
        self.old = old
        self.events: list[dict[str, Any]] = []
        properties = {"id": 0, "name": "Tesla V100", "totalGlobalMem": 2**34, "computeMajor": 7, "computeMinor": 0}
        self.facts = {"schemaVersion": 1, "deviceProperties": [properties], **facts}
        self._correlation = 0

    def span(self, category: str, name: str, start: float, end: float, tid: int = 1, **args: Any) -> None:
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 9,
                "tid": tid,
                "ts": start,
                "dur": end - start,
                "args": args,
            }
        )

    def operator(self, name: str, start: float, end: float, stack: str = "") -> None:
        self.span("Operator" if self.old else "cpu_op", name, start, end, **({"Call stack": stack} if stack else {}))

    def python(self, name: str, start: float, end: float) -> None:
        self.span("python_function", name, start, end)

    def step(self, number: int, start: float, end: float) -> None:
        self.span("Operator" if self.old else "user_annotation", f"ProfilerStep#{number}", start, end)

    def call(self, name: str, start: float, end: float, copy: str = "", size: int = 0) -> None:
        """A call of the runtime, and the copy on the device which it starts."""
        self._correlation += 1
        self.span("Runtime" if self.old else "cuda_runtime", name, start, end, correlation=self._correlation)
        if copy:
            args = {"device": 0, "bytes": size, "correlation": self._correlation}
            self.span("Memcpy" if self.old else "gpu_memcpy", copy, end, end + 5, tid=7, **args)

    def copied(self, start: float, copy: str, size: int, waits: bool = True, name: str = "aten::copy_") -> None:
        """A copy in an operator of 20 us: 10 in the call, 5 waiting for the stream."""
        self.operator(name, start, start + 20)
        self.call("cudaMemcpyAsync", start + 1, start + 11, copy, size)
        if waits:
            self.call("cudaStreamSynchronize", start + 12, start + 17)

    def save(self, path: Path, after: bool = False) -> Path:
        """Write it, with the facts before or after the events."""
        events = {"traceEvents": self.events}
        data = json.dumps({**events, **self.facts} if after else {**self.facts, **events}).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path


PAGEABLE, PINNED, BACK = (
    "Memcpy HtoD (Pageable -> Device)",
    "Memcpy HtoD (Pinned -> Device)",
    "Memcpy DtoH (Device -> Pageable)",
)


def training(old: bool = False, **facts: Any) -> Written:
    """Three steps of 1 ms: a blocking copy, an asynchronous one, a backward, an ``item()``."""
    trace = Written(old, **facts)
    for number in range(3):
        start = 1_000 * number + 100
        trace.step(number + 1, start, start + 1_000)
        trace.copied(start + 10, PAGEABLE, 4_096)
        trace.copied(start + 40, PINNED, 512, waits=False)
        trace.operator("autograd::engine::evaluate_function: AddBackward0", start + 100, start + 110)
        trace.operator("aten::item", start + 200, start + 230)
        trace.copied(start + 205, BACK, 4, name="aten::_local_scalar_dense")
    return trace


def record(path: Path) -> Record:
    return storage.read(str(path))


def only(events: tuple[Event, ...], **fields: Any) -> Event:
    (found,) = [event for event in events if all(getattr(event, name) == value for name, value in fields.items())]
    return found


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
@pytest.mark.parametrize("after", [False, True])
def test_what_is_copied_in_a_step(tmp_path: Path, old: bool, name: str, after: bool) -> None:
    (process,) = record(training(old).save(tmp_path / name, after)).processes
    assert (process.steps.train, process.steps.eval, process.steps.step_seconds) == (3, 0, pytest.approx(0.001))
    blocking = only(process.events, pinned=False, target="cuda:0")
    assert (blocking.calls, blocking.bytes, blocking.steps, blocking.blocking) == (3, 3 * 4_096, 3, True)
    assert blocking.seconds == pytest.approx(3 * 15e-6)  # the call, and the wait for the stream
    async_ = only(process.events, pinned=True)
    assert (async_.blocking, async_.bytes, async_.non_blocking) == (False, 3 * 512, True)
    read = only(process.events, target="cpu")
    assert (read.kind, read.bytes, read.blocking) == ("copy", 12, True)
    assert len(process.events) == 3  # the waits are those of the copies
    assert (process.environment.devices[0].model, process.device) == ("Tesla V100", "cuda:0")


def test_the_device_copies_as_long_as_it_says_whatever_the_host_does(tmp_path: Path) -> None:
    """Here for 5 us each, while the host is blocked for 15, or goes on."""
    file = training().save(tmp_path / "t.json")
    (process,) = record(file).processes
    assert [event.copying for event in process.events] == pytest.approx([3 * 5e-6] * 3)
    assert only(process.events, pinned=True).steady.copying == pytest.approx(5e-6)  # type: ignore[union-attr]
    text = CliRunner(env={"COLUMNS": "100"}).invoke(main, ["report", str(file)]).output
    assert text.count("  5 us") == 4  # three rows, and the copy to the host as their sum
    assert "copying: how long the device took" in text


def test_what_is_no_copy_has_no_such_time(tmp_path: Path) -> None:
    trace = Written()
    trace.step(1, 0, 1_000)
    trace.call("cudaDeviceSynchronize", 100, 150)
    file = trace.save(tmp_path / "t.json")
    assert [event.copying for event in record(file).processes[0].events] == [None]
    assert "copying" not in CliRunner().invoke(main, ["report", str(file)]).output.partition("Notes")[0]


def test_the_median_step_is_one_of_training_after_the_first_two(tmp_path: Path) -> None:
    trace, start = Written(), 0.0
    for number, (length, trains) in enumerate([(9_000, True), (8_000, True), (100, True), (300, True), (5_000, False)]):
        trace.step(number, start, start + length)
        if trains:
            trace.operator("autograd::engine::evaluate_function: X", start + 1, start + 2)
        start += length
    trace.operator("aten::relu", start - 10, start - 5)
    assert record(trace.save(tmp_path / "t.json")).processes[0].steps.step_seconds == pytest.approx(200e-6)


def test_without_steps_nothing_is_called_the_set_up(tmp_path: Path) -> None:
    trace = Written()
    trace.operator("aten::to", 0, 1_000)
    trace.copied(100, PAGEABLE, 4_096)
    text = CliRunner().invoke(main, ["report", str(trace.save(tmp_path / "t.json"))]).output
    assert "Recording, in total" in text
    assert "Set-up" not in text
    short = " ".join(text.split())
    assert "in all: 1 copy to the device (4.00 KiB); the host is blocked for 15 us of 1.00 ms (1 %)" in short
    assert "finished" not in text  # how the run ended is not in a trace


def test_a_page_of_an_evaluation_counts_its_steps(tmp_path: Path) -> None:
    trace = Written()
    trace.step(1, 0, 1_000)
    trace.copied(100, PAGEABLE, 4_096)
    page = tmp_path / "page.html"
    done = CliRunner().invoke(main, ["report", str(trace.save(tmp_path / "t.json")), "--html", str(page)])
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    assert "1 copy per evaluation step" in text
    assert "before the first step" not in text
    assert "a trace of torch.profiler" in text


@pytest.mark.parametrize(
    ("steps", "trains", "says", "step"),
    [
        (1, False, "Evaluation, the only step", "1.00 ms"),
        (2, False, "Evaluation, per step: the mean of 2 steps", "1.00 ms in the median"),
        (1, True, "Training, the only step", "1.00 ms"),
        (2, True, "Training, per step: the median of 2 steps", "1.00 ms in the median"),
        (3, True, "Training, per step: the last one, the first 2 left out", "1.00 ms in the median"),
        (4, True, "Training, per step: the median of 2 steps, the first 2 left out", "1.00 ms in the median"),
    ],
)
def test_of_one_step_there_is_neither_mean_nor_median(
    tmp_path: Path, steps: int, trains: bool, says: str, step: str
) -> None:
    trace = Written()
    for number in range(steps):
        trace.step(number, 1_000 * number, 1_000 * number + 1_000)
        trace.copied(1_000 * number + 100, PAGEABLE, 64)
        if trains:
            trace.operator("autograd::engine::evaluate_function: X", 1_000 * number + 200, 1_000 * number + 210)
    lines = CliRunner().invoke(main, ["report", str(trace.save(tmp_path / "t.json"))]).output.splitlines()
    assert says in lines
    assert f"  step       {step}" in lines


def test_a_step_without_backward_is_an_evaluation(tmp_path: Path) -> None:
    trace = Written()
    trace.step(1, 0, 100)
    trace.copied(10, PAGEABLE, 8)
    (process,) = record(trace.save(tmp_path / "trace.json")).processes
    assert (process.steps.train, process.steps.eval) == (0, 1)


def test_an_operator_that_reads_a_number_waits_and_copies_nothing_of_the_users(tmp_path: Path) -> None:
    """As `nonzero` does for the shape of its result; `torch.cuda.synchronize()` has no operator."""
    trace = Written()
    trace.step(1, 0, 1_000)
    trace.copied(10, BACK, 8, name="aten::nonzero")
    trace.call("cudaDeviceSynchronize", 100, 150)
    (process,) = record(trace.save(tmp_path / "trace.json")).processes
    assert {(event.kind, event.name): event.seconds for event in process.events} == {
        ("sync", "nonzero"): pytest.approx(15e-6),
        ("sync", "cudaDeviceSynchronize"): pytest.approx(50e-6),
    }


def test_waits_of_the_profiler_itself_are_left_out(tmp_path: Path) -> None:
    trace = training()
    trace.call("cudaDeviceSynchronize", 5_000, 6_000)
    assert not [event for event in record(trace.save(tmp_path / "t.json")).processes[0].events if event.kind == "sync"]


def test_copies_within_the_device_are_no_copies_of_the_host(tmp_path: Path) -> None:
    trace = Written()
    trace.copied(10, "Memcpy DtoD (Device -> Device)", 8, waits=False)
    assert record(trace.save(tmp_path / "t.json")).processes[0].events == ()


@pytest.mark.parametrize("old", [False, True])
def test_the_innermost_line_of_the_project_is_blamed(
    tmp_path: Path, old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parts = [INSIDE, LOADER, "train.py(7): step", "train.py(30): <module>"]
    trace = Written(old)
    trace.copied(100, PAGEABLE, 8)
    if old:
        trace.events[0]["args"]["Call stack"] = ";".join(parts)
    else:
        for depth, part in enumerate(parts):
            trace.python(part, 90 - depth, 200 + depth)
        trace.python("<built-in method to of Tensor object at 0x7f>", 95, 190)
    (process,) = record(trace.save(tmp_path / "t.json")).processes
    (event,) = process.events
    assert any("functions and not lines" in note for note in process.notes) != old
    assert event.frame is not None
    assert event.via is not None
    assert (event.frame.file, event.frame.line, event.frame.function) == (str(tmp_path / "train.py"), 7, "step")
    assert (event.via.file, event.via.line) == ("/env/lib/python3.10/site-packages/timm/data/loader.py", 12)


BUILTIN = "<built-in method cuda of Tensor object at 0x7fc740c5fdd0>"


@pytest.mark.parametrize(
    ("inner", "operator", "by"),
    [
        ([BUILTIN], "aten::to", "cuda"),
        (["<method 'to' of 'torch._C.TensorBase' objects>"], "aten::to", "to"),
        (["torch/_tensor.py(12): helper", BUILTIN], "aten::to", "helper"),
        ([LOADER, BUILTIN], "aten::to", "__iter__"),
        (["nn.Module: Linear_0", INSIDE, BUILTIN], "aten::to", ""),
        ([], "aten::is_nonzero", "is_nonzero"),
        ([], "MyFunction", ""),
    ],
)
def test_what_a_function_called_is_told(tmp_path: Path, inner: list[str], operator: str, by: str) -> None:
    """As no line is: of the calls in a function a reader finds the one that copied."""
    trace = Written()
    trace.operator("aten::outer", 0, 1_000)
    trace.operator("MyFunction", 95, 190)
    trace.operator(operator, 96, 180)
    trace.copied(100, PAGEABLE, 8, name="MyFunction" if operator == "MyFunction" else "aten::copy_")
    for depth, part in enumerate(["train.py(30): <module>", "train.py(7): step", *inner]):
        trace.python(part, 80 + depth, 300 - depth)
    (event,) = record(trace.save(tmp_path / "t.json")).processes[0].events
    assert event.by == by


SCRIPT = """import torch


@torch.no_grad()
def step(batch, device):
    def step_inside(batch):
        return batch.cuda()

    moved = (
        batch
        .cuda()
    )
    if moved.sum() > 0:
        print(moved.to(device)); moved.to(device)
    return moved.cpu(), moved.float().cpu()


def other(batch):
    batch.cpu(), batch.item()
    return batch.cpu()


for batch in ():
    step(batch.double(), "cuda")
    torch.cuda.synchronize()
"""


@pytest.mark.parametrize(
    ("at", "name", "line"),
    [
        ("4): step", "cuda", 11),
        ("5): step", "cuda", 11),  # as Python before 3.8 and a function that ran already have it
        ("4): step", "to", 14),
        ("4): step", "cpu", 15),
        ("4): step", "is_nonzero", 4),
        ("6): step_inside", "cuda", 7),
        ("18): other", "cpu", 18),
        ("18): other", "item", 19),
        ("25): <module>", "synchronize", 25),
        ("25): <module>", "double", 24),
        ("25): <module>", "cuda", 25),
        ("40): gone", "cuda", 40),
    ],
)
def test_the_only_call_of_that_name_in_a_function_is_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, name: str, line: int
) -> None:
    monkeypatch.chdir(tmp_path)
    trace = Written()
    trace.copied(100, PAGEABLE, 8)
    for depth, part in enumerate([f"train.py({at}", f"<built-in method {name} of Tensor object at 0x7f>"]):
        trace.python(part, 80 + depth, 300 - depth)
    file = trace.save(tmp_path / "t.json")
    found = []
    for text in (None, SCRIPT, "no Python (", "import torch\n"):
        if text is not None:
            Path("train.py").write_text(text, encoding="utf-8")
        (event,) = record(file).processes[0].events
        assert event.frame is not None
        found.append(event.frame.line)
    before = int(at.partition(")")[0])
    assert found == [before, line, before, before]


def test_a_report_names_what_was_called(tmp_path: Path) -> None:
    trace = Written()
    trace.copied(100, PAGEABLE, 8)
    for depth, part in enumerate(["train.py(7): step", BUILTIN]):
        trace.python(part, 80 + depth, 300 - depth)
    text = CliRunner(env={"COLUMNS": "100"}).invoke(main, ["report", str(trace.save(tmp_path / "t.json"))]).output
    assert "     7  H2D      1    8 B    15 us     5 us  pageable, blocking, in cuda()\n" in text


@pytest.mark.parametrize(
    ("part", "project"),
    [
        ("train.py(3): <module>", True),
        ("/home/me/run.py(3): f", True),
        ("threading.py(870): run", False),
        ("/usr/lib/python3.10/runpy.py(86): _run_code", False),
        ("torch/utils/data/dataloader.py(517): __next__", False),
        ("/env/lib/python3.7/site-packages/torchvision/transforms/functional.py(136): to_tensor", False),
        ("<frozen importlib._bootstrap>(241): _call_with_frames_removed", False),
        ("nn.Module: Linear_0", False),
    ],
)
def test_whose_line_it_is(part: str, project: bool) -> None:
    assert (blamed([part], "/here")[0] is not None) == project


def test_a_cell_of_a_notebook_is_called_one() -> None:
    """The file that its kernel names is gone with the machine."""
    frame, _ = blamed(["/var/ipykernel_2566/1623915622.py(18): <module>"], "/here")
    assert frame is not None
    assert (frame.file, frame.line) == ("<ipython-input>", 18)


def test_without_stacks_the_operator_stands_for_the_line(tmp_path: Path) -> None:
    trace = Written()
    trace.span("user_annotation", "## loading ##", 0, 500)
    trace.operator("aten::to", 90, 200)
    trace.copied(100, PAGEABLE, 8)
    (process,) = record(trace.save(tmp_path / "t.json")).processes
    assert [event.name for event in process.events] == ["to in loading"]
    assert any("with_stack=True" in note for note in process.notes)


def test_a_call_of_hip_tells_its_kind_itself(tmp_path: Path) -> None:
    trace = Written()
    trace.operator("aten::copy_", 0, 100)
    trace.span("cuda_runtime", "hipMemcpyWithStream", 10, 60, correlation=3, kind="1", size="2560")
    trace.span("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 30, 50, tid=7, correlation=3, device=0)
    (event,) = record(trace.save(tmp_path / "t.json")).processes[0].events
    assert (event.bytes, event.pinned, event.blocking) == (2560, None, True)


def test_on_rocm_a_value_is_read_by_a_copy_within_the_device(tmp_path: Path) -> None:
    """As torch 2.6 and 2.7 do on MI300X: torch reads into pinned memory, which HIP takes for the device's."""
    trace = Written()
    trace.operator("aten::_local_scalar_dense", 0, 100)
    trace.call("hipMemcpyWithStream", 10, 60, "Memcpy DtoD (Device -> Device)", 2)
    trace.operator("aten::copy_", 200, 300)
    trace.call("hipMemcpyWithStream", 210, 260, "Memcpy DtoD (Device -> Device)", 64)
    (event,) = record(trace.save(tmp_path / "t.json")).processes[0].events
    assert (event.kind, event.target, event.bytes, event.blocking) == ("copy", "cpu", 2, True)


def test_a_value_is_waited_for_whatever_torch_reads_it_into(tmp_path: Path) -> None:
    trace = Written()
    trace.copied(0, "Memcpy DtoH (Device -> Pinned)", 4, name="aten::_local_scalar_dense")
    trace.copied(100, BACK, 4, waits=False, name="aten::_local_scalar_dense")  # waits were left out of the trace
    (event,) = record(trace.save(tmp_path / "t.json")).processes[0].events
    assert (event.calls, event.pinned, event.blocking, event.waits) == (2, None, True, True)


def test_a_copy_to_pageable_memory_is_done_when_its_call_returns(tmp_path: Path) -> None:
    """https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html, asynchronous transfers."""
    trace = Written()
    trace.copied(0, BACK, 64, waits=False)
    trace.copied(100, PAGEABLE, 64, waits=False)
    back, there = record(trace.save(tmp_path / "t.json")).processes[0].events
    assert (back.non_blocking, back.blocking) == (True, True)
    assert (there.non_blocking, there.blocking) == (True, None)


def test_the_profilers_own_waits_are_not_the_scripts(tmp_path: Path) -> None:
    trace = Written()
    trace.operator("aten::relu", 0, 10)
    trace.call("cudaDeviceSynchronize", 100, 150)
    trace.call("cudaDeviceSynchronize", 300, 350)
    trace.python("train.py(41): main", 90, 400)
    for name in ("torch/profiler/profiler.py(853): __exit__", "torch/autograd/profiler.py(386): __exit__"):
        trace.python(name, 290, 390)
    (event,) = record(trace.save(tmp_path / "t.json")).processes[0].events
    assert (event.name, event.calls, event.seconds) == ("cudaDeviceSynchronize", 1, pytest.approx(50e-6))


def test_a_step_that_only_began_is_none(tmp_path: Path) -> None:
    trace = training()
    trace.step(4, 3_150, 3_170)
    assert record(trace.save(tmp_path / "t.json")).processes[0].steps.train == 3


def test_an_operator_that_waits_again_and_again_is_one_wait(tmp_path: Path) -> None:
    trace = Written()
    trace.operator("aten::_coalesce", 0, 100)
    trace.call("cudaStreamSynchronize", 10, 20)
    trace.call("cudaMemcpyAsync", 30, 40, BACK, 4)
    trace.call("cudaStreamSynchronize", 40, 50)
    trace.call("cudaMemcpyAsync", 60, 70, BACK, 4)
    trace.call("cudaStreamSynchronize", 70, 80)
    (event,) = record(trace.save(tmp_path / "t.json")).processes[0].events
    assert (event.kind, event.name, event.calls, event.seconds) == ("sync", "_coalesce", 1, pytest.approx(40e-6))


def test_without_operators_a_wait_is_that_of_the_copy_before(tmp_path: Path) -> None:
    """A recording of the device's activities alone."""
    trace = Written()
    trace.call("cudaMemcpyAsync", 0, 10, PAGEABLE, 64)
    trace.call("cudaStreamSynchronize", 11, 15)
    trace.call("cudaMemcpyAsync", 20, 30, PAGEABLE, 64)
    trace.call("cudaMemcpyAsync", 40, 50, PINNED, 64)
    waited, staged, free = record(trace.save(tmp_path / "t.json")).processes[0].events
    assert (waited.blocking, waited.seconds) == (True, pytest.approx(14e-6))
    assert (staged.blocking, free.blocking) == (None, False)


def test_copies_without_the_devices_side_are_waits(tmp_path: Path) -> None:
    trace = Written()
    trace.copied(0, "", 0)
    (process,) = record(trace.save(tmp_path / "t.json")).processes
    assert [(event.kind, event.calls) for event in process.events] == [("sync", 1)]
    assert any("lacks the device's side" in note for note in process.notes)


def test_a_trace_in_which_nothing_is_copied_claims_no_more(tmp_path: Path) -> None:
    trace = Written()
    trace.operator("aten::relu", 0, 10)
    done = CliRunner().invoke(main, ["report", str(trace.save(tmp_path / "t.json"))])
    text = " ".join(done.output.split())
    assert "Nothing was copied between the host and a device, and nothing waited for one." in text
    assert "no module ran" not in text
    assert "compared" not in text  # these are the profiler's figures


def test_the_command_shows_times_and_says_what_is_unknown(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["report", str(training().save(tmp_path / "run.pt.trace.json.gz"))])
    text = " ".join(done.output.split())
    assert done.exit_code == 0
    assert done.output.startswith("PyTorch's profiler: run.pt.trace.json.gz\n")
    assert "each training step: 2 copies to the device (4.50 KiB), 1 copy from it (4 B) and 1 wait for it" in text
    assert "the host is blocked for 40 us of 1.00 ms (4 %)" in text
    assert "says neither whether a copy repeats what was copied before nor where a module keeps its tensors" in text


def test_ranks_become_one_report(tmp_path: Path) -> None:
    files = [
        training(distributedInfo={"rank": rank, "world_size": 2}).save(tmp_path / f"rank{rank}.json") for rank in (0, 1)
    ]
    assert [record(file).processes[0].rank for file in files] == [0, 1]
    assert CliRunner().invoke(main, ["report", str(files[1])]).output.startswith("PyTorch's profiler: rank 1 of 2\n")
    done = CliRunner().invoke(main, ["report", *map(str, files)])
    assert done.exit_code == 0, done.output
    assert "of each of 2 processes" in " ".join(done.output.split())


def test_two_traces_are_compared(tmp_path: Path) -> None:
    before, after = training().save(tmp_path / "a.json"), Written()
    for number in range(3):
        after.step(number, 1_000 * number, 1_000 * number + 500)
        after.operator("autograd::engine::evaluate_function: X", 1_000 * number + 10, 1_000 * number + 20)
    done = CliRunner().invoke(main, ["report", "--compare", str(before), str(after.save(tmp_path / "b.json"))])
    assert done.exit_code == 0, done.output
    assert "H2D" in done.output


def test_what_no_trace_can_tell_is_not_compared(tmp_path: Path) -> None:
    """Neither its name, which is no script's, nor findings, of which an audit knows more."""
    trace, other = str(training().save(tmp_path / "a.json")), str(training().save(tmp_path / "b.json"))
    for before, after in ((trace, other), (other, trace)):
        assert "two scripts" not in CliRunner().invoke(main, ["report", "--compare", before, after]).output
    audited = tmp_path / "run.json"
    storage.write(records.cnn(), str(audited))
    done = CliRunner().invoke(main, ["report", "--compare", str(audited), trace])
    assert done.exit_code == 0, done.output
    assert "findings are not compared" in " ".join(done.output.split())
    assert "Findings:" not in done.output


def test_traces_without_steps_are_compared_as_a_whole(tmp_path: Path) -> None:
    files = []
    for name, count in (("a.json", 1), ("b.json", 3)):
        trace = Written()
        for number in range(count):
            trace.copied(100.0 * number, PAGEABLE, 64)
        files.append(str(trace.save(tmp_path / name)))
    output = CliRunner().invoke(main, ["report", "--compare", *files]).output
    assert "Recording, in total" in output
    assert "Set-up" not in output
    files[1] = str(training().save(tmp_path / "c.json"))
    output = " ".join(CliRunner().invoke(main, ["report", "--compare", *files]).output.split())
    assert "the trace before has no steps" in output
    assert "Outside of steps, in total" in output


def test_a_trace_is_evidence_of_what_it_shows_and_of_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no loaders: that none was seen says nothing of the one in the code."""
    monkeypatch.chdir(tmp_path)
    lines = [
        "import torch",
        "from torch.utils.data import DataLoader",
        "def train(data, model: torch.nn.Module, device):",
        "    weight = torch.ones(3)",
        "    for x in DataLoader(data, num_workers=2):",
        "        x = x.to(device, non_blocking=True)",
        "        (model(x) * weight.to(device)).sum().backward()",
    ]
    Path("train.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    trace = Written()
    for number in range(5):
        start = 1_000 * number
        trace.step(number, start, start + 900)
        trace.python("train.py(7): train", start + 5, start + 100)
        trace.copied(start + 10, PAGEABLE, 12)
    trace.save(tmp_path / "t.json")
    done = CliRunner().invoke(
        main, ["check", "--isolated", "--select", "DVL202,DVL301", "train.py", "--evidence", "t.json"]
    )
    assert "DVL301" in done.output
    assert "run: undecided: a trace of the profiler does not show it" in done.output
    assert "not reached" not in done.output
    # nor does it say whether the weight had changed since it was copied last
    assert "run: undecided: the code ran, and nothing that was seen tells" in done.output
    assert "contradicted" not in done.output


@pytest.mark.parametrize(
    ("old", "memory", "says"),
    [
        (True, PAGEABLE, "run: confirmed: 5 calls, 1 per step, 12 B per step, 75 us blocked"),
        (True, PINNED, "run: contradicted: there was"),
        # it knows the function only, in which other things may have been copied
        (False, PAGEABLE, "run: undecided: a trace of the profiler does not show it"),
    ],
    ids=["pageable", "pinned", "functions"],
)
def test_copies_in_the_very_lines_tell_how_a_loader_fares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool, memory: str, says: str
) -> None:
    """A trace has no loaders, but where their batches are copied stands in the finding."""
    monkeypatch.chdir(tmp_path)
    lines = [
        "import torch",
        "from torch.utils.data import DataLoader",
        "def train(data, model: torch.nn.Module, device):",
        "    for x in DataLoader(data, num_workers=2):",
        "        model(x.to(device)).sum().backward()",
    ]
    Path("train.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    trace = Written(old)
    for number in range(5):
        start = 1_000 * number
        trace.step(number, start, start + 900)
        if not old:
            trace.python("train.py(5): train", start + 5, start + 100)
        trace.copied(start + 10, memory, 12)
        trace.operator("autograd::engine::evaluate_function: X", start + 200, start + 210)
    for event in trace.events:
        if old and event["name"] == "aten::copy_":
            event["args"]["Call stack"] = "train.py(5): train"
    trace.save(tmp_path / "t.json")
    done = CliRunner().invoke(main, ["check", "--isolated", "--select", "DVL301", "train.py", "--evidence", "t.json"])
    assert says in done.output


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op"', "it breaks off"),
        (b'{"schemaVersion": 1, "traceEvents": [{"ph": nonsense}]}', "it is not valid JSON"),
        (b'{"schemaVersion": 1, "traceEvents": []}', "it holds no event of torch.profiler"),
        (b'[{"ph": "X", "cat": "browser", "name": "paint", "ts": 1, "dur": 2}]', "it holds no event of torch.profiler"),
        (b'{"schemaVersion": 1, "traceEvents": [1, null, {"ph": "X", "ts": "x", "name": 3}]}', "it holds no event"),
        (gzip.compress(b'{"schemaVersion": 1, "traceEvents": []}')[:-9], "damaged or breaks off"),
        (b'[{"ph": "X", "args": ' + b"[" * 1_000_000, "it is nested too deeply"),
        (b'[{"ph": "X", "args": ' + b'{"a": [1, ' * 200_000, "it is nested too deeply"),
        (b'{"schemaVersion": 1, "traceEvents": [{"ph": "X"}] "b"}', "it is not valid JSON"),
        (b'{"schemaVersion": 1, "traceEvents": [{"ph": "X"}', "it breaks off"),
        (b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "ts": 1e', "it breaks off"),
        (b'{"schemaVersion": 1, "traceEvents": [{"ph": tru', "it breaks off"),
        (b'{"schemaVersion": 1, "traceEvents": [{"ph": "\\u12', "it breaks off"),
        (b'{"schemaVersion": 1, "traceEvents": []', "it breaks off"),
        (b'{"schemaVersion": 1, "traceEvents": []} {}', "it is not valid JSON"),
        (b'{"schemaVersion": 1, 2: []}', "it is not valid JSON"),
        (b'{"schemaVersion": 1, "traceEvents": 7}', "it holds no event"),
        (b'{"schemaVersion": 1, "traceEvents": [' + b"9" * 5_000 + b"]}", "it is not valid JSON"),
        (b'{"schemaVersion": 1, "traceEvents": ["' + b"x" * 40_000_000, "it is not valid JSON"),
        (gzip.compress(b""), "it is empty"),
        (gzip.compress(b"some text"), "it is not valid JSON"),
    ],
    ids=[
        *("cut", "invalid", "empty", "other", "odd", "compressed", "deep", "deeper", "no comma", "in the list"),
        *("number", "word", "escape", "in the object", "two", "key", "no list", "digits", "endless", "nothing", "text"),
    ],
)
def test_what_is_no_trace_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "trace.json"
    file.write_bytes(content)
    done = CliRunner().invoke(main, ["report", str(file)])
    assert done.exit_code == 2
    (line,) = done.output.splitlines()
    assert line.startswith(f"error: {file}: not a trace that can be read: ")
    assert says in line


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pid", {"a": []}),
        ("tid", [1]),
        ("correlation", [1, {}]),
        ("bytes", "9" * 40),
        ("bytes", -5),
        ("ts", "nan"),
        ("ts", 1e300),
        ("dur", -1e9),
        ("name", {"a": 1}),
    ],
)
def test_odd_values_are_no_traceback_and_make_a_record(tmp_path: Path, key: str, value: object) -> None:
    """Whoever writes or edits traces by other means than the profiler does as he likes."""
    trace = training()
    for event in trace.events[::3]:
        (event if key in event else event["args"])[key] = value
    kept = tmp_path / "kept.json"
    done = CliRunner().invoke(main, ["report", str(trace.save(tmp_path / "t.json")), "--output", str(kept)])
    assert done.exit_code == 0, done.output
    (process,) = record(kept).processes
    assert all(0 <= (event.seconds or 0) < 1 and 0 <= event.bytes < 10**6 for event in process.events)
    assert not math.isnan(process.seconds)
    assert int(process.seconds) == 0  # what the trace says, and not what the reading took


@pytest.mark.parametrize("size", range(1, 40))
def test_a_trace_is_the_same_however_it_comes_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """No number is taken for whole, and no text for broken off, because a part ends there."""
    facts = {"first": 12345, "second": {"a": [1.5e-3, True, None, "\u00e9\n\u2713"]}, "third": [], "fourth": [[], {}]}
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"deviceProperties": [123456], "distributedInfo": 1234, **facts}), encoding="utf-8")
    trace = stream.Trace(str(path))
    monkeypatch.setattr(stream, "_CHUNK", size)
    assert list(trace.events()) == []
    assert trace.facts == {"deviceProperties": [123456], "distributedInfo": 1234}
    events = [{"ts": 1234.5678, "name": "\u00e9\\n", "dur": -12}, {}, {"args": {"a": [False, 10**20]}}]
    path.write_text(json.dumps([1, *events, "x"], ensure_ascii=size % 2 == 0), encoding="utf-8")
    assert list(trace.events()) == events


@pytest.mark.parametrize("late", [False, True], ids=["calls first", "copies first"])
def test_a_copy_is_that_of_its_call_in_whatever_order_they_come(tmp_path: Path, late: bool) -> None:
    trace = training()
    trace.events.sort(key=lambda event: (event["cat"] == "gpu_memcpy") != late, reverse=late)
    before, after = (record(one.save(tmp_path / "t.json")).processes[0].events for one in (training(), trace))
    assert before == after


def peak(path: Path) -> int:
    """How many bytes reading a trace allocates at most."""
    tracemalloc.start()
    try:
        reading.read(str(path))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_what_is_neither_copied_nor_waited_for(tmp_path: Path) -> None:
    """The same copies in a trace with ten times as many other events need the same memory."""

    def written(others: int) -> Path:
        trace = training()
        for start in range(4_000, 4_000 + others):
            trace.operator(f"aten::relu{start}", start, start + 1, f"train.py({start}): f")
            trace.python(f"f.py({start}): g{start}", start, start + 1)
            trace.span("cuda_runtime", "cudaLaunchKernel", start, start + 1, correlation=start)
            trace.span("kernel", f"kernel {start}", start, start + 1, 7, correlation=start)
        return trace.save(tmp_path / f"{others}.json")

    reading.read(str(written(10)))  # what is loaded and kept at the first time is no part of it
    assert peak(written(5_000)) < 1.1 * peak(written(500))


def test_memory_hardly_grows_with_the_length_of_a_training(tmp_path: Path) -> None:
    """Of four times the steps, each with its copies."""
    short, long = (large_trace.write(tmp_path / f"{steps}.json", steps) for steps in (8, 32))
    assert record(short).processes[0].steps.train == 8
    assert peak(long) < 1.3 * peak(short)


def test_what_is_read_can_be_kept_as_a_record(tmp_path: Path) -> None:
    """A trace is large, what matters of it is not."""
    trace, kept = str(training().save(tmp_path / "t.json.gz")), str(tmp_path / "kept.json")
    done = CliRunner().invoke(main, ["report", trace, "--output", kept])
    assert (done.exit_code, done.stdout) == (0, "")
    shown = [CliRunner().invoke(main, ["report", file]).stdout for file in (trace, kept)]
    assert shown[0] == shown[1]
    assert "2 copies to the device" in shown[0]


def test_nothing_is_kept_of_what_breaks_off(tmp_path: Path) -> None:
    file = training().save(tmp_path / "trace.json")
    file.write_bytes(file.read_bytes()[:-200])
    wanted = [tmp_path / name for name in ("kept.json", "page.html")]
    done = CliRunner().invoke(main, ["report", str(file), "--output", str(wanted[0]), "--html", str(wanted[1])])
    assert done.exit_code == 2
    assert not any(path.exists() for path in wanted)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_trace_in_a_pipe_is_one_line(tmp_path: Path) -> None:
    pipe, data = tmp_path / "pipe", training().save(tmp_path / "t.json").read_bytes()
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    done = CliRunner().invoke(main, ["report", str(pipe)])
    writer.join()
    assert (done.exit_code, done.output) == (
        2,
        f"error: {pipe}: a trace of torch.profiler is read from a file, and this is none\n",
    )


def test_reading_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    file = training().save(tmp_path / "trace.json")
    reading.read(str(file), lambda done, total: told.append((done, total)))
    assert told[-1] == (file.stat().st_size, file.stat().st_size)
