"""Runs the scripts of fixtures/train on the real device: the counts derived by hand have to hold there too."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.auditor.training import ALONE, TRAIN, expected, observed
from tests.gpu.processes import finish, last_line

__all__ = ["ALONE", "differences"]
SECONDS = 90


def differences(name: str) -> list[str]:
    """What was seen and not expected, and the other way round; empty where all is well."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "record.json"
        audit = [sys.executable, "-m", "devlint", "audit", "--isolated", "--exit-zero", "--output", str(path)]
        try:
            result = finish([*audit, str(TRAIN / f"{name}.py")], SECONDS)
        except subprocess.TimeoutExpired:
            return [f"the script took longer than {SECONDS} seconds"]
        if result.returncode:
            return [f"the script failed: {last_line(result.stderr)}"]
        record = json.loads(path.read_text())
    (process,) = (process for process in record["processes"] if process["role"] == "main")
    seen, _ = expected(name)
    anytime = {line for line, phase, *_ in seen if phase == "any"}
    wanted = {tuple(word for word in key if not str(word).startswith("median=")) for key in seen}
    found = set(observed(name, process, anytime))
    return [
        *(f"missing {key}" for key in sorted(wanted - found, key=str)),
        *(f"unexpected {key}" for key in sorted(found - wanted, key=str)),
    ]
