"""Two processes train together on simulated devices with the backend "nccl"; see tests/simulator/ranks.py."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

ROOT = Path(__file__).parents[2]


@functools.cache
def ranks(mode: str) -> list[dict[str, Any]]:
    """What the two ranks saw."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.simulator.ranks", mode]
        children = [
            subprocess.Popen(
                [*command, str(rank), f"{folder}/store"],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        try:
            outputs = [child.communicate(timeout=90) for child in children]
        finally:
            for child in children:
                child.kill()
    assert [child.returncode for child in children] == [0, 0], outputs
    return [json.loads(stdout.splitlines()[-1]) for stdout, _ in outputs]  # what Gloo says stands before


def test_collectives_of_nccl_work_on_simulated_devices() -> None:
    for rank, seen in enumerate(ranks("simulated")):
        assert seen["backend"] == "nccl"
        assert seen["available"]
        assert seen["collectives"] == {
            "sum": [[3.0, 3.0], f"cuda:{rank}"],  # 1 of the first rank and 2 of the second
            "gathered": [0.0, 1.0],
            "broadcast": 6.0,  # 1 + 5 of the second
            "objects": [{"rank": 0}, {"rank": 1}],
            "refused": "No backend type associated with device type cpu",
        }


@pytest.mark.slow
def test_ddp_trains_as_it_does_on_the_cpu() -> None:
    first, second = ranks("simulated")
    assert first["weights"] == second["weights"]
    assert first["weights"] == ranks("plain")[0]["weights"]


def test_batch_normalisation_is_synchronised_between_processes() -> None:
    assert [seen["synchronised"] for seen in ranks("simulated")] == [True, True]


def test_fsdp_trains_as_it_does_on_the_cpu() -> None:
    plain = ranks("plain")[0]["sharded"]
    for rank, seen in enumerate(ranks("simulated")):
        expected = {"device": f"cuda:{rank}", "is_cuda": True, "weights": plain["weights"], "drawn": True}
        assert seen["sharded"] == {**expected, "memory": f"cuda:{rank}"}
