"""Training frameworks run to their end on a simulated device; the scripts are in fixtures/train/clients/."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAUNCH = "import runpy, sys, devlint.simulator as s; s.install(); runpy.run_path(sys.argv[1], run_name='__main__')"

# Steps, from the scripts: 16 rows in batches of 4; two epochs of 32 rows in batches of 8; one such epoch; two again.
CLIENTS = (("hf_trainer", "transformers", 4), ("lightning_trainer", "lightning", 8))
CLIENTS += (("accelerate_loop", "accelerate", 4), ("ignite_engine", "ignite", 8))


@pytest.mark.parametrize(("script", "package", "steps"), CLIENTS)
def test_client_runs_on_the_simulated_device(script: str, package: str, steps: int, tmp_path: Path) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")  # it is no part of what the tests need
    child = subprocess.run(
        [sys.executable, "-c", LAUNCH, str(ROOT / "fixtures" / "train" / "clients" / f"{script}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert child.returncode == 0, child.stderr
    last = child.stdout.splitlines()[-1]
    assert last.startswith(f"steps {steps}, loss 0." if package != "transformers" else f"steps {steps}, loss 4.")
    assert last.endswith("model on cuda:0")
