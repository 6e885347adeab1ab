"""That no input breaks devlint, in small: ``python -m tests.accuracy.robustness`` is the long version."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.accuracy.robustness import library, mutants, realistic
from tests.accuracy.robustness.measure import Cost, cost, steepness
from tests.accuracy.robustness.shapes import SHAPES
from tests.accuracy.robustness.summary import STEEPEST
from tests.accuracy.robustness.trial import Tally, analysed, attempt
from tests.growth import QUADRATIC, Work, growth

ODD = {
    "findings in one list": 2_000,
    "findings in one dict": 2_000,
    "findings in one line": 2_000,
    "names, each moved": 1_000,
    "names, moved to one device": 1_000,
    "branches, each on a name": 1_000,
    "buffers of one module": 1_000,
    "modules": 600,
    "loaders": 600,
    "nots": 2_500,
    "subclasses of each other": 600,
}
"""Shapes that once took a minute or a gigabyte, by a size at which they did."""


def test_mutants() -> None:
    tally = mutants.tried(range(200), seed=7)
    assert tally.wrong == []
    assert tally.counts["texts"] == 200
    # which fixtures there are changes which mutants come of a seed
    assert tally.counts["parse"] > 20
    assert all(tally.counts[kind] for kind in ("findings", "safe fixes", "all fixes", "silenced"))


def test_a_mutant_is_the_same_each_time_and_not_the_fixture() -> None:
    texts = {mutants.mutant(number, seed=7)[1] for number in range(50)}
    assert texts == {mutants.mutant(number, seed=7)[1] for number in range(50)}
    assert len(texts) == 50
    originals = {path.read_text(encoding="utf-8") for path in mutants.fixtures()}
    assert len(texts - originals) > 45


def test_what_goes_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> list[object]:
        raise ZeroDivisionError("of some kind")

    tally = Tally()
    monkeypatch.setattr("tests.accuracy.robustness.trial.check_source", lambda *_: [])
    attempt(tally, "a.py", "x = (", thorough=False)
    monkeypatch.setattr("tests.accuracy.robustness.trial.check_source", failing)
    attempt(tally, "b.py", "x = 1", thorough=False)
    assert tally.wrong[0] == "a.py: Python does not read it, devlint says otherwise"
    assert re.fullmatch(r"b\.py: ZeroDivisionError: of some kind \(test_robustness\.py:\d+\)", tally.wrong[1])


def test_a_part_of_pythons_own_library() -> None:
    paths = library.files()
    assert len(paths) > 300
    tally = library.tried(paths[:: len(paths) // 15])
    assert tally.wrong == []
    assert tally.counts["lines"] > 2_000


def test_what_is_read_as_if_it_were_about_torch() -> None:
    text = "import os\nfrom re import match\nclass A:\n    async def f(self):\n        return os.cuda()\n"
    assert library.about_torch(text) == (
        "import torch as os\nfrom torch import match\nclass A:  # cuda\n    async def f(self):  # cuda\n"
        "        return os.cuda()\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), ODD.items(), ids=ODD.keys())
def test_odd_shapes(name: str, size: int) -> None:
    found = cost(SHAPES[name], size)
    assert found.failure == ""
    assert found.peak_mib - found.before_mib < 370
    assert found.findings


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), ODD.items(), ids=ODD.keys())
def test_odd_shapes_take_time_in_proportion(name: str, size: int) -> None:
    """What Python gives up as too deep costs nothing."""

    def work(size: int) -> Work:
        text = SHAPES[name](size)
        return lambda: analysed(text)

    assert growth(work, size // 8, size // 2) < QUADRATIC


@pytest.mark.parametrize("name", sorted(SHAPES.keys() - ODD.keys()))
def test_other_shapes(name: str) -> None:
    assert cost(SHAPES[name], 300).failure == ""


def test_time_grows_with_the_lines() -> None:
    costs = [cost(realistic.file_of, lines) for lines in (1_000, 8_000)]
    assert [found.failure for found in costs] == ["", ""]
    assert steepness([Cost(found.lines, found.lines, found.seconds) for found in costs]) < STEEPEST


def test_a_project_has_the_lines_asked_for(tmp_path: Path) -> None:
    assert realistic.project(tmp_path, 3_000, longest=400) == len(list(tmp_path.rglob("*.py"))) > 3
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in tmp_path.rglob("*.py"))
    assert 3_000 <= lines < 5_000


def test_the_growth_is_a_power_of_the_size() -> None:
    def costs(power: float) -> list[Cost]:
        return [Cost(size, seconds=size**power) for size in (10, 1000)]

    assert steepness(costs(2)) == pytest.approx(2)
    assert steepness(costs(1)) == pytest.approx(1)
    assert steepness([Cost(10, seconds=0.001), Cost(1000, seconds=0.4)]) == 1.0


def test_a_measurement_that_dies_is_told() -> None:
    def die(_: int) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    assert cost(die, 1).failure == "died (SIGKILL)"
