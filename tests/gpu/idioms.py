"""Runs the simulator's idioms on the real device: what they expect of a CUDA machine has to be so."""

from __future__ import annotations

import importlib
import json
import sys

import torch

from tests.gpu.processes import finish, last_line
from tests.simulator.idioms import TABLES

__all__ = ["TABLES", "differences"]
SECONDS = 100
_ANOTHER = "invalid device ordinal"
"""What torch says of a second device where there is only one."""


def differences(table: str) -> dict[str, str]:
    """What the snippets of a table did that was not expected of them, by name; empty where all is well."""
    found: dict[str, str] = {}
    idioms = importlib.import_module(f"tests.simulator.idioms.{table}").idiom.idioms
    raised = _run(table, len(idioms))
    for idiom in idioms:
        error = raised.get(idiom.name, "was not run") or ""
        if _ANOTHER in error and torch.cuda.device_count() < 2:
            continue
        if not (idiom.raises in error if idiom.raises else not error):
            found[idiom.name] = error or "raises nothing"
    return found


def _run(table: str, number: int) -> dict[str, str | None]:
    results: dict[str, str | None] = {}
    while True:
        command = [sys.executable, "-m", "tests.simulator.idioms.run", table, "real", str(len(results))]
        child = finish(command, SECONDS)
        try:
            found: dict[str, str | None] = json.loads(child.stdout)
        except ValueError:
            raise RuntimeError(f"the snippets did not run: {last_line(child.stderr)}") from None
        results.update(found)
        if not found or len(results) >= number:
            return results
