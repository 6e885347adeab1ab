"""What is said of a branch that nobody turns on is for those who select the rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from devlint.cli import main

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width, masked=False, plain=True):
        super().__init__()
        self.masked = masked
        self.plain = plain

    def forward(self, x):
        {test}
            x = x + torch.ones(x.shape[0], 3, 3).to(x.device)
        return x
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that makes a net, with all switches as they are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("# A project\n")
    (tmp_path / "net.py").write_text(NET.format(test="if self.masked:"))
    (tmp_path / "evaluate.py").write_text("from net import Net\nnet = Net(3)\n")
    return tmp_path


def found(*options: str) -> list[str]:
    result = CliRunner().invoke(main, ["check", "--no-cache", "--output-format", "json", *options, "."])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return [one["code"] for one in json.loads(result.stdout)]


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("if self.masked:", False),
        ("if not self.plain:", False),
        ("if len(x) and self.masked:", False),
        ("if self.masked is True:", False),
        ("if self.plain == False:", False),
        ("if self.plain:\n            pass\n        else:", False),
        ("if self.plain:\n            return x\n        if True:", False),
        ("if not self.masked:", True),
        ("if len(x) or self.masked:", True),
        ("if self.masked:\n            pass\n        else:", True),
        ("if self.training:", True),
        ("if self.masked is not None:", True),
    ],
)
def test_what_the_default_of_a_switch_keeps_away_from_is_for_those_who_ask(root: Path, test: str, told: bool) -> None:
    """Seen in 3d_diffuser_actor and TALENT: a branch for which no caller, and no configuration, asks."""
    (root / "net.py").write_text(NET.format(test=test))
    assert found() == (["DVL203"] if told else [])
    assert found("--select", "DVL203") == ["DVL203"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.py", "from net import Net\nnet = Net(3, masked=True)\n"),
        ("train.py", "from net import Net\nnet = Net(3, masked=args.causal)\n"),
        ("train.py", "from net import Net\nnet = Net(3, True)\n"),
        ("train.py", "from net import Net\nnet = Net(*sizes)\n"),
        ("train.py", "from net import Net\nnet = Net(3)\nnet.masked = True\n"),
        ("train.py", "from net import Net\n\ndef make(masked):\n    return Net(3, masked=masked)\n"),
        ("train.py", "from net import Net\n\ndef make(masked=True):\n    return Net(3, masked=masked)\n"),
        ("train.py", "parser.add_argument('--masked', action='store_true')\n"),
        ("train.py", "from net import Net\nnet = Net(**{'width': 3, 'masked': True})\n"),
        ("train.py", "from lightning.pytorch.cli import LightningCLI\nLightningCLI()\n"),
        ("config.yaml", "masked: true\n"),
        ("run.sh", "python train.py model.masked=True\n"),
        ("run.sh", "python train.py --masked\n"),
        ("broken.py", "masked = (\n"),
    ],
)
def test_who_may_turn_it_counts(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)
    assert found("--ignore", "DVL900") == ["DVL203"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.py", "from net import Net\nnet = Net(3, masked=False)\n"),
        ("train.py", "from net import Net\nnet = Net(3, False)\n"),
        ("train.py", "from net import Net\n\ndef make(masked=False):\n    return Net(3, masked=masked)\n"),
        ("train.py", "from net import Net\nnet = Net(3, masked=config.masked)\n"),
        ("config.yaml", "masked: false\n"),
        ("config.json", '{"masked": false}\n'),
        ("README.md", "# A masked project\n"),
    ],
)
def test_who_leaves_it_as_it_is_turns_nothing(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)
    assert found() == []


def test_an_error_is_told_of(root: Path) -> None:
    text = NET.format(test="if self.masked:\n            x.cuda()\n        if self.masked:")
    (root / "net.py").write_text(text.replace("(self, x)", "(self, x: torch.Tensor)"))
    assert found() == ["DVL102"]
