"""Scripts that change the default device for the files that they import."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from devlint.cli import main
from devlint.config.default_device import importers, is_imported

DATA = """\
import torch

def rays(pose, size):
    pose = pose.to("cuda")
    return torch.linspace(0, 1, size) @ pose.clamp(0, 1)
"""
SET = "torch.set_default_tensor_type('torch.cuda.FloatTensor')"


def project(root: Path, script: str, where: str = "") -> Path:
    (root / "README.md").write_text("# Rays\n")
    (root / "models").mkdir()
    (root / "models/__init__.py").touch()
    (root / "models/data.py").write_text(DATA)
    (root / "helpers.py").write_text(DATA)
    (root / where / "train.py").write_text(script)
    return root


def found(*options: str) -> list[str]:
    result = CliRunner().invoke(
        main, ["check", "--no-cache", "--select", "DVL101", "--output-format", "json", *options]
    )
    return sorted(Path(one["filename"]).name for one in json.loads(result.stdout))


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (f"import torch\nfrom models.data import rays\n{SET}\n", ["helpers.py"]),
        (f"import torch\nimport os, models.data as data, helpers\n{SET}\n", []),
        ("import torch\nfrom models import data\ntorch.set_default_device('cuda')\n", ["helpers.py"]),
        # another type of numbers, and the CPU itself
        ("import torch\nfrom models import data\ntorch.set_default_tensor_type(torch.DoubleTensor)\n", None),
        ("import torch\nfrom models import data\ntorch.set_default_device('cpu')\n", None),
        (f"import torch\nfrom other import data\n{SET}\n", None),
    ],
)
def test_what_a_script_imports_makes_tensors_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: list[str] | None
) -> None:
    """Seen in NeuS and yolact."""
    monkeypatch.chdir(project(tmp_path, script))
    everything = ["data.py", "helpers.py"]
    assert found(".") == (everything if told is None else told)
    # one file by itself is judged as among the others
    assert found("models") == [name for name in (everything if told is None else told) if name == "data.py"]
    assert found("--isolated", ".") == everything


def test_where_nothing_says_that_a_project_begins_only_scripts_beside_a_file_count(tmp_path: Path) -> None:
    root = project(tmp_path, f"from models import data\n{SET}\n")
    assert is_imported(str(root / "models/data.py"), importers(str(root / "models"), {}))
    (root / "README.md").unlink()
    assert importers(str(root / "models"), {}) == ()
    assert importers(str(root), {}) == ((str(root), frozenset({"models"})),)


def test_a_file_of_a_package_is_no_script(tmp_path: Path) -> None:
    root = project(tmp_path, f"from models import data\n{SET}\n", "models")
    assert importers(str(root), {}) == importers(str(root / "models"), {}) == ()
