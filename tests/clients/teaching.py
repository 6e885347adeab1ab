"""What a run of a client teaches: its library checked alone, and with the run as evidence."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.clients.catalog import Client
from tests.clients.running import audited, check, lay

_ASKED = ("--extend-select", "DVL103")
"""Hints for those who want to know where a function's arguments must be, which a run can settle."""


@dataclass(slots=True)
class Taught:
    """What is told of the files of which functions were looked at."""

    files: int = 0
    alone: int = 0
    new: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    failure: str = ""


def taught(client: Client, python: str, packages: Path, folder: Path, limit: float) -> Taught:
    """Audit the client with its library beside it, as in a checkout, and check the files that were observed twice."""
    script = lay(client, folder, None)
    if script is None:
        return Taught(failure="its script is not there")
    if client.library:
        shutil.copytree(packages / client.library, folder / client.library, ignore=shutil.ignore_patterns("*.pyc"))
    record = folder / "run.json"
    outcome, report = audited(client, script, python, limit, record)
    if outcome.code != 0:
        return Taught(failure=(outcome.errors.strip().splitlines() or ["it did not end"])[-1])
    files = [each for each in report.observed if Path(folder, each).is_file()]
    if not files:
        return Taught(failure="no function was looked at")
    alone = check(python, files, folder, limit, *_ASKED)
    known = check(python, files, folder, limit, *_ASKED, "--evidence", str(record))
    result = Taught(len(files), len(alone))
    result.new = [_line(known[key]) for key in sorted(known.keys() - alone.keys())]
    result.withdrawn = [_line(alone[key]) for key in sorted(alone.keys() - known.keys())]
    return result


def packages_of(python: str) -> Path:
    """Where a Python keeps its packages."""
    told = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([python, "-c", told], capture_output=True, text=True, check=True).stdout.strip())


def _line(finding: dict) -> str:
    place = finding["location"]
    return f"{Path(finding['filename']).name}:{place['row']} {finding['code']} {finding['message']}"
