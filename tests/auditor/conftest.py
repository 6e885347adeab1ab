"""Fixtures for the tests of the auditor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.judging import TRAIN
from tests.auditor.script import Script


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path / "train.py", TRAIN)
