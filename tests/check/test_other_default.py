"""Projects that change the default device: what rests on the CPU being the default is for those who select the rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from devlint.cli import main

MIXED = """\
import torch
from torch import nn


def run():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(8, 2).to(device)
    return model(torch.randn(4, 8))
"""
BASE = """\
import torch


def set_up(device):
    torch.set_default_device(device)
"""
NOISE = """\
import torch
from torch import nn


class Noise(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.scale * torch.randn(2, 3)
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("# A project\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_run.py").write_text(MIXED)
    (tmp_path / "run.py").write_text(MIXED)
    return tmp_path


def found(*options: str, code: str = "DVL101") -> list[str]:
    result = CliRunner().invoke(main, ["check", "--no-cache", "--output-format", "json", *options, "."])
    return [Path(one["filename"]).name for one in json.loads(result.stdout) if one["code"] == code]


def test_a_test_may_change_the_default_for_other_tests_alone(root: Path) -> None:
    """Seen in auto_LiRPA: the base of all test cases does."""
    assert found() == ["run.py"]
    (root / "tests" / "testcase.py").write_text(BASE)
    assert found() == ["run.py"]
    assert found("--extend-select", "DVL101") == ["run.py", "test_run.py"]


def test_a_program_may_change_it_for_all(root: Path) -> None:
    (root / "set_up.py").write_text(BASE)
    assert found() == []
    (root / "set_up.py").write_text(BASE.replace("(device)\n", '("cpu")\n').replace("set_up(device)", "set_up()"))
    assert found() == ["run.py"]


def test_what_was_put_on_the_cpu_is_there_whatever_the_default(root: Path) -> None:
    """Seen in dllm, where a copy fetched to the host meets what is on the device."""
    (root / "set_up.py").write_text(BASE)
    (root / "run.py").write_text(MIXED.replace("torch.randn(4, 8)", "torch.randn(4, 8).to(device).cpu()"))
    assert found() == ["run.py"]


@pytest.mark.parametrize(
    ("context", "hinted"),
    [
        ("torch.device(self.device)", False),
        ('torch.no_grad(), torch.device("cuda:1")', False),
        ('torch.device("meta")', True),
        ('torch.device("cpu")', True),
        ("torch.cuda.device(self.device)", True),
    ],
)
def test_a_block_may_change_it_for_what_is_only_hinted_at(root: Path, context: str, hinted: bool) -> None:
    """Seen in nnssl, whose trainer augments each batch in such a block; of a function that asks itself, all is told."""
    (root / "noise.py").write_text(NOISE)
    block = "import torch\n\nfrom noise import Noise\n\n\nclass Trainer:\n    net = Noise()\n\n    def step(self, x):\n"
    block += f"        with {context}:\n            self.net(x)\n\n\nTrainer().step(x)\n"
    (root / "trainer.py").write_text(block)
    assert found() == ["run.py"]
    assert found("--extend-select", "DVL103", code="DVL103") == ["noise.py"]
    assert found(code="DVL103") == ["noise.py"] * hinted
