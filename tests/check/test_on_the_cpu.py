"""Of a project that trains, and never names a device, what raises on an accelerator is for those who ask."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from devlint.cli import main

LOSS = """\
import torch
from torch import nn


class Margin(nn.Module):
    def forward(self, x):
        return super(Margin, self).forward(x) + x.clamp(0, 1) * torch.zeros(2, 3)
"""
TRAIN = """\
from loss import Margin

def train(trainer, batches):
    criterion = Margin()
    for x in batches:
        criterion(x).sum().backward()
        trainer.step()

train(trainer, batches)
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("# A project\n")
    (tmp_path / "loss.py").write_text(LOSS)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def found(*options: str) -> list[str]:
    result = CliRunner().invoke(main, ["check", "--no-cache", "--output-format", "json", *options])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return [one["code"] for one in json.loads(result.stdout)]


def test_it_stays_on_the_cpu(root: Path) -> None:
    """Seen in Kats, whose networks are trained where they are made, in another file."""
    assert found(".") == found("loss.py") == []
    assert found("--select", "DVL1", ".") == ["DVL103"]


@pytest.mark.parametrize("more", ["model.to(place)\n", "GPU = 'cuda'\n", "from lightning import Trainer\n"])
def test_a_file_may_name_a_place(root: Path, more: str) -> None:
    (root / "serve.py").write_text(more)
    assert found(".") == ["DVL103"]


def test_what_tests_say_is_for_tests(root: Path) -> None:
    (root / "test_loss.py").write_text("DEVICES = ['cpu', 'cuda']\n")
    assert found(".") == []


def test_who_trains_nothing_leaves_it_to_others(root: Path) -> None:
    (root / "train.py").write_text("from loss import Margin\nnet = Margin()\n")
    assert found(".") == ["DVL103"]
