"""docs/models.md, walked through: its files are written, its commands run, and what it shows is what is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import devlint

pytest.importorskip("torch")
ROOT = Path(devlint.__file__).parents[1]
TEXT = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
FILES = {
    "my_project/utils.py": "def to_gpu",
    "my_project/wrap.py": "class Ensemble",
    "my_project/train.py": "def evaluate",
    "company_tools.py": "class Base",
    "pyproject.toml": 'models = ["devlint_models.toml"]',
    "acme/wrap.py": "class Placed",
    "acme_models.toml": "[acme.wrap.Placed]",
    "devlint_models.toml": "[my_project.wrap.Ensemble]",
}


def block(language: str, part: str) -> str:
    """The first block of the page that has a text in it."""
    return next(text for kind, text in BLOCKS if kind == language and part in text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files of the page."""
    for name, part in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(block("python" if name.endswith(".py") else "toml", part), encoding="utf-8")
    return tmp_path


def run(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "devlint", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_rows_make_devlint_find_what_it_could_not_see(project: Path) -> None:
    (project / "company_tools.py").unlink()
    assert run(project, "check", "my_project").strip() == block("text", "error[DVL101]").strip()
    (project / "devlint_models.toml").write_text("", encoding="utf-8")
    assert "No problems" in run(project, "check", "my_project")


def test_a_word_that_is_none(project: Path) -> None:
    rows = project / "devlint_models.toml"
    rows.write_text(rows.read_text(encoding="utf-8").replace("result", "resutl", 1), encoding="utf-8")
    said = run(project, "check", "my_project").replace(f"{project}{os.sep}", "")
    assert said.strip() == block("text", "resutl").strip()


@pytest.mark.parametrize("command", ["models check devlint", "models check acme", "models infer"])
def test_commands_print_what_is_shown(project: Path, command: str) -> None:
    first, _, shown = block("console", f"$ devlint {command}").partition("\n")
    assert run(project, *first.split()[2:]) == shown


def test_a_row_that_is_wrong(project: Path) -> None:
    rows = project / "devlint_models.toml"
    rows.write_text(rows.read_text(encoding="utf-8").replace('"accelerator"', '"cpu"'), encoding="utf-8")
    assert run(project, "models", "check", rows.name).splitlines()[0] == block("text", "stated place `cpu`").strip()
