"""Records of runs as they could have been, for the tests of what is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from devlint.record import (
    Device,
    Ending,
    Environment,
    Event,
    Frame,
    Loader,
    Mismatch,
    Models,
    Party,
    Process,
    Record,
    Steady,
    Steps,
)

HOME = "/home/ada/vision"
TRAIN = f"{HOME}/train.py"
MODEL = f"{HOME}/nets/model.py"
TRAINER = "/opt/venv/lib/python3.11/site-packages/transformers/trainer.py"

TRAIN_CODE = """\
import torch
from nets.model import Net
from torch.utils.data import DataLoader

device = torch.device("cuda")
model = Net().to(device)
loader = DataLoader(data, batch_size=64, num_workers=0)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    total = 0.0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if (labels < 0).any():
            raise ValueError("a label is negative")
torch.save(model.state_dict(), "model.pt")
"""
MODEL_CODE = """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(784, 64)
        self.heads = [nn.Linear(64, 10) for _ in range(2)]

    def forward(self, x):
        return self.heads[0](self.body(x).relu())
"""


def lines(code: str) -> dict[int, str]:
    return dict(enumerate(code.splitlines(), 1))


SOURCES = {TRAIN: lines(TRAIN_CODE), MODEL: lines(MODEL_CODE)}


def at(row: int, text: str = "", file: str = TRAIN, function: str = "<module>") -> Frame:
    """The place of a piece of code in a line."""
    line = SOURCES[file][row]
    column = line.index(text or line.strip())
    width = len(text or line.strip())
    return Frame(file=file, line=row, function=function, column=column, end_line=row, end_column=column + width)


H100 = Device(name="cuda:0", model="NVIDIA H100 80GB HBM3", capability=(9, 0), memory=79 * 2**30)
CUDA = Environment(
    python="3.11.9",
    platform="Linux x86_64",
    torch="2.13.0+cu128",
    build="CUDA 12.8",
    driver="570.86.15",
    devices=(replace(H100, peak=3 * 2**30, reserved=4 * 2**30),),
    cpu_count=16,
)


def copy(frame: Frame | None, calls: int, size: int, seconds: float, **more: Any) -> Event:
    """A copy to the device in each of 40 training steps."""
    fields: dict[str, Any] = {
        "kind": "copy", "name": "copy_", "phase": "train", "source": "cpu", "target": "cuda:0", "pinned": False,
        "blocking": True, "steps": 40,
    } | more  # fmt: skip
    steady = Steady(calls=calls, bytes=size, seconds=seconds) if fields["phase"] == "train" else None
    whole = 40 if fields["phase"] == "train" else 1
    return Event(frame=frame, calls=calls * whole, bytes=size * whole, seconds=seconds * whole, steady=steady, **fields)


def cnn() -> Record:
    """A small image classifier with everything at its defaults, on one card."""
    process = Process(
        pid=4711,
        device="cuda:0",
        backend="CUDA",
        ending=Ending(kind="finished"),
        seconds=4.2,
        environment=CUDA,
        steps=Steps(
            train=40,
            eval=8,
            optimizer_steps={"Adam": 40},
            boundary="loader",
            step_seconds=0.0123,
            loader_seconds=0.0041,
        ),
        events=(
            copy(at(12, "images.to(device)"), 1, 200_704, 0.0009),
            copy(at(12, "labels.to(device)"), 1, 512, 0.00003),
            copy(at(17, "loss.item()"), 1, 4, 0.0051, name="item", source="cuda:0", target="cpu"),
            Event(
                kind="sync", name="any", phase="train", frame=at(18, "(labels < 0).any()"), source="cuda:0", calls=40,
                seconds=0.002, steps=40, steady=Steady(calls=1, seconds=0.00005),
            ),
            copy(at(12, "images.to(device)"), 8, 8 * 200_704, 0.008, phase="eval", steps=8),
            copy(at(6, "Net().to(device)"), 6, 203_560, 0.002, phase="setup", steps=0),
            copy(
                at(20, "torch.save(model.state_dict(), \"model.pt\")"), 6, 203_560, 0.001, phase="teardown", steps=0,
                source="cuda:0", target="cpu",
            ),
        ),
        loaders=(
            Loader(
                name="torch.utils.data.DataLoader", frame=at(7, "DataLoader(data, batch_size=64, num_workers=0)"),
                device="cpu", pinned=False, batches=48, batch="float32[64, 784], int64[64]", training=True,
            ),
        ),
        models=Models(outermost=("Net",), devices=("cuda:0",), parameters=50_890, dtypes=("float32",)),
    )  # fmt: skip
    return Record(
        devlint="0.1.0",
        complete=True,
        command=("train.py", "--epochs", "2"),
        directory=HOME,
        started="2026-05-04T10:00:00+02:00",
        processes=(process,),
        findings=(MISSING_PIN,),
        advice=("the loop waited for the loader in 33 % of the step",),
        sources=SOURCES,
    )


MISSING_PIN: dict[str, Any] = {
    "code": "DVL301",
    "name": "missing-pin-memory",
    "severity": "warning",
    "message": "the batches of this `DataLoader` are copied to `cuda:0` from pageable memory at every step",
    "label": "`pin_memory` is not set",
    "help": "set `pin_memory=True`; `.to(..., non_blocking=True)` then overlaps the copy with work",
    "filename": TRAIN,
    "location": {"row": 7, "column": 10},
    "end_location": {"row": 7, "column": 57},
    "fix": None,
    "related": [
        {
            "message": "copied to `cuda:0` here",
            "filename": TRAIN,
            "location": {"row": 12, "column": 26},
            "end_location": {"row": 12, "column": 43},
        }
    ],
    "measured": {
        "calls": 80, "bytes": 8_048_640, "seconds": 0.0372, "steps": 40, "per_step": 2.0, "bytes_per_step": 201_216.0,
        "repeats": 0, "ranks": [],
    },
}  # fmt: skip


def simulated(record: Record) -> Record:
    """The same run where the device was simulated: no times, and a device without properties."""

    def untimed(event: Event) -> Event:
        steady = replace(event.steady, seconds=None, copying=None) if event.steady else None
        return replace(event, seconds=None, copying=None, steady=steady)

    def of(process: Process) -> Process:
        device = Device(name="cuda:0", model="(simulated)")
        return replace(
            process,
            backend="PrivateUse1",
            environment=replace(
                process.environment, torch="2.13.0+cpu", build="CPU", driver="", devices=(device,), cpu_count=4
            ),
            steps=replace(process.steps, step_seconds=None, loader_seconds=None),
            events=tuple(map(untimed, process.events)),
        )

    findings = None
    if record.findings is not None:
        findings = tuple(
            {**found, "measured": {**found["measured"], "seconds": None}} if "measured" in found else found
            for found in record.findings
        )
    return replace(record, simulated=True, processes=tuple(map(of, record.processes)), findings=findings, advice=())


ERROR = "Expected all tensors to be on the same device, but got mat1 is on cuda:0, different from other tensors on cpu"


def mismatch() -> Record:
    """The same model's head is in a plain list: the first step died."""
    (process,) = cnn().processes
    call = at(10, "self.heads[0](self.body(x).relu())", MODEL, "Net.forward")
    met = Mismatch(
        frame=call,
        module="heads.0",
        module_class="Linear",
        parties=(
            Party(text="input", device="cuda:0", example="float32[64, 64]", role="input"),
            Party(
                text="self.heads[0].weight",
                device="cpu",
                example="float32[10, 64]",
                role="parameter",
                why="`heads` is a plain list, so `.to()` did not move it",
                origin=at(7, "self.heads = [nn.Linear(64, 10) for _ in range(2)]", MODEL, "Net.__init__"),
            ),
        ),
        error=ERROR,
    )
    died = replace(
        process,
        ending=Ending(kind="exception", code=1, error=f"RuntimeError: {ERROR}"),
        seconds=1.5,
        steps=Steps(),
        events=process.events[-2:-1],
        mismatches=(met,),
    )
    finding = {
        "code": "DVL101",
        "name": "device-mismatch",
        "severity": "error",
        "message": "`self.heads[0]` is on the CPU but its input is on `cuda:0`",
        "label": "",
        "help": "keep `heads` in an `nn.ModuleList`",
        "filename": MODEL,
        "location": {"row": 10, "column": 16},
        "end_location": {"row": 10, "column": 50},
        "fix": None,
        "related": [],
    }
    return replace(cnn(), processes=(died,), findings=(finding,), advice=())


def distributed() -> Record:
    """Two ranks that share a card by mistake; the second one was killed."""
    (process,) = cnn().processes
    late = tuple(
        replace(event, steady=replace(event.steady, calls=event.steady.calls + 1, seconds=0.01))
        if event.steady and event.kind == "copy"
        else event
        for event in process.events
    )
    ranks = (
        replace(process, role="rank", rank=0, local_rank=0, world_size=2),
        replace(
            process, role="rank", rank=1, local_rank=1, world_size=2, pid=4712, events=late, seconds=3.0,
            ending=Ending(kind="unknown"), steps=replace(process.steps, train=39, step_seconds=0.02),
        ),
    )  # fmt: skip
    return replace(cnn(), processes=ranks, command=("train.py",))


def framework() -> Record:
    """A language model under autocast, trained by a library: one line of the project, many of the library's."""
    line = "trainer.train()"
    source = f"{HOME}/finetune.py"
    frame = Frame(file=source, line=12, function="main", column=4, end_line=12, end_column=19)
    code = {row: f"        self.work_{row}(inputs)" for row in range(2000, 2040)}
    events = []
    for number in range(24):
        via = Frame(file=TRAINER, line=2000 + number, function="Trainer.training_step", column=8)
        events.append(copy(frame, 1, 4096 * (number + 1), 0.0001 * number, via=via, pinned=True))
    (process,) = cnn().processes
    process = replace(
        process,
        events=tuple(events),
        models=Models(
            outermost=("GPT2LMHeadModel",), devices=("cuda:0",), parameters=124_439_808, dtypes=("float32",),
            autocast="bfloat16", unaligned=("lm_head (Linear 768 -> 50,257, bfloat16)",),
        ),
        steps=replace(process.steps, eval=0, optimizer_steps={"AdamW": 10}, loader_seconds=0.0001),
    )  # fmt: skip
    return replace(
        cnn(),
        processes=(process,),
        command=("-m", "finetune"),
        findings=(),
        advice=(),
        sources={source: {12: f"    {line}"}, TRAINER: code},
    )


def nothing() -> Record:
    """A script that never imported torch."""
    process = Process(pid=1, ending=Ending(kind="finished"), seconds=0.01)
    return Record(complete=True, command=("hello.py",), directory=HOME, processes=(process,), findings=(), advice=())


def every() -> dict[str, Record]:
    """All of them by name."""
    return {
        "cnn": cnn(),
        "simulated": simulated(cnn()),
        "mismatch": mismatch(),
        "distributed": distributed(),
        "framework": framework(),
        "nothing": nothing(),
        "empty": Record(),
    }
