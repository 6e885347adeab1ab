"""Running a suite on one device: a child process, killed at its limit, started again after a test that ends it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from .table import HERE, Suite

ROOT = HERE.parents[1]
CRASHES = 20
"""After so many crashes the rest is not run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a test: passed, failed, crashed, skipped or xfailed."""

    outcome: str
    message: str = ""
    device: bool = False
    """Whether memory of the device was taken."""


@dataclass(slots=True)
class Run:
    """What became of a suite on one device."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    collected: set[str] = field(default_factory=set)
    """The tests that it has, whether its time was enough for them or not."""
    seconds: float = 0.0
    cut_off: bool = False
    """Whether the limit came before the end."""
    note: str = ""
    """What pytest said, if it ran no test."""

    def count(self, outcome: str) -> int:
        """The number of tests with which it ended so."""
        return sum(one.outcome == outcome for one in self.outcomes.values())


def command(suite: Suite, source: Path, python: str, simulated: bool) -> list[str]:
    """The command line."""
    device = "cuda" if simulated else "cpu"
    switch = (suite.device_option, device) if suite.device_option else ()
    # by its module, since devlint need not be installed there
    plugins = ("-p", "suite_outcomes", "-p", "no:devlint", "-p", "devlint.testing")
    plugins += ("--devlint-simulate",) if simulated else ("--no-devlint-simulate",)
    quiet = ("-q", "--continue-on-collection-errors", "-o", "addopts=", "--tb=short", "-p", "no:cacheprovider")
    return [python, "-m", "pytest", *plugins, *quiet, *switch, *suite.options, *suite.files(source)]


def run(suite: Suite, source: Path, python: str, simulated: bool, limit: float, log: Path) -> Run:
    """Run the suite; what pytest prints goes to ``log``, and what became of the tests beside it."""
    outcomes = log.with_suffix(".jsonl")
    for path in (outcomes, log):
        path.unlink(missing_ok=True)
    device = "cuda" if simulated else "cpu"
    search = os.pathsep.join(map(str, (HERE / "plugins", source / suite.path, ROOT)))
    environment = {**os.environ, "PYTHONPATH": search, "SUITE_OUTCOMES": str(outcomes), "OMP_NUM_THREADS": "1"}
    # programs that a test starts by name are those of the same Python
    environment["PATH"] = os.pathsep.join((os.path.dirname(python), environment.get("PATH", os.defpath)))
    environment |= {name: value.format(device=device) for name, value in suite.environment.items()}
    result = Run()
    begin = time.monotonic()
    for _ in range(CRASHES):
        left = limit - (time.monotonic() - begin)
        with log.open("ab") as output:
            child = subprocess.Popen(
                command(suite, source, python, simulated),
                cwd=source,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                child.wait(max(left, 1))
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)
                child.wait()
                result.cut_off = True
        crashed = _read(outcomes, result)
        if result.cut_off or not crashed:
            break
        with outcomes.open("a", encoding="utf-8") as file:
            entry = {"id": crashed, "outcome": "crashed", "message": f"the process ended with {child.returncode}"}
            file.write(json.dumps(entry) + "\n")
    with outcomes.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"seconds of all": time.monotonic() - begin, "cut off": result.cut_off}) + "\n")
    _read(outcomes, result)
    if not result.outcomes:
        result.note = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
    return result


def kept(log: Path) -> Run:
    """What an earlier run left beside its log."""
    result = Run()
    _read(log.with_suffix(".jsonl"), result)
    return result


def _read(path: Path, result: Run) -> str:
    """Take the outcomes in a file over; the test in which the process ended, or nothing if it came to its end."""
    started = ""
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        entry = json.loads(line)
        started = entry.get("started", "" if "id" in entry or "finished" in entry else started)
        if "id" in entry:
            result.outcomes[entry["id"]] = Outcome(entry["outcome"], entry["message"], entry.get("device", False))
        elif "collected" in entry:
            result.collected.update(entry["collected"])
        elif "seconds of all" in entry:
            result.seconds, result.cut_off = entry["seconds of all"], entry["cut off"]
    return started
