"""Runs case files on the simulated backend, in a process of its own since the backend cannot be taken away again.

A case file is a module in a folder of the tests whose functions `case_*` fail by raising; `DEVICES` is the number of
virtual devices that it needs.  As a program: `child.py DEVICES FOLDER NAME...` prints the traceback of each case, or
null, as JSON.
"""

from __future__ import annotations

import ast
import functools
import importlib
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = "tests/simulator/cases"


def files(folder: str = CASES) -> dict[str, int]:
    """The names of the case files in a folder, and the number of devices each needs."""
    found = {}
    for path in sorted((ROOT / folder).glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DEVICES":
                found[path.stem] = ast.literal_eval(node.value)
    return found


def names(stem: str, folder: str = CASES) -> list[str]:
    """The cases in a file."""
    tree = ast.parse((ROOT / folder / f"{stem}.py").read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("case_")]


@functools.cache
def outcomes(devices: int, folder: str = CASES) -> dict[str, str | None]:
    """The traceback of each case that needs so many devices, by `file.case`; `None` for those that passed."""
    from tests.simulator.available import need_simulation

    need_simulation()
    chosen = [stem for stem, needed in files(folder).items() if needed == devices]
    done = ran("tests.simulator.child", str(devices), folder, *chosen)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def ran(*arguments: str, seconds: int = 180) -> subprocess.CompletedProcess[str]:
    """A module of the repository, which has run in a process of its own, in so many seconds at the most."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def main(devices: int, folder: str, stems: list[str]) -> None:
    """Run the cases of the files and print what became of them."""
    import torch

    import devlint.simulator

    devlint.simulator.install(devices)
    results: dict[str, str | None] = {}
    for stem in stems:
        module = importlib.import_module(f"{folder.replace('/', '.')}.{stem}")
        for name in names(stem, folder):
            torch.manual_seed(0)
            try:
                getattr(module, name)()
            except Exception:
                results[f"{stem}.{name}"] = traceback.format_exc()
            else:
                results[f"{stem}.{name}"] = None
    print("\n" + json.dumps(results))  # noqa: T201  # the program's output


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
