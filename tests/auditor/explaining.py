"""Runs scripts that die of a device mismatch on the simulated accelerator, in one process of their own, and explains.

As a program: reads a JSON object from names to code, prints one from names to explanations.  In a script `device` is
the first simulated device, `other` the second one.
"""

from __future__ import annotations

import json
import linecache
import os
import subprocess
import sys
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def explained(scripts: dict[str, str]) -> dict[str, Any]:
    """By name the mismatch of each script, `None` where nothing was explained; places are given as lines of code."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.auditor.explaining"],
        cwd=ROOT,
        env=environment,
        input=json.dumps(scripts),
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run the scripts and print what was found."""
    import devlint.simulator

    devlint.simulator.install(devices=2)
    scripts = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as directory:
        found = {name: _outcome(Path(directory), name, code) for name, code in scripts.items()}
    print(json.dumps(found))  # noqa: T201 -- this is a program


def _outcome(directory: Path, name: str, code: str) -> Any:
    import torch

    from devlint.auditor.explanation import code as source
    from devlint.auditor.explanation.explain import examine
    from devlint.auditor.frames import Frames

    lines_only = name.startswith("3.10 ")
    path = directory / f"{name.replace(' ', '_')}.py"
    path.write_text(PRELUDE + code, encoding="utf-8")
    values = {
        "__name__": "__main__",
        "device": torch.device("cuda", 0),
        "other": torch.device("cuda", 1),
    }
    positions = source.positions_of
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), values)
    except Exception as error:
        if lines_only:  # what Python 3.10 knows of an instruction
            source.positions_of = lambda spot: (None, None, None, None)
        found = examine(error, error.__traceback__, Frames([str(directory)]))
        source.positions_of = positions
        if found is None:
            return {"unexplained": traceback.format_exc()}
        return json.loads(json.dumps(asdict(found.mismatch)), object_hook=_as_line)
    return {"unexplained": "it did not fail"}


def _as_line(value: dict[str, Any]) -> Any:
    """A frame becomes the line of code that it is at."""
    return linecache.getline(value["file"], value["line"]).strip() if "file" in value else value


if __name__ == "__main__":
    main()
