"""Runs the scripts of fixtures/train on the real device: the counts derived by hand have to hold there too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.auditor.training import ALONE, TRAIN, expected, observed


def differences(name: str) -> list[str]:
    """What was seen and not expected, and the other way round; empty where all is well."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "record.json"
        audit = [sys.executable, "-m", "devlint", "audit", "--isolated", "--exit-zero", "--output", str(path)]
        result = subprocess.run(
            [*audit, str(TRAIN / f"{name}.py")],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=False,
        )
        if result.returncode:
            return [f"the script failed: {result.stderr.strip().splitlines()[-1:]}"]
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


def compare_all() -> dict[str, list[str]]:
    """The differences of every script that runs in one process."""
    return {name: differences(name) for name in ALONE}
