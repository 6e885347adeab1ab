"""Suites like those of users."""

from __future__ import annotations

from pathlib import Path

import pytest

import devlint


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Where the plugins are named, so that it matters not how devlint is installed here."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(devlint.__file__).parents[1]))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini("[pytest]\npythonpath = .\naddopts = -p devlint.testing --strict-markers -p no:cacheprovider\n")
    return pytester
