"""Processes that a simulated one starts: which of them have its devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from devlint.simulator import children

COUNT = "import torch; print(torch.cuda.device_count())"


@pytest.fixture
def _followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment of a simulated process, which has a `sitecustomize` of its own."""
    (tmp_path / "sitecustomize.py").write_text("print('own')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(children.VARIABLE, "")
    monkeypatch.setattr(children, "when_imported", lambda name, callback: None)
    children.follow(2)
    children.follow(3)


def said(*arguments: str, **environment: str) -> str:
    """What a Python process says, which is started as a test would start it."""
    run = [sys.executable, *arguments]
    done = subprocess.run(run, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.usefixtures("_followed")
def test_a_started_process_has_the_devices() -> None:
    assert said("-c", COUNT) == "own\n3\n"
    again = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {COUNT!r}], check=True)"
    assert said("-c", again) == "own\nown\n3\n"
    assert os.environ["PYTHONPATH"].count("startup") == 1


@pytest.mark.usefixtures("_followed")
def test_a_process_of_another_python_has_none() -> None:
    assert said("-c", COUNT, **{children.VARIABLE: "3 /usr/another"}) == "own\n0\n"


@pytest.mark.usefixtures("_followed")
def test_what_cannot_be_simulated_is_a_warning() -> None:
    went_on = "import torch; print('went on')"
    text = said("-c", went_on, DEVLINT_SIMULATED_MEMORY="much")
    assert "went on" in text
    assert (
        "warning: devlint does not simulate devices in a child process: DEVLINT_SIMULATED_MEMORY: 'much' is no" in text
    )


@pytest.mark.usefixtures("_followed")
def test_a_process_that_is_to_have_none(tmp_path: Path) -> None:
    environment = children.unfollowed(os.environ)
    assert children.VARIABLE not in environment
    assert environment["PYTHONPATH"] == str(tmp_path)
    assert "PYTHONPATH" not in children.unfollowed({"PYTHONPATH": "", "HOME": "/"})
