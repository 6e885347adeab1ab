"""A simulated run computes what the CPU computes, to the last bit; the programs are in tests/simulator/programs.py."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PROGRAMS = ("cnn", "lstm", "recurrent", "gan", "transformer", "accumulation", "mixed")


@functools.cache
def losses(mode: str) -> dict[str, Any]:
    """The device and the losses of all programs, run once in a child."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.simulator.programs", mode],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert child.returncode == 0, child.stderr
    result: dict[str, Any] = json.loads(child.stdout)
    return result


@pytest.mark.parametrize("program", PROGRAMS)
def test_losses_are_those_of_the_cpu(program: str) -> None:
    plain, simulated = losses("plain"), losses("simulated")
    assert (plain["device"], simulated["device"]) == ("cpu", "cuda")
    assert simulated["losses"][program] == plain["losses"][program]


def test_all_programs_are_compared() -> None:
    assert set(losses("plain")["losses"]) == set(PROGRAMS)
