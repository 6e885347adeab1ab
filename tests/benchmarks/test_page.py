"""The benchmark: what is kept of it, what becomes of that, and how tools are run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.benchmarks import __main__ as command
from tests.benchmarks import corpora, kept, page, tools
from tests.benchmarks.kept import ALONE, AST, CHANGED, COLD, COMPILED, LIBCST, WARM, Row
from tests.benchmarks.measure import Cost


@pytest.fixture(autouse=True)
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "FIGURES", tmp_path / "figures")


def row(
    tool: str, cpu: float, wall: float = 0.0, yardstick: float = 1.0, corpus: str = "timm 1.0", lines: int = 5
) -> Row:
    return Row(corpus, 1, lines, tool, "r", cpu, wall or cpu, 2**20, 1, yardstick, "2026-01-01", "m")


def test_a_part_that_is_measured_again_takes_the_place_of_the_old() -> None:
    order = [AST, COLD, "pyrefly"]
    kept.save("timm", [row("pyrefly", 9.0), row(AST, 1.0)], order)
    kept.save("timm", [row(COLD, 5.0), row(AST, 1.1)], order)
    assert [(one.tool, one.cpu_seconds) for one in kept.load("timm")] == [(AST, 1.1), (COLD, 5.0), ("pyrefly", 9.0)]
    assert kept.load("small") == []


def test_ratios_go_by_the_yardstick_of_each_run() -> None:
    # the peer was measured on a day that was twice as slow
    kept.save("timm", [row(AST, 1.0), row(LIBCST, 10.0), row(COLD, 4.0, 9.0), row(ALONE.format(4), 5.0, 1.25)], [])
    kept.save("timm", [row("TorchFix", 400.0, yardstick=2.0), row(WARM, 0.2)], [])
    text = page.tables()
    for line in (
        "| timm: devlint, cold, times `libcst.parse_module` |  | 0.40 | at most 0.45 |",
        "| timm: TorchFix, times devlint, cold |  | 50.00 | at least 40 |",
        "| timm: CPU s of 1 process, times wall s of 4 processes with a processor each |  | 3.20 | at least 2.8 |",
        "| timm: devlint, nothing changed, wall s |  | 0.20 | at most 0.35 |",
        "| TorchFix | 400 | 400 | 1 | 200 | 2026-01-01, r, 1 run |",
    ):
        assert line in text.splitlines()
    assert "pyrefly" not in text


def test_what_is_wanted_is_held_against_the_compiled_devlint() -> None:
    kept.save(
        "timm", [row(AST, 1.0), row(LIBCST, 10.0), row(COLD, 5.0), row(WARM, 0.2), row(ALONE.format(4), 5.0, 2)], []
    )
    # on a day that was twice as slow
    measured = [row(COMPILED.format(COLD), 6.0, yardstick=2.0), row(COMPILED.format(CHANGED), 0.7, yardstick=2.0)]
    kept.save("timm", [*measured, row(COMPILED.format(ALONE.format(4)), 7.0, 2.5, yardstick=2.0)], [])
    kept.save("small", [row(COLD, 0.3), row(COMPILED.format(COLD), 0.25)], [])
    text = page.tables()
    for line in (
        "| timm: devlint, cold, times `libcst.parse_module` | 0.30 | 0.50 | at most 0.45 |",
        "| timm: CPU s of 1 process, times wall s of 4 processes with a processor each | 2.40 | 2.50 | at least 2.8 |",
        "| timm: devlint, nothing changed, wall s |  | 0.20 | at most 0.35 |",
        "| timm: devlint, one file changed, wall s | 0.70 |  |  |",
        "| two lines: devlint, cold, wall s | 0.25 | 0.30 | at most 0.35 |",
        "| compiled devlint, cold, 1 process | 6.00 | 6.00 | 1 | 3.00 | 2026-01-01, r, 1 run |",
    ):
        assert line in text.splitlines()


def test_the_curve_tells_how_evenly_time_grows() -> None:
    def points(tool: str, *seconds: float) -> list[kept.Row]:
        sizes = zip((10_000, 30_000, 100_000), seconds, strict=True)
        return [row(tool, cpu, corpus=str(lines), lines=lines) for lines, cpu in sizes]

    kept.save("curve", points(COLD, 1.0, 2.0, 9.0), [])
    assert "| 10,000 |  |  | 1.00 |  | 1 |  |  |  |" in page.tables()
    assert "| 30,000 |  |  | 2.00 | 50 | 1 |  |  |  |" in page.tables()
    assert "| 100,000 |  |  | 9.00 | 100 | 1 |  |  |  |" in page.tables()
    promise = "| time for one more line: the most of the curve, times the least |"
    assert f"{promise}  | 2.00 | less than 1.5 |" in page.tables()
    # what a run begins with costs the same everywhere, and each devlint has a curve of its own
    kept.save("curve", points(COMPILED.format(COLD), 5.0, 5.4, 7.85), [])
    assert "| 30,000 |  |  | 2.00 | 50 | 1 | 5.40 | 20 | 1 |" in page.tables()
    assert f"{promise} 1.75 | 2.00 | less than 1.5 |" in page.tables()


def test_nothing_measured_is_no_table() -> None:
    assert page.tables().strip() == ""


def test_tools_run_where_they_are_installed_and_with_one_process(tmp_path: Path) -> None:
    read = corpora.Corpus("timm", tmp_path / "timm", 1, 1)
    names = [tool.name for tool in tools.tools(tmp_path, 4)]
    assert len(names) == len(set(names)) == 17
    for tool in tools.tools(tmp_path, 1):
        line = " ".join(tool.command(read, tmp_path))
        assert str(read.path) in line
        if tool.group in tools.PEERS:
            assert line.startswith(str(tmp_path / f"{tool.group}-{tools.PEERS[tool.group]}"))
            assert "-j 1" in line or "RAYON_NUM_THREADS" in tool.variables
        assert ("--no-cache" in line) == ("cold" in tool.name)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a process does not begin as a copy")
def test_the_shares_of_processes(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"f{number}.py").write_text(corpora.TWO_LINES, encoding="utf-8")
    read = corpora.Corpus("x", tmp_path, 6, 12)
    shares, _ = (tool for tool in tools.tools(tmp_path, 2) if isinstance(tool, tools.Shares))
    cost = shares.cost(read, tmp_path)
    # what went by is of two of the three processes
    assert 0 < cost.cpu_seconds / 2 < cost.seconds < cost.cpu_seconds


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="this platform does not say what a child cost")
def test_a_measurement_from_beginning_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "argv", ["x", "--only", "small", "--tools", "devlint", "--rounds", "1", "--cache", str(tmp_path / "kept")]
    )
    assert command.main() == 0
    found = {one.tool: one for one in kept.load("small")}
    assert list(found) == [AST, COLD, WARM]
    assert found[WARM].cpu_seconds < found[COLD].cpu_seconds
    assert found[AST].yardstick == found[AST].cpu_seconds == found[COLD].yardstick
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["bytecode"]


def test_a_change_is_made_in_the_largest_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("a.py", 5), ("b.py", 9), ("__init__.py", 99)):
        (tmp_path / name).write_text("#" * size, encoding="utf-8")
    read = corpora.Corpus("x", tmp_path, 3, 3)
    changed, compiled = (tool for tool in tools.tools(tmp_path, 1) if tool.name.endswith(CHANGED))
    runs = 0

    def count(tool: tools.Tool, *_: object) -> Cost:
        nonlocal runs
        runs += 1
        return Cost(0.0, 0)

    monkeypatch.setattr(tools.Tool, "cost", count)
    assert changed.each is not None
    assert changed.each is compiled.each
    changed.each(changed, read, tmp_path)
    assert (tmp_path / "b.py").read_text(encoding="utf-8") == "#########" + "# one more line\n"
    # what the others changed is in the cache before
    assert runs == 2
