"""Starts the process that runs the code of a finding, and ends it in time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any

from devlint.prove.claim import Claim
from devlint.prove.modules import Module

PATIENCE = {"search": 240.0, "script": 100.0}
"""Seconds for a search, which has to import the code, too, and for one run of a script."""


class ProcessError(Exception):
    """The process has not said what came of it; the text says why."""


def ask(claim: Claim, module: Module, script: str = "") -> dict[str, Any]:
    """What a search has found, or what a run of the script shows; the replies of the process, the later ones count."""
    with tempfile.TemporaryDirectory(prefix="devlint-prove-", ignore_cleanup_errors=True) as folder:
        request = {
            "claim": claim.written(),
            "module": module.name,
            "path": module.path,
            "script": script,
            "folder": folder,
        }
        return _replies(request, folder, PATIENCE["script" if script else "search"])


def _replies(request: dict[str, Any], folder: str, seconds: float) -> dict[str, Any]:
    process = subprocess.Popen(
        [sys.executable, "-m", "devlint.prove.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=_environment(folder),
        encoding="utf-8",
        errors="replace",
        start_new_session=os.name == "posix",
    )
    late = False
    try:
        output, said = process.communicate(json.dumps(request), seconds)
    except subprocess.TimeoutExpired:
        late = True
        _end(process)
        output, said = process.communicate()
    finally:
        _end(process)
    found: dict[str, Any] = {"late": late, "code": process.returncode}
    for line in output.splitlines():
        if line.endswith("}"):
            found |= json.loads(line)
    if "failed" in found:
        raise ProcessError(found["failed"])
    if len(found) == 2:
        last = (said.strip().splitlines() or [f"it ended with the exit code {process.returncode}"])[-1]
        raise ProcessError("the process took too long to begin" if late else f"the process failed: {last}")
    return found


def _environment(folder: str) -> dict[str, str]:
    """Whatever is written for later, such as caches, goes to a folder that is removed; a real card is not touched."""
    own = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "MPLCONFIGDIR"), folder)
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    return {
        **os.environ,
        **own,
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }


def _end(process: subprocess.Popen[str]) -> None:
    """End the process, and those that it has started."""
    if os.name == "posix":
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
    elif process.poll() is None:
        process.kill()
