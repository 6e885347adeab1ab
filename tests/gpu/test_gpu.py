"""What can be told of the GPU command without a GPU: its scenarios run, and its comparisons can fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from devlint.record import Event
from tests.gpu.against_profiler import Counts, counts_in, counts_of, problem_of

ROOT = Path(__file__).parents[2]

# Capturing a graph cannot be simulated, so the last group is for a real device only.
SIMULATED = """
import devlint.simulator
devlint.simulator.install()
from tests.gpu import scenarios
names = []
for group in ("_to_device", "_to_host", "_indexing", "_inside", "_training"):
    for scenario in getattr(scenarios, group)():
        scenario.run()
        names.append(scenario.name)
print(len(names), len(set(names)))
"""


def test_there_are_enough_scenarios_and_they_run() -> None:
    child = subprocess.run(
        [sys.executable, "-c", SIMULATED],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert child.returncode == 0, child.stderr
    number, names = map(int, child.stdout.split())
    assert number == names
    assert number >= 30


def test_the_audit_and_the_profiler_are_read_alike() -> None:
    events = [
        Event(kind="copy", name="copy_", phase="setup", source="cpu", target="cuda:0", calls=2, bytes=64, pinned=True),
        Event(kind="copy", name="copy_", phase="setup", source="cpu", target="cuda:0", calls=1, bytes=8, pinned=False),
        Event(kind="copy", name="item", phase="setup", source="cuda:0", target="cpu", calls=3, bytes=12),
        Event(kind="sync", name="nonzero", phase="setup", source="cuda:0", calls=1),
    ]
    trace = [
        *({"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "args": {"bytes": 32}} for _ in range(2)),
        {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "args": {"bytes": 8}},
        *({"cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pageable)", "args": {"bytes": 4}} for _ in range(3)),
        {"cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "args": {"bytes": 4}},
        {"cat": "kernel", "name": "Memcpy HtoD", "args": {"bytes": 4}},
    ]
    same = Counts(to_device=3, to_device_bytes=72, to_device_pinned=2, to_host=3, to_host_bytes=12)
    assert counts_of(events) == counts_in(trace) == same


def test_a_difference_is_named_and_a_hidden_copy_allowed() -> None:
    audit = Counts(to_host=1, to_host_bytes=4)
    assert problem_of(audit, audit, hidden=0) == ""
    assert problem_of(audit, Counts(to_host=2, to_host_bytes=4), hidden=0) == "to_host: 1 instead of 2"
    assert problem_of(audit, Counts(to_host=2, to_host_bytes=8), hidden=1) == ""
    assert problem_of(audit, Counts(to_host=3, to_host_bytes=8), hidden=1) == "to_host: 1 instead of 2"
