"""Runs the simulator's idioms on the real device: what they expect of a CUDA machine has to be so."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys

import torch

from tests.simulator.idioms import TABLES

_ANOTHER = "invalid device ordinal"
"""What torch says of a second device where there is only one."""


def differences() -> dict[str, str]:
    """What every snippet did that was not expected of it, by table and name; empty where all is well."""
    found: dict[str, str] = {}
    for table in TABLES:
        raised = _run(table)
        for idiom in importlib.import_module(f"tests.simulator.idioms.{table}").idiom.idioms:
            error = raised.get(idiom.name, "was not run") or ""
            if _ANOTHER in error and torch.cuda.device_count() < 2:
                continue
            if not (idiom.raises in error if idiom.raises else not error):
                found[f"{table}: {idiom.name}"] = error or "raises nothing"
    return found


def _run(table: str) -> dict[str, str | None]:
    child = subprocess.run(
        [sys.executable, "-m", "tests.simulator.idioms.run", table, "real"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    try:
        results: dict[str, str | None] = json.loads(child.stdout)
    except ValueError:
        return {}
    return results
