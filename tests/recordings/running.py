"""Our programs, run by an audit with a simulated device."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from devlint.auditor.running import storage
from devlint.record import Frame
from tests.auditor.running import LIMIT, environment
from tests.recordings.digest import quantities
from tests.recordings.listed import HERE, Quantity, Recording

PROGRAMS = HERE / "programs"
_RECORDED = re.compile(r"# recorded: (\S+)")
_BEFORE = "prepare"
"""The function in which what is not recorded happens."""


def run(recording: Recording) -> tuple[Quantity, ...]:
    """What the audit says of the program that does what was recorded."""
    program = PROGRAMS / f"{recording.program}.py"
    return _run(program, tuple(recording.arguments.split()))


@cache
def _run(program: Path, arguments: tuple[str, ...]) -> tuple[Quantity, ...]:
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.json"
        command = [sys.executable, "-m", "devlint", "audit", "--simulate", "--output", str(record), str(program)]
        done = subprocess.run(
            [*command, *arguments], cwd=folder, env=environment(Path(folder)), capture_output=True, text=True,
            timeout=4 * LIMIT,
        )  # fmt: skip
        if not record.exists():
            raise RuntimeError(f"{program.name} {' '.join(arguments)}: {done.stderr}")
        (process,) = storage.read(str(record)).processes
    if process.ending.kind != "finished":
        raise RuntimeError(f"{program.name} {' '.join(arguments)}: {process.ending.error}")
    lines = program.read_text(encoding="utf-8").splitlines()

    def line(frame: Frame) -> str:
        marked = _RECORDED.search(lines[frame.line - 1]) if frame.file.endswith(program.name) else None
        return marked[1] if marked else f"{program.name}:{frame.line}"

    events = [event for event in process.events if event.frame is None or event.frame.function != _BEFORE]
    return quantities(events, line)
