"""The code is formatted, linted and typed; a commit that is not fails here."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import devlint
from tests.absolute_times import LEAST_TIMEOUT, absolute_times, short_timeouts

ROOT = Path(devlint.__file__).parents[1]


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "--no-cache", "."],
        ["ruff", "format", "--no-cache", "--check", "."],
        ["mypy", "--strict", "devlint"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_style(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_module_needs_much_scrolling() -> None:
    lengths = {str(path.relative_to(ROOT)): _lines(path) for path in ROOT.glob("devlint/**/*.py")}
    long = {path: length for path, length in lengths.items() if length > 450}
    assert not long


def test_check_never_imports_torch() -> None:
    """`check` works where torch is not installed, and never pays for importing it."""
    guilty = [
        str(path.relative_to(ROOT))
        for part in ("rules", "flow", "check", "report")
        for path in ROOT.glob(f"devlint/{part}/**/*.py")
        if any(line.split()[:2] in (["import", "torch"], ["from", "torch"]) for line in _code(path))
    ]
    assert not guilty


def test_no_test_asserts_an_absolute_time() -> None:
    """What is to be fast is counted, compared in one run (tests/growth.py), or measured as a benchmark."""
    modules = {path: ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.glob("tests/**/*.py")}
    guilty = [
        f"{path.relative_to(ROOT)}:{row}: {what}"
        for path, module in modules.items()
        if "benchmarks" not in path.parts
        for rows, what in ((absolute_times, "an absolute time"), (short_timeouts, f"less than {LEAST_TIMEOUT} s"))
        for row in rows(module)
    ]
    assert not guilty


@pytest.mark.parametrize(
    "code",
    [
        "begin = time.perf_counter()\nassert time.perf_counter() - begin < 5",
        "begin = monotonic()\nend = monotonic()\nassert LIMIT > end - begin",
        "begin = os.times()\nspent = os.times().user - begin.user\nassert 0 < spent <= 2.5",
        "def spent():\n    return time.process_time() - begin\nassert min(spent() for _ in range(3)) < 2",
        "times = []\nfor begin in begins:\n    times.append(time.time() - begin)\nassert sum(times) / len(times) < 1",
        "assert found.seconds < 6",
        "def check(seconds):\n    begin = perf_counter()\n    assert perf_counter() - begin < seconds",
    ],
)
def test_an_absolute_time_is_seen(code: str) -> None:
    assert [*absolute_times(ast.parse(code))] == [code.count("\n") + 1]


@pytest.mark.parametrize(
    "code",
    [
        "assert time.perf_counter() - begin > 0.5",
        "one = clock() - begin\nassert two.seconds < 3 * one.seconds",
        "assert large.seconds / small.seconds < 9",
        "before = time.time()\nassert before - 10 <= found.start",
        "assert len(found) < 3",
    ],
)
def test_other_comparisons_are_left_alone(code: str) -> None:
    assert [*absolute_times(ast.parse(code))] == []


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _code(path: Path) -> list[str]:
    """The lines of a module, those of its strings left out: docstrings show code that imports torch."""
    import io
    import tokenize

    rows: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type in (tokenize.NAME, tokenize.OP):
            rows[token.start[0]] = rows.get(token.start[0], "") + token.string + " "
    return list(rows.values())
