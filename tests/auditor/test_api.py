"""``devlint.audit()`` around some lines of Python."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import devlint
from tests.auditor.running import run
from tests.simulator.available import simulates

CASES = Path(__file__).parent / "cases" / "blocks.py"

WITHOUT = """
import devlint, torch
try:
    with devlint.audit():
        print("inside")
except devlint.AuditError as error:
    print(error)
print(devlint.audit(simulate=True).__class__.__name__)
"""


def test_there_must_be_an_accelerator(tmp_path) -> None:
    done = run(tmp_path, "-c", WITHOUT)
    assert done.err == ""
    first, second = done.out.splitlines()
    built_for_none = r"this torch \(.*\) was built without support for any accelerator"
    reason = f"({built_for_none}|there is no accelerator here that torch can use)"
    assert re.fullmatch(f"{reason}: use simulate=True to audit with a simulated one", first)
    assert second == "Audit"
    assert not list(tmp_path.iterdir())


@simulates
def test_blocks_on_a_simulated_device() -> None:
    """In a process of their own, since the device cannot be taken away again."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=CASES.parents[3], check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_without_torch_it_is_an_audit_that_is_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # what import makes of a module that is not there
    with pytest.raises(devlint.AuditError, match="torch is not installed"), devlint.audit():
        pass


def test_completion_shows_what_there_is_to_use() -> None:
    assert {"audit", "AuditError", "check_paths", "check_source"} <= set(dir(devlint))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"devices": 0}, "devices: expected a number from 1 to 16, not 0"),
        ({"devices": 10**9}, "devices: expected a number from 1 to 16, not 1000000000"),
        ({"devices": True}, "devices: expected a number from 1 to 16, not True"),
        ({"steps": 0}, "steps: expected a number, 1 or more, not 0"),
        ({"steps": "2"}, "steps: expected a number, 1 or more, not '2'"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], line: str) -> None:
    with pytest.raises(devlint.AuditError, match=f"^{line}$"), devlint.audit(simulate=True, **options):
        pass
