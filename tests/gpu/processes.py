"""Children that are waited for no longer than they may take; what they have started ends with them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_GRACE = 10
"""So many seconds has a launcher to end its workers."""


def environment() -> dict[str, str]:
    """That of a child which imports what this process does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def finish(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command, and return what it has printed.

    Raises ``subprocess.TimeoutExpired`` when it takes too long; then it is over, too.
    """
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    ) as child:
        try:
            out, err = child.communicate(timeout=seconds)
        except BaseException:
            _end(child)
            raise
    return subprocess.CompletedProcess(command, child.returncode, out, err)


def _end(child: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE)


def collect(command: Sequence[str], seconds: float) -> tuple[dict[str, Any], str]:
    """What a command tells of its jobs by name, and what went wrong with the whole of it, if anything did.

    The command is given two more arguments: a file, to which it adds a line when it begins a job (``["name"]``) and one
    when that is done (``["name", result]``), and how many jobs to leave out.  If it dies in the middle of one, it is
    started again for those that follow.
    """
    results: dict[str, Any] = {}
    begun: list[str] = []
    deadline = time.monotonic() + seconds
    while True:
        before = len(begun)
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "results")
            file.touch()
            try:
                done = finish([*command, str(file), str(before)], max(deadline - time.monotonic(), 0))
                trouble = "" if done.returncode == 0 else last_line(done.stderr) or f"status {done.returncode}"
            except subprocess.TimeoutExpired:
                trouble = f"took longer than {seconds:.0f} seconds"
            for line in file.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # else it was ended in the middle of it
                    name, *result = json.loads(line)
                    if result:
                        results[name] = result[0]
                    else:
                        begun.append(name)
        late = time.monotonic() >= deadline
        lost = [name for name in begun[before:] if name not in results]
        if not trouble or late or not lost:
            return results, trouble
        results.update((name, {"problem": f"the process died: {trouble}"}) for name in lost)


def last_line(text: str) -> str:
    """The last line of what a process has said."""
    return " ".join(text.strip().splitlines()[-1:])
