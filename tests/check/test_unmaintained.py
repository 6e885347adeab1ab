"""Names that a later torch takes away, and hints, are no news to a project that says it has ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from devlint.cli import main

STEP = """\
import torch


def load(net, path):
    net.load_state_dict(torch.load(path))


with torch.cuda.amp.autocast():
    load(torch.nn.Linear(2, 2), "net.pt")
"""


def found(folder: Path, *options: str) -> list[str]:
    result = CliRunner().invoke(main, ["check", "--no-cache", "--output-format", "json", *options, str(folder)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return [one["code"] for one in json.loads(result.stdout)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "fastvit").mkdir()
    (tmp_path / "fastvit/step.py").write_text(STEP)
    (tmp_path / "fastvit/requirements.txt").write_text("torch==2.6.0\n")
    return tmp_path / "fastvit"


@pytest.mark.parametrize(
    "readme",
    [
        "# Fast ViT\n\n⚠️ **As of 5/15/2025, this repository is no longer actively maintained.**\n",
        "# THIS PROJECT IS ARCHIVED\nNobody will provide maintenance.\n",
        "# Vision on phones\n\n> [!IMPORTANT]\n> fastvit is no longer under active development.\n",
        "# Fast ViT\n\n- Fast ViT is officially deprecated and will no longer be maintained.\n",
        "# Fast ViT\n\n## News\n- [2025/09/05] We will no longer maintain this codebase.\n",
        "Fast ViT\n========\nThis Python package\nhas been discontinued.\n",
    ],
)
def test_hints_and_deprecated_names_in_a_project_that_has_ended_are_for_who_asks(root: Path, readme: str) -> None:
    assert found(root) == ["DVL604", "DVL701"]
    (root / "README.md").write_text(readme, encoding="utf-8")
    assert found(root) == []
    assert found(root, "--extend-select", "DVL701") == ["DVL701"]
    (root / "step.py").write_text(STEP + "x = torch.ones(3)\nx.cuda()\n")
    assert found(root) == ["DVL102"]


@pytest.mark.parametrize(
    "readme",
    [
        "# Fast ViT\n\nThe function `fast()` of this package has been deprecated in favour of `faster()`.\n",
        "# Fast ViT\n\nPython 3.8 is no longer supported.\n",
        "# Fast ViT\n\nSome old features are no longer maintained. The `v1` branch is archived.\n",
        "# Fast ViT\n\nThis repository is actively maintained. SlowViT, its predecessor, is deprecated.\n",
        "# Fast ViT\n\n" + "It is fast. " * 400 + "This repository is archived.\n",
    ],
)
def test_a_part_that_has_ended_is_not_the_project(root: Path, readme: str) -> None:
    (root / "README.md").write_text(readme, encoding="utf-8")
    assert found(root) == ["DVL604", "DVL701"]
