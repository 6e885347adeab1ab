"""The pages of the documentation, for the tests that hold them to the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import devlint
from tests.notebooks import cell, notebook

ROOT = Path(devlint.__file__).parents[1]
if not (ROOT / "docs").is_dir():
    pytest.skip("the documentation is not part of this distribution", allow_module_level=True)

PAGES = ("README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOTEBOOK = notebook(
    "%matplotlib inline\nimport torch",
    cell("# Some text", "markdown"),
    "!pip install torch\ndevice = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
    "images = torch.ones(3)\nprint(images.shape)\nimages.to(device)",
)


def blocks(text: str, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(text) if kind == language]


def run(command: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR")}
    variables = {**clean, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True)


def needs_a_simulated_accelerator() -> None:
    import torch

    from tests.simulator.available import need_simulation

    need_simulation()
    if torch.cuda.is_available():
        pytest.skip("a machine with a GPU does not simulate one")


def needs_expressions() -> None:
    """What an audit prints is compared word by word."""
    needs_a_simulated_accelerator()
    if sys.version_info < (3, 11):
        pytest.skip("a frame of this Python knows its line, and not which expression of it is running")
