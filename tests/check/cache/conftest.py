"""For the tests of the cache: runs that use it, and which files they check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from devlint.check.analysis import Analyzer
from devlint.cli import main

Run = Callable[..., Result]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are really checked, in their order; to be cleared between runs."""
    files: list[str] = []
    original = Analyzer.considered

    def recording(analyzer, data):
        files.append(analyzer.filename)
        return original(analyzer, data)

    monkeypatch.setattr(Analyzer, "considered", recording)
    return files


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``devlint check`` with a cache, in a directory of its own; nothing may go wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DEVLINT_NO_CACHE", raising=False)

    def check(*arguments: str, code: int | None = None, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(main, ["check", *arguments], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        if code is not None:
            assert result.exit_code == code, result.output
        return result

    return check
