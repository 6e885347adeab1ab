"""Linter and simulated accelerator agree about random programs, and about those where they once did not."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.accuracy.fuzz.regressions import PROGRAMS

ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, since the simulated accelerator cannot be taken away again."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )


ON_ONE_WORD = """
from tests.accuracy.fuzz import running, taught
from tests.accuracy.fuzz.program import Line, Program

running.simulate()
TEXT = '''import sys
import torch
def place(x):
    if "word1" in sys.argv:
        return torch.ones(4)
    return OTHERWISE
def use(x):
    if "word1" in sys.argv:
        pass
    else:
        torch.stack([x, torch.ones(4, device="cuda")])
globals()["use"](globals()["place"](torch.ones(4, device="cuda")))
'''
for otherwise in ("torch.ones(4, device='cuda')", "torch.ones(4)"):
    tally = taught.Tally(programs=1)
    lines = (Line(line) for line in TEXT.replace("OTHERWISE", otherwise).splitlines())
    taught.compare(Program(tuple(lines), ("word1",)), tally)
    print(tally.gained.total(), tally.confirmed, tally.hanging)
"""


MOVED_AT_ONCE = """
from tests.accuracy.fuzz import comparing
from tests.accuracy.fuzz.program import Line, Program

TEXT = '''import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(4, 4)
    def forward(self, x):
        x = torch.ones(4, 4)
        x = self.part(x)
        x = LATER
Net().cuda()(torch.ones(4, 4))
'''
for later in ("x.cuda()", "x.relu()"):
    lines = (Line(line) for line in TEXT.replace("LATER", later).splitlines())
    outcome = comparing.compare(Program(tuple(lines)))
    print(outcome.limits, outcome.explained)
"""


@functools.cache
def regressions() -> dict[str, str | None]:
    """What the programs of the list disagree about."""
    done = run("-m", "tests.accuracy.fuzz.regressions")
    assert done.returncode == 0, done.stderr
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_agreement(name: str) -> None:
    assert regressions()[name] is None, regressions()[name]


def test_a_claim_for_a_branch_not_taken_comes_true_unless_the_place_hangs_on_the_same_word() -> None:
    done = run("-c", ON_ONE_WORD)
    assert done.stdout.splitlines() == ["1 0 1", "1 1 0"], done.stderr


def test_what_only_those_who_select_the_rule_are_told_is_no_miss() -> None:
    done = run("-c", MOVED_AT_ONCE)
    assert done.stdout.splitlines() == ["{'a result moved at once': 1} {}", "{} {'DVL103': 1}"], done.stderr


@pytest.mark.slow
def test_random_programs() -> None:
    done = run("-m", "tests.accuracy.fuzz", "--programs", "300", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_what_runs_of_random_programs_teach() -> None:
    done = run("-m", "tests.accuracy.fuzz.taught", "--programs", "300", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
