"""What the masquerade promises as a whole: all of `torch.cuda` answers, files are CUDA's, and it is all or nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Functions of torch.cuda that take more than a device, with what a script would give them.
ARGUMENTS = {
    "caching_allocator_alloc": "(512,)",
    "caching_allocator_delete": "(0,)",
    "caching_allocator_enable": "(True,)",
    "can_device_access_peer": "(0, 1)",
    "change_current_allocator": "(None,)",
    "check_error": "(0,)",
    "device": "(0,)",
    "device_of": "(torch.ones(1),)",
    "get_stream_from_external": "(1,)",
    "make_graphed_callables": "(torch.nn.Linear(1, 1).cuda(), (torch.ones(1, device='cuda'),))",
    "manual_seed": "(0,)",
    "manual_seed_all": "(0,)",
    "set_device": "(0,)",
    "set_per_process_memory_fraction": "(0.5,)",
    "set_rng_state": "(torch.cuda.get_rng_state(),)",
    "set_rng_state_all": "(torch.cuda.get_rng_state_all(),)",
    "set_stream": "(torch.cuda.Stream(),)",
    "set_sync_debug_mode": "(0,)",
    "stream": "(torch.cuda.Stream(),)",
    "use_mem_pool": "(None,)",
    "graph": "(torch.cuda.CUDAGraph(),)",
    "CUDAPluggableAllocator": "('a.so', 'f', 'g')",
    "GreenContext": "(1,)",
    "ExternalStream": "(1,)",
    "StreamContext": "(None,)",
    "CudaError": "(0,)",
}
NOT_CALLED = {"classproperty", "cast", "NewType", "lru_cache", "DeferredCudaCallError", "cudaStatus"}

SWEEP = """
import inspect, json, sys, warnings
import torch
import devlint.simulator
devlint.simulator.install(devices=2)
warnings.simplefilter("ignore")
arguments, skipped = json.loads(sys.argv[1])
failed = {}
for name in dir(torch.cuda):
    value = getattr(torch.cuda, name)
    own = getattr(value, "__module__", "").startswith("torch.cuda")
    if name.startswith("_") or name in skipped or not own or not callable(value) or name.endswith("Storage"):
        continue
    try:
        value(*eval(arguments.get(name, "()")))
    except NotImplementedError as error:
        if not str(error).startswith("devlint does not simulate torch.cuda."):
            failed[name] = repr(error)
    except Exception as error:
        failed[name] = repr(error)
print(json.dumps(failed))
"""

SAVE = """
import sys, torch
import devlint.simulator
devlint.simulator.install()
torch.save({"weight": torch.arange(3.0, device="cuda"), "step": torch.tensor(5)}, sys.argv[1])
"""

LOAD = """
import sys, torch, zipfile
try:
    torch.load(sys.argv[1])
except RuntimeError as error:
    print(str(error).split(". ")[0])
state = torch.load(sys.argv[1], map_location="cpu", weights_only=True)
print(type(state["weight"]) is torch.Tensor, state["weight"].tolist(), state["step"].item(), state["weight"].device)
archive = zipfile.ZipFile(sys.argv[1])
pickled = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
print(b"cuda:0" in pickled, b"devlint" in pickled)
"""

BROKEN = """
import types
import torch
from devlint.simulator import backend, masquerade
from devlint.simulator.masquerade.cuda import unsupported
def names():
    owners = (torch, torch._C, torch.cuda, torch.Tensor, torch.cuda.streams, torch.utils, backend.SimulatedTensor)
    return {
        (owner, name): value
        for owner in owners
        for name, value in vars(owner).items()
        if not isinstance(value, types.ModuleType)
    }
backend.install()
before = names()
def fail(patches):
    raise ValueError("broken")
unsupported.install = fail
try:
    masquerade.install()
except ValueError:
    after = names()
    print(sorted(name for owner, name in before.keys() ^ after.keys()))
    print(sorted(key[1] for key in before.keys() & after.keys() if before[key] is not after[key]))
    print(torch.cuda.is_available(), torch.zeros(1).device, isinstance(torch.zeros(1).device, torch.device))
"""

TWICE = """
import torch, devlint.simulator
devlint.simulator.install(devices=2)
to = torch.Tensor.to
devlint.simulator.install()
print(torch.Tensor.to is to, torch.cuda.device_count())
"""

PRESENT = """
import torch, devlint.simulator
torch.cuda.device_count = lambda: 1
try:
    devlint.simulator.install()
except RuntimeError as error:
    print(error)
print(torch._C._get_privateuse1_backend_name())
"""

WRAPPED = """
import torch, devlint.simulator
devlint.simulator.install()
seen = []
for owner in (torch.cuda, torch.cuda.Stream, torch.cuda.Event, torch.accelerator):
    def wrapper(*args, original=owner.synchronize, owner=owner, **kwargs):
        seen.append(owner.__name__)
        return original(*args, **kwargs)
    owner.synchronize = wrapper
torch.cuda.synchronize()
torch.cuda.current_stream().synchronize()
torch.cuda.Event().synchronize()
torch.accelerator.synchronize()
print(seen)
"""


def run(program: str, *arguments: str) -> list[str]:
    """The lines that a program prints in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    child = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, timeout=120
    )
    assert child.returncode == 0, child.stderr
    return child.stdout.splitlines()


def test_every_public_function_of_torch_cuda_works_or_says_that_it_is_not_simulated() -> None:
    assert json.loads(run(SWEEP, json.dumps([ARGUMENTS, sorted(NOT_CALLED)]))[-1]) == {}


def test_a_checkpoint_is_one_of_cuda(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint.pt")
    run(SAVE, path)
    refusal, content, marks = run(LOAD, path)
    assert refusal == "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"
    assert content == "True [0.0, 1.0, 2.0] 5 cpu"
    assert marks == "True False"


def test_a_failure_while_it_is_put_on_leaves_torch_as_it_was() -> None:
    added, changed, answers = run(BROKEN)
    assert (added, changed) == ("[]", "[]")
    assert answers == "False cpu True"


def test_a_second_call_changes_nothing() -> None:
    assert run(TWICE) == ["True 2"]


def test_it_refuses_where_there_is_a_gpu() -> None:
    refusal, name = run(PRESENT)
    assert refusal.startswith("a CUDA device is present")
    assert name == "privateuseone"


def test_waiting_is_python_code_that_can_be_wrapped() -> None:
    assert run(WRAPPED) == ["['torch.cuda', 'Stream', 'Event', 'torch.accelerator']"]
