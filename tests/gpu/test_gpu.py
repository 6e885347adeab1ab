"""What can be told of the GPU command without a GPU: its scenarios run, and its comparisons can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from devlint.record import Event
from tests.gpu.__main__ import _JUDGES, judged, keep, measure
from tests.gpu.against_profiler import Counts, counts_in, counts_of, problem_of
from tests.gpu.fixtures import codes
from tests.gpu.parts import PARTS
from tests.gpu.processes import collect

ROOT = Path(__file__).parents[2]

SIMULATED = """
import devlint.simulator
devlint.simulator.install()
from tests.gpu import scenarios
names = []
for group in scenarios.GROUPS[:-1]:
    for scenario in group():
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


JOBS = """
import os, sys, time
from pathlib import Path
from tests.gpu.parts import Part, work

def fails():
    raise ValueError("no such thing")

jobs = {"well": lambda: "ok", "fails": fails, "dies": lambda: os._exit(7), "after": lambda: [1], LAST}
work(Part(lambda: iter(jobs.items()), 9), Path(sys.argv[1]), int(sys.argv[2]))
"""
FOUND = {
    "well": "ok",
    "fails": {"problem": "ValueError: no such thing"},
    "dies": {"problem": "the process died: status 7"},
    "after": [1],
}


def test_a_job_that_fails_or_dies_costs_no_other() -> None:
    command = [sys.executable, "-c", JOBS.replace("LAST", "")]
    assert collect(command, 60) == (FOUND, "")


def test_what_takes_too_long_ends_and_what_was_found_is_kept(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    waits = f'"waits": lambda: (Path({str(begun)!r}).write_text(str(os.getpid())), time.sleep(600))'
    command = [sys.executable, "-c", JOBS.replace("LAST", waits)]
    assert collect(command, 6) == (FOUND, "took longer than 6 seconds")
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def test_results_are_added_to_those_of_other_parts(tmp_path: Path) -> None:
    file = tmp_path / "results" / "card.json"
    ran = {"card": "card", "date": "2026-01-01"}
    soak = {"results": {"2 processes, gloo": "ok"}, "trouble": "", "seconds": 30}
    keep(file, ran, "soak", soak)
    keep(file, ran, "counts", measure("counts", 0))
    keep(file, ran, "soak", measure("soak", 0))
    kept = json.loads(file.read_text())
    assert kept["soak"] == {**soak, "date": "2026-01-01"}, "a part that was not begun takes nothing away"
    assert kept["counts"]["trouble"] == "was not begun: there was no time left"
    assert list(judged("soak", kept["soak"])) == [(f"{'2 processes, gloo':45} ok", True)]
    assert [good for _, good in judged("counts", kept["counts"])] == [False]


@pytest.mark.parametrize(
    ("part", "right", "wrong"),
    [
        ("counts", {"blind": "", "problem": ""}, {"blind": "", "problem": "to_host: 1 instead of 2"}),
        ("training", [], ["missing (3, 'train')"]),
        ("idioms", {}, {"item": "raises nothing"}),
        ("fixtures", {}, {"bad.py:3": "no error"}),
        ("overhead", {"plain": 1, "audited": 1.04, "ratio": 1.04, "bar": 1.05, "whole": 1.2},
         {"plain": 1, "audited": 1.06, "ratio": 1.06, "bar": 1.05, "whole": 1.2}),
        ("soak", "ok", "deadlock"),
    ],
)  # fmt: skip
def test_every_part_is_judged(part: str, right: object, wrong: object) -> None:
    assert set(_JUDGES) == set(PARTS)
    for result, good in ((right, True), (wrong, False)):
        lines = list(judged(part, {"results": {"job": result}, "trouble": ""}))
        assert all(found for _, found in lines) is good


def test_the_rules_about_devices_have_fixtures() -> None:
    assert {"DVL101", "DVL202", "DVL501"} <= set(codes())
    assert "DVL606" not in codes()
