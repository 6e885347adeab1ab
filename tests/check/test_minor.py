"""What costs little is told where it adds up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from devlint.cli import main

STEP = """\
import torch


def train(net, loader, optimizer, device, shape):
    for x in loader:
        {}
        loss = (net(x) * weights).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
VECTOR = "weights = torch.ones(len(x)).to(device)"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def found(*options: str) -> list[tuple[str, int]]:
    result = CliRunner().invoke(main, ["check", "--no-cache", "--output-format", "json", *options, "."])
    hints = [one for one in json.loads(result.stdout) if one["code"] == "DVL203"]
    return [(Path(one["filename"]).name, 1 + len(one["related"])) for one in hints]


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("torch.ones(len(x))", False),
        ("torch.ones(len(x), 3)", False),
        ("torch.ones((len(x), 3))", False),
        ("torch.ones([])", False),
        ("torch.full((len(x), 3), 0.5)", False),
        ("torch.arange(len(x))", False),
        ("torch.zeros(x.shape[0])", False),
        ("torch.ones(len(x), 3, 3)", True),
        ("torch.ones((len(x), 3, 3))", True),
        ("torch.full((len(x), 3, 3), 0.5)", True),
        ("torch.zeros(size=(len(x), 3, 3))", True),
        ("torch.zeros(x.shape)", True),
        ("torch.zeros(*x.shape)", True),
        ("torch.hann_window(len(x))", True),
    ],
)
def test_a_vector_or_a_matrix_is_for_those_who_ask(made: str, told: bool) -> None:
    """Read by strangers: of 79 such hints 42 were worth a patch, of those about more dimensions 22 of 24."""
    Path("train.py").write_text(STEP.format(f"weights = {made}.to(device)"))
    assert found() == [("train.py", 1)] * told
    if made != "torch.ones([])":
        assert found("--select", "DVL203") == [("train.py", 1)]


@pytest.mark.parametrize(("count", "told"), [(4, []), (5, [("0.py", 5)])])
def test_many_add_up(count: int, told: list[tuple[str, int]]) -> None:
    for number in range(count):
        Path(f"{number}.py").write_text(STEP.format(VECTOR))
    assert found() == told


def test_beside_what_is_dear_they_are_told_and_it_comes_first() -> None:
    Path("a.py").write_text(STEP.format(VECTOR))
    Path("b.py").write_text(STEP.format("weights = torch.ones(len(x), 3, 3).to(device)"))
    assert found() == [("b.py", 2)]
