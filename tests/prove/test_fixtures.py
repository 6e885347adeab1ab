"""Most findings of the rules' fixtures, whose mistakes all happen, are confirmed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "fixtures" / "rules").glob("DVL10[1-8]_*/bad*.py"))
SHARE = 0.8
NOT_IMPORTED = "cannot be imported: ModuleNotFoundError"
"""Some fixtures are about libraries that the tests do not bring."""


@pytest.mark.slow
def test_most_findings_are_confirmed() -> None:
    command = [sys.executable, "-m", "tests.prove.corpus", "--json", *map(str, FILES[::3])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [one for one in map(json.loads, done.stdout.splitlines()) if NOT_IMPORTED not in one["text"]]
    kinds = Counter(one["kind"] for one in found)
    assert kinds["confirmed"] >= SHARE * kinds.total(), [one for one in found if one["kind"] != "confirmed"]
