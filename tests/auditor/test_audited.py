"""Every code that an audit reports, on scripts in simulation: found beside the line, and not in the repaired twin.

A script is `fixtures/audit/CODE_name/bad*.py` or `good*.py`; its expectations stand as in `fixtures/rules`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from devlint.rules.registry import registry
from tests.simulator.available import simulates
from tests.test_fixtures import Expected, differences, expected, name_of

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "fixtures" / "audit").glob("*/*.py"))
pytestmark = simulates


@pytest.fixture(scope="module")
def found() -> dict[str, list[dict[str, Any]]]:
    """What was found in each script; all run in one process, one after the other."""
    command = [sys.executable, "-m", "tests.auditor.audited", *map(str, SCRIPTS)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    result: dict[str, list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_a_script_gets_the_findings_it_names(script: Path, found: dict[str, list[dict[str, Any]]]) -> None:
    findings = found[str(script)]
    elsewhere = [finding for finding in findings if finding["filename"] != str(script)]
    assert not elsewhere
    got: list[Expected] = [(one["location"]["row"], one["code"], one["severity"]) for one in findings]
    wrong = differences(script, expected(script.read_text(encoding="utf-8")), got)
    assert not wrong, "\n" + "\n".join([*wrong, *(f"{one['code']}: {one['message']}" for one in findings)])


def test_every_observed_rule_has_scripts() -> None:
    codes = {code for code, rule in registry().items() if rule.observed}
    for kind in ("bad", "good"):
        shown = {script.parent.name.partition("_")[0] for script in SCRIPTS if script.name.startswith(kind)}
        assert shown == codes
