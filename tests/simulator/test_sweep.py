"""A part of torch's own operations on the simulated device; `python -m tests.simulator.sweep` takes them all."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.simulator.child import ROOT


@pytest.mark.slow
def test_operations_equal_the_host_and_refuse_its_tensors() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulator.sweep", "--part", "6"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    # Of some 620 operations, every sixth with up to two samples; half of them take two tensors or more.
    assert counts["equal"] > 150
    assert counts["refused"] > 50
