"""Training frameworks, audited on a simulated device: the scripts of fixtures/train/clients run to their end.

Every script copies two tensors per step: 4 * 16 token numbers of 8 B and as many labels for the Trainer, 1024 B; 8 rows
of 8 float32 with 8 int64 labels for the others, 256 + 64 = 320 B.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
CLIENTS = Path(__file__).parents[2] / "fixtures" / "train" / "clients"


@dataclass(frozen=True)
class Client:
    """A script, what it needs, and what is known of it.

    ``steps`` are those of training: 32 rows in batches of 4, 64 of 8; 32 rows twice for Lightning and ignite.
    ``reads`` are the scalars that the framework reads in a step: the Trainer asks whether the loss is NaN or infinite,
    and whether the attention mask hides anything; ignite's default output is ``loss.item()``.
    """

    script: str
    package: str
    steps: int
    eval_steps: int
    bytes: int
    pinned: bool
    non_blocking: bool
    reads: float


ALL = [
    Client("hf_trainer", "transformers", 8, 0, 1024, pinned=True, non_blocking=False, reads=3),
    Client("lightning_trainer", "lightning", 8, 0, 320, pinned=False, non_blocking=True, reads=0),
    Client("accelerate_loop", "accelerate", 8, 0, 320, pinned=False, non_blocking=False, reads=0),
    Client("ignite_engine", "ignite", 8, 8, 320, pinned=False, non_blocking=False, reads=1),
]


@pytest.mark.parametrize("client", ALL, ids=lambda client: client.package)
def test_a_framework_is_audited_like_a_loop(client: Client, tmp_path: Path) -> None:
    if importlib.util.find_spec(client.package) is None:
        pytest.skip(f"{client.package} cannot be installed on Python {sys.version_info.major}.{sys.version_info.minor}")
    path = tmp_path / "record.json"
    audit = ["audit", "--simulate", "--isolated", "--exit-zero", "--output", str(path)]
    child = subprocess.run(
        [sys.executable, "-m", "devlint", *audit, str(CLIENTS / f"{client.script}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CLIENTS.parents[2]), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    last = child.stdout.splitlines()[-1]
    assert last.startswith(f"steps {client.steps}, loss ")
    assert last.endswith("model on cuda:0")

    (process,) = json.loads(path.read_text())["processes"]
    assert (process["steps"]["train"], process["steps"]["eval"]) == (client.steps, client.eval_steps)
    for phase, steps in (("train", client.steps), ("eval", client.eval_steps)):
        batches = [event for event in process["events"] if event["phase"] == phase and of_a_batch(event)]
        assert sum(event["calls"] for event in batches) == 2 * steps
        assert sum(event["bytes"] for event in batches) == client.bytes * steps
        for event in batches:
            assert (event["pinned"], event["non_blocking"]) == (client.pinned, client.non_blocking)
    reads = [event for event in process["events"] if event["name"] == "item" and event["phase"] == "train"]
    assert sum(event["steady"]["calls"] for event in reads if event["steps"] == client.steps) == client.reads


def of_a_batch(event: dict[str, Any]) -> bool:
    return event["kind"] == "copy" and event["source"] == "cpu" and event["loader"] is not None
