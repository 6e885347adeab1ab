"""Runs the fixtures of some rules on one machine, each run in a process forked for it, and prints what came of them.

``python -m tests.running.child simulated|real|host PATTERN``: the pattern is matched with the codes of the rules.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch  # before the forks

from devlint.simulator import plans
from tests.running import imaginary
from tests.running.cases import Fixture, fixtures, read
from tests.running.claims import Claim, registry
from tests.running.execution import Recorder, reset
from tests.running.judging import Trial
from tests.test_fixtures import findings

SECONDS = 60
"""A run that takes longer is ended."""

Result = dict[str, Any]


def main(machine: str, pattern: str) -> None:
    """Print an object: for each fixture, what came of each of its runs."""
    files = [read(path) for path in fixtures(pattern)]
    libraries = {name for fixture in files for name in imaginary.imported(fixture.tree)}
    installed = imaginary.install(libraries)
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        forked = Forked(Path(directory))
        prepare(machine, forked, installed)
        results = {fixture.name: list(runs(fixture, machine, forked)) for fixture in files}
    print(json.dumps(results))


class Forked:
    """Calls functions in processes of their own, so that each begins with what this one has imported and no more."""

    def __init__(self, directory: Path) -> None:
        self._answer = directory / "answer.json"

    def __call__(self, function: Callable[[], Any]) -> Any:
        """What the function returns, or a string that says what became of it."""
        self._answer.unlink(missing_ok=True)
        pid = os.fork()
        if not pid:
            self._work(function)
        descriptor = os.pidfd_open(pid)
        try:
            ended = select.select([descriptor], [], [], SECONDS)[0]
        finally:
            os.close(descriptor)
        if not ended:
            os.killpg(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if not ended:
            return f"still running after {SECONDS} seconds"
        return json.loads(self._answer.read_text()) if self._answer.exists() else f"died with status {status}"

    def _work(self, function: Callable[[], Any]) -> None:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        try:
            answer = function()
        except BaseException:
            answer = traceback.format_exc()
        self._answer.write_text(json.dumps(answer))
        os._exit(0)


def prepare(machine: str, forked: Forked, libraries: set[str]) -> None:
    """Import what a run imports, so that it is there in all processes."""

    def scout() -> list[str]:
        with Recorder(machine):
            reset()
            torch.ones(3, 3, device="cpu" if machine == "host" else "cuda").sum()
        return sorted(sys.modules)

    if machine == "simulated":
        with Recorder(machine):
            plans.declarations()
    names = forked(scout)
    for name in (*libraries, *(names if isinstance(names, list) else ())):
        if name in libraries or name.startswith(("torch.", "sympy", "numpy.", "devlint.")):
            importlib.import_module(name)
    gc.freeze()  # the forked processes share what is never collected


def runs(fixture: Fixture, machine: str, forked: Forked) -> Iterator[Result]:
    """What came of each run of a fixture; one that has no claim for this machine is not run on it."""
    every = list(findings(fixture.path.read_text(encoding="utf-8")))
    known = registry()
    where = "host" if machine == "host" else "accelerator"
    spoken = {finding: known.get(finding.code) for finding in every}
    claims = {
        finding: claim.of(finding)
        for finding, claim in spoken.items()
        if isinstance(claim, Claim) and claim.of(finding).machine == where
    }
    if fixture.code not in known:
        return
    rule = known[fixture.code]
    own = rule if isinstance(rule, Claim) else None
    if machine == "host" and not claims and (own is None or own.machine != "host"):
        return
    blocked = fixture.cases[0].cannot
    for case in fixture.cases:
        if blocked or case.cannot:
            yield {"case": case.name, "call": "", "cannot": blocked or case.cannot}
            continue
        for call in case.calls:
            trial = Trial(fixture, case, call, machine, claims, own)
            result = forked(lambda trial=trial: trial.judge().as_json(every))
            yield {"case": case.name, "call": call, **({"problem": result} if isinstance(result, str) else result)}


if __name__ == "__main__":
    main(*sys.argv[1:])
