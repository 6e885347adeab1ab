"""What training scripts say to a GPU holds on simulated devices; the tables are in tests/simulator/idioms/."""

from __future__ import annotations

import functools
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulator import idioms

ROOT = Path(__file__).parents[2]


@functools.cache
def outcomes(table: str) -> dict[str, str | None]:
    """What each snippet of a table raised; all run in one child, once."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    child = subprocess.run(
        [sys.executable, "-m", "tests.simulator.idioms.run", table],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert child.returncode == 0, child.stdout + child.stderr
    result: dict[str, str | None] = json.loads(child.stdout.splitlines()[-1])
    return result


def cases() -> list[object]:
    """Every snippet of every table."""
    return [
        pytest.param(table, idiom.name, idiom.raises, id=f"{table}: {idiom.name}")
        for table in idioms.TABLES
        for idiom in importlib.import_module(f"tests.simulator.idioms.{table}").idiom.idioms
    ]


@pytest.mark.parametrize(("table", "name", "raises"), cases())
def test_idiom(table: str, name: str, raises: str) -> None:
    raised = outcomes(table)[name]
    if raises:
        assert raised is not None, f"nothing was raised instead of {raises!r}"
        assert raises in raised
    else:
        assert raised is None, raised
