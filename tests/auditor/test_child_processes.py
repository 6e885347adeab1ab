"""Processes of a run: those that ``multiprocessing`` starts, those that a launcher starts, and those that die."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from devlint.auditor.running import storage
from devlint.record import Record
from tests.auditor.running import LIMIT, audit, environment, run, script
from tests.simulator.available import simulates

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fork and signals are those of POSIX")

CHILDREN = """
import glob, multiprocessing, time
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self): return 4
    def __getitem__(self, index): return torch.full((3,), float(index))

def work(steps):
    for step in train(steps): pass

def nothing(): pass

def leave(): sys.exit(3)

def mismatch():
    for step in train(3):
        if step == 1: model(data)

if __name__ == "__main__":
    for method, steps in (("fork", 2), ("spawn", 3)):
        context = multiprocessing.get_context(method)
        process = context.Process(target=work, args=(steps,))
        process.start(); process.join()
        print(method, process.exitcode)
    context = multiprocessing.get_context("fork")
    for target in (nothing, leave, mismatch):
        process = context.Process(target=target)
        process.start(); process.join()
        print(target.__name__, process.exitcode)
    process = context.Process(target=work, args=(10**9,))
    process.start()
    while len(glob.glob('devlint-*/run-*/child-*.json')) < 4: time.sleep(0.01)  # until its first snapshot is there
    process.terminate(); process.join()
    print("terminated", process.exitcode)
    pid = os.fork()
    if pid == 0:
        work(4)
        os._exit(0)
    os.waitpid(pid, 0)
    work(5)
    print(sum(batch.cuda().sum().item() for batch in DataLoader(Data(), num_workers=1)))
"""


@pytest.mark.slow
def test_children_are_audited_for_themselves(tree) -> None:
    here = tree({"script.py": script(CHILDREN)})
    done = audit(here, "--simulate", "--exit-zero", "script.py")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "fork 0",
        "spawn 0",
        "nothing 0",
        "leave 3",
        "mismatch 1",
        "terminated -15",
        "18.0",
    ]
    record = whole(here)
    found = {(process.role, process.ending.kind, process.steps.train) for process in record.processes}
    (killed,) = (process for process in record.processes if process.ending.kind == "terminated")
    assert found == {
        ("main", "finished", 5),
        ("child", "finished", 2),
        ("child", "finished", 3),
        ("child", "exception", 2),
        ("child", "terminated", killed.steps.train),
    }
    assert len(record.processes) == 5
    (died,) = (process for process in record.processes if process.ending.kind == "exception")
    assert died.ending.error.startswith("RuntimeError: Expected all tensors to be on the same device")
    (mismatch,) = died.mismatches
    assert "model.weight" in [party.text for party in mismatch.parties]
    assert "Process ForkProcess-5:\nTraceback" in done.err
    assert "devlint/" not in done.err
    for process in record.processes:
        copied = sum(
            event.bytes for event in process.events if event.phase == "train" and event.target.startswith("cuda")
        )
        if process is not killed:  # a signal comes in the middle of a step, or of counting one
            assert copied == 48 * process.steps.train


DISTRIBUTED = """
import os, sys, torch
from torch import distributed, nn
distributed.init_process_group("gloo")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2).to(device), device_ids=[device.index])
for step in range(3):
    model(torch.ones(3, 4).to(device)).sum().backward()
distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_torchrun(tree) -> None:
    here = tree({"script.py": DISTRIBUTED})
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = run(here, *launch, "-m", "devlint", "audit", "--simulate", "--devices", "2", "script.py", "--lr", "1")
    assert done.code == 0, done.err
    assert done.err.count("devlint audit --simulate") == 1
    record = whole(here)
    assert record.complete
    assert [(process.rank, process.device) for process in record.processes] == [(0, "cuda:0"), (1, "cuda:1")]
    for process in record.processes:
        assert process.steps.train == 3
        # besides the batches, DDP copies gradients and bookkeeping of its own
        copies = [event for event in process.events if event.phase == "train" and event.target == process.device]
        assert [event.bytes for event in copies if event.example == "float32[3, 4]"] == [3 * 48]


def whole(directory: Path) -> Record:
    (file,) = directory.glob("devlint-*/run-*/record.json")
    return storage.read(str(file))


def start(here: Path, rank: int, **more: str) -> subprocess.Popen[str]:
    """A rank as a launcher starts it."""
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 3, "LOCAL_WORLD_SIZE": 3, "MASTER_PORT": 29500}
    return subprocess.Popen(
        [sys.executable, "-m", "devlint", "audit", "--output", "out.json", "script.py"],
        cwd=here,
        env=environment(here, **{name: str(value) for name, value in names.items()} | more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


RANK = """
import os, sys, time
rank = os.environ["RANK"]
print("rank", rank, flush=True)
if rank == "2":
    sys.stdin.readline()
    {end}
"""


def test_the_first_rank_reports_for_all(tree) -> None:
    here = tree({"script.py": RANK.format(end="time.sleep(0.5); sys.exit(4)"), "torch/__init__.py": ""})
    processes = [start(here, rank) for rank in range(3)]
    results = [process.communicate(timeout=LIMIT) for process in processes]
    assert [out for out, _ in results] == ["rank 0\n", "rank 1\n", "rank 2\n"]
    assert [bool(err) for _, err in results] == [True, False, False]
    assert [process.returncode for process in processes] == [0, 0, 4]
    record = storage.read(str(here / "out.json"))
    assert record == whole(here)
    assert record.complete
    ranks = [(process.rank, process.local_rank, process.world_size, process.role) for process in record.processes]
    assert ranks == [(0, 0, 3, "rank"), (1, 1, 3, "rank"), (2, 2, 3, "rank")]
    assert [process.ending.code for process in record.processes] == [0, 0, 4]


def test_a_rank_that_was_killed_is_named(tree) -> None:
    end = f"os.kill(os.getpid(), {int(signal.SIGKILL)})"
    here = tree({"script.py": RANK.format(end=end), "torch/__init__.py": ""})
    processes = [start(here, rank) for rank in range(3)]
    results = [process.communicate(timeout=LIMIT) for process in processes]
    assert processes[2].returncode == -signal.SIGKILL
    assert "rank 2: killed" in results[0][1]
    record = whole(here)
    assert not record.complete
    assert [process.ending.kind for process in record.processes] == ["finished", "finished", "unknown"]


def test_a_second_machine_writes_a_file_of_its_own(tree) -> None:
    here = tree({"script.py": "", "torch/__init__.py": ""})
    process = start(here, 3, LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", WORLD_SIZE="4", GROUP_RANK="1")
    process.communicate(timeout=LIMIT)
    assert process.returncode == 0
    assert not (here / "out.json").exists()
    (found,) = storage.read(str(here / "out.node1.json")).processes
    assert (found.rank, found.local_rank, found.world_size) == (3, 0, 4)
    assert found.environment.host == socket.gethostname()


def test_records_of_two_machines_make_one_report_and_those_of_two_runs_none(tree) -> None:
    here = tree({"script.py": "", "torch/__init__.py": ""})

    def machine(rank: int, run: str) -> None:
        """The port stands for the launcher, which processes of one machine have in common."""
        one = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "WORLD_SIZE": "2", "GROUP_RANK": str(rank)}
        start(here, rank, MASTER_PORT=f"{run}{rank}", **one).communicate(timeout=LIMIT)

    machine(0, "2950")
    machine(1, "2950")
    done = run(here, "-m", "devlint", "report", "out.json", "out.node1.json")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^  ranks +2$", done.out, re.MULTILINE)
    (here / "out.json").rename(here / "old.json")
    machine(0, "2951")
    done = run(here, "-m", "devlint", "report", "old.json", "out.json", "out.node1.json")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(
        "error: both old.json and out.json have rank 0: records of different runs make no report"
    )


def test_what_a_launcher_takes_for_a_crash_is_said_to_be_none(tree) -> None:
    budgets = "[tool.devlint.audit.budgets]\nsyncs-per-step = 0\n"
    here = tree({"script.py": "", "torch/__init__.py": "", "pyproject.toml": budgets})
    process = start(here, 0, WORLD_SIZE="2", LOCAL_WORLD_SIZE="1")
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert err.splitlines()[-1].startswith("note: the exit code is 1 because of what was found")
    # without a launcher the exit code speaks for itself
    alone = run(here, "-m", "devlint", "audit", "script.py")
    assert alone.code == 1
    assert "note: the exit code" not in alone.err


STUCK = """
    import ctypes, multiprocessing, os, signal
    import torch
    def work():
        torch.ones(3).cuda()
        # a C function that waits for another process, whatever signals come: no Python code runs meanwhile
        ctypes.CDLL(None).system(b"echo $$ > pid; kill -TERM $PPID; exec sleep 600 <&- >&- 2>&-")
    if __name__ == "__main__":
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start(); process.join()
        os.kill(int(open("pid").read()), signal.SIGKILL)  # which fails if that was waited for
        print(process.exitcode)
"""


@simulates
def test_a_child_that_waits_in_c_code_dies_of_a_signal_at_once(tree) -> None:
    """As a worker of ``multiprocessing.Pool`` may, which is terminated while it waits for a lock."""
    here = tree({"script.py": script(STUCK)})
    done = audit(here, "--simulate", "script.py")
    assert done.out.splitlines() == ["-15"], done.err
    (child,) = (process for process in whole(here).processes if process.role == "child")
    assert child.ending.kind == "terminated"
    assert sum(event.bytes for event in child.events if event.kind == "copy") == 12  # three float32
