"""The rows of libraries, beside what these do; of a library that is not installed nothing is shown."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import devlint

pytest.importorskip("torch")
ROOT = Path(devlint.__file__).parents[1]
DATA = ROOT / "devlint" / "flow" / "catalog" / "data"
IN_TRAINING = """\
import sys
from devlint.models import commands
from devlint.simulator import install

install(2)

from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer


def train():
    commands.check.callback(sys.argv[1])
    print("no problem")


# without workers, the training function runs in this process
TorchTrainer(train, scaling_config=ScalingConfig(num_workers=0)).fit()
"""


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "RAY_TRAIN_V2_ENABLED": "1"},
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.mark.parametrize(("package", "shown"), [("einops", 6), ("tensordict", 5), ("torchdata", 2)])
def test_rows_are_shown(tmp_path: Path, package: str, shown: int) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    text = run(tmp_path, "-m", "devlint", "models", "check", str(DATA / f"{package}.toml"))
    assert text.splitlines()[-1].startswith(f"{shown} shown, 0 different, ")


def test_rows_of_ray_are_shown_in_a_training_function(tmp_path: Path) -> None:
    """Its functions work nowhere else."""
    pytest.importorskip("ray")
    (tmp_path / "training.py").write_text(IN_TRAINING, encoding="utf-8")
    lines = run(tmp_path, "training.py", str(DATA / "ray.toml")).splitlines()
    assert lines[-2:] == ["3 shown, 0 different, 1 not shown.", "no problem"]
