"""What a command costs: seconds, CPU seconds and peak memory of it and of all its children."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

BYTES_PER_MAXRSS = 1 if sys.platform == "darwin" else 1024


class CommandFailedError(Exception):
    """A measured command did not do its work, so its time means nothing."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One run of a command."""

    cpu_seconds: float
    """User and system time, children included."""
    peak_bytes: int
    """The resident memory of the largest process."""
    seconds: float = 0.0
    """The time that went by."""


def cost(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None, codes: Collection[int] = (0,)
) -> Cost:
    """Run ``command`` in ``cwd``, with its output thrown away, and measure it; ``codes`` say that it did its work.

    The memory is that of the largest process, and never less than this one's, which a child starts as a copy of.
    """
    if not hasattr(os, "wait4"):
        raise CommandFailedError("this platform does not say what a child process cost")
    with tempfile.TemporaryFile() as complaints:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stderr=complaints)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)  # it has been waited for: Popen must not wait again
        complaints.seek(0)
        reason = complaints.read().decode(errors="replace").strip()
    if process.returncode not in codes:
        raise CommandFailedError(f"exit code {process.returncode} from {' '.join(command)}\n{reason}".strip())
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * BYTES_PER_MAXRSS, seconds)


@dataclass(frozen=True, slots=True)
class Summary:
    """Several runs of one command."""

    runs: tuple[Cost, ...]

    @property
    def cpu_seconds(self) -> float:
        """The median: one run beside a busy neighbour does not count."""
        return statistics.median(run.cpu_seconds for run in self.runs)

    @property
    def seconds(self) -> float:
        """The least time that went by: what else the machine was doing only adds to it."""
        return min(run.seconds for run in self.runs)

    @property
    def fastest(self) -> float:
        """The CPU seconds of the best run."""
        return min(run.cpu_seconds for run in self.runs)

    @property
    def slowest(self) -> float:
        """The CPU seconds of the worst run."""
        return max(run.cpu_seconds for run in self.runs)

    @property
    def peak_bytes(self) -> int:
        """The most memory of any run."""
        return max(run.peak_bytes for run in self.runs)


def interleaved(commands: Mapping[str, Sequence[str]], cwd: Path, rounds: int) -> dict[str, Summary]:
    """Measure each command once per round, so that a slow minute of the machine falls on all of them."""
    runs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(cost(command, cwd))
    return {name: Summary(tuple(costs)) for name, costs in runs.items()}
