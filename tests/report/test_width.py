"""A report for a terminal keeps to its columns; one for a file or a pipe is not cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.check.analysis import check_source
from devlint.report.base import Report
from devlint.report.formats import render
from devlint.report.terminal import cells
from tests.report.test_rule import on_a_terminal

CODE = f"""\
import torch
from torch.utils.data import DataLoader


def train(model, dataset):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(dataset, batch_size=64, num_workers=4, shuffle=True, drop_last={"not " * 40}False)
    for images, labels in loader:
        model({"1 + " * 60}images.to(device), labels.to(device)).backward()
"""


def lines(width: int | None) -> list[str]:
    found = check_source(CODE, "train.py")
    assert found
    report = Report(found, 1, contents={"train.py": CODE.encode()}, width=width)
    return "\n".join(render(report, "text")).splitlines()


@pytest.mark.parametrize("width", [50, 60, 80, 100, 139, 160])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    shown = lines(width)
    assert max(map(cells, shown)) <= width
    words = " ".join(" ".join(shown).replace("|", " ").split())
    for text in (
        "`pin_memory` is not set",
        "are copied to `device` from pageable memory",
        "then overlaps the copy with",
    ):
        assert text in words, "all that is said is still said"


def test_what_is_underlined_is_in_view() -> None:
    for width in (50, 80, 120):
        shown = lines(width)
        (row,) = [number for number, line in enumerate(shown) if "DataLoader(" in line and line.startswith("7 |")]
        at = shown[row].index("DataLoader(")
        assert shown[row + 1][at] == "^"


def test_without_a_terminal_nothing_is_wrapped() -> None:
    assert max(map(len, lines(None))) > 140


def test_the_command_asks_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CODE)
    narrow = on_a_terminal(60, "check", "--isolated", "--exit-zero", str(tmp_path / "train.py")).splitlines()
    assert max(len(line) for line in narrow if "-->" not in line) <= 60
