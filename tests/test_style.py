"""The code is formatted, linted and typed; a commit that is not fails here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import devlint

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
