"""Fixtures for all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import stubs

# An example that takes a fifth of a second on a busy machine has not failed for that.
settings.register_profile("devlint", settings.default, deadline=None)
settings.load_profile("devlint")
# A shell starts what runs in the background deaf to interrupts, and a process that starts others makes them so, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Without bytecode each of the processes that tests start, of which there are many, would compile devlint anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Results that an earlier test left behind are for the tests of the cache alone.
os.environ["DEVLINT_NO_CACHE"] = "1"


@pytest.fixture
def stub_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rules that fire on a call's name; see tests/stubs.py."""
    stubs.install(monkeypatch)
    yield
    stubs.forget()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write files given as a dict from path to text or bytes, and stand in their directory."""
    monkeypatch.chdir(tmp_path)

    def write(files: dict[str, str | bytes]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path

    return write
