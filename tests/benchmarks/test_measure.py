"""What is measured is what was spent: by the command itself and by its children."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.check_speed import AST, DEVLINT, LIBCST, as_json, ratio, table
from tests.benchmarks.measure import CommandFailedError, Cost, Summary, cost, interleaved
from tests.benchmarks.parse_all import ast_parser, parse_all

if TYPE_CHECKING:
    from pathlib import Path

BURN = "import time\nwhile time.process_time() < 0.2: pass\n"
needs_wait4 = pytest.mark.skipif(not hasattr(os, "wait4"), reason="this platform does not say what a child cost")


def summary(*seconds: float, peak: int = 2**20) -> Summary:
    return Summary(tuple(Cost(one, peak) for one in seconds))


@needs_wait4
def test_the_cpu_time_of_a_child_counts(tmp_path: Path) -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}], check=True)"
    measured = cost([sys.executable, "-c", child], tmp_path)
    assert measured.cpu_seconds >= 0.2
    assert measured.peak_bytes > 2**20


@needs_wait4
def test_a_command_that_fails_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match=r"exit code 1 from .*\nno such rule"):
        cost([sys.executable, "-c", "raise SystemExit('no such rule')"], tmp_path)


@needs_wait4
def test_commands_take_turns(tmp_path: Path) -> None:
    append = "import sys; open('order', 'a').write(sys.argv[1])"
    commands = {name: [sys.executable, "-c", append, name] for name in "ab"}
    results = interleaved(commands, tmp_path, rounds=2)
    assert (tmp_path / "order").read_text() == "abab"
    assert [len(result.runs) for result in results.values()] == [2, 2]


def test_the_median_counts_and_the_spread_is_shown() -> None:
    result = {AST: summary(1.0, 1.0, 9.0), LIBCST: summary(10.0), DEVLINT: summary(4.0, 6.0, 5.0)}
    assert ratio(result) == 0.5
    assert "| devlint check -j 1, cold | 5.00 | 4.00 to 6.00 | 5.00 | 0.50 | 1 |" in table("timm", result)
    assert '"cpu_seconds": 5.0' in as_json({"timm": result})


def test_a_file_that_does_not_parse_is_named_and_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def broken(:\n")
    (tmp_path / "b.py").write_text("fine = 1\n")
    assert parse_all(ast_parser(), tmp_path) == [tmp_path / "a.py"]
