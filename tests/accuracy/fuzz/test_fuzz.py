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
        [sys.executable, "-m", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )


@functools.cache
def regressions() -> dict[str, str | None]:
    """What the programs of the list disagree about."""
    done = run("tests.accuracy.fuzz.regressions")
    assert done.returncode == 0, done.stderr
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_agreement(name: str) -> None:
    assert regressions()[name] is None, regressions()[name]


@pytest.mark.slow
def test_random_programs() -> None:
    done = run("tests.accuracy.fuzz", "--programs", "300", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_what_runs_of_random_programs_teach() -> None:
    done = run("tests.accuracy.fuzz.taught", "--programs", "300", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
