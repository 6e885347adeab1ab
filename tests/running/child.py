"""Runs the fixtures of some rules on one machine, in processes forked for that, and prints what came of them.

``python -m tests.running.child simulated|real|host PATTERN [apart]``: the pattern is matched with the codes of the
rules.  The runs of a file share a process, which costs half of what one for each run does; a process for each run have
files whose libraries keep a state, those of rules that ask what a process has done before, those of which something is
not as it is said to be, and all of them if they are to be `apart`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch  # before the forks

from devlint.finding import Finding
from devlint.simulator import plans
from tests.running import imaginary
from tests.running.cases import Fixture, fixtures, read
from tests.running.claims import Claim, registry
from tests.running.execution import Recorder, reset
from tests.running.judging import Trial
from tests.running.outcomes import Outcome
from tests.test_fixtures import findings

SECONDS = 60
"""A run that takes longer is ended."""

KEEP_A_STATE = {"accelerate", "lightning", "pytorch_lightning"}
"""Libraries that remember what a process has asked them for."""
ASK_THE_PROCESS = {"DVL608"}
"""Rules of what a process has done before."""
SHARED_BY_ALL = ("torch.testing._internal.distributed.fake_pg", "torch.nn.parallel.distributed", "torch.profiler")
"""What is slow to import, and imported by some runs only."""

Result = dict[str, Any]


def main(machine: str, pattern: str, apart: str = "") -> None:
    """Print an object: for each fixture, what came of each of its runs."""
    files = [read(path) for path in fixtures(pattern)]
    libraries = {name for fixture in files for name in imaginary.imported(fixture.tree)}
    installed = imaginary.install(libraries)
    with tempfile.TemporaryDirectory() as directory:
        forked = Forked(Path(directory))
        prepare(machine, forked, installed)
        results = {fixture.name: runs(fixture, machine, forked, bool(apart)) for fixture in files}
    print(json.dumps(results))


class Forked:
    """Calls functions in forked processes, which begin with what this one has imported and no more."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __call__(self, functions: Sequence[Callable[[], Any]]) -> list[Any]:
        """What they return, in one process unless one of them ends it: then it is a string that says how."""
        answers: list[Any] = []
        while len(answers) < len(functions):
            answers += self._share_one(functions[len(answers) :])
        return answers

    def _share_one(self, functions: Sequence[Callable[[], Any]]) -> list[Any]:
        with tempfile.TemporaryDirectory(dir=self._directory) as directory:
            file = Path(directory, "answers.json")
            file.touch()
            pid = os.fork()
            if not pid:
                self._work(functions, file)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # what it has started, and left behind
            status = os.waitpid(pid, 0)[1]
            answers = [json.loads(line) for line in file.read_text().splitlines()]
        if len(answers) < len(functions):
            late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
            answers.append(f"still running after {SECONDS} seconds" if late else f"died with status {status}")
        return answers

    def _work(self, functions: Sequence[Callable[[], Any]], file: Path) -> None:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        for number, function in enumerate(functions):
            signal.alarm(SECONDS)  # ends the process
            here = file.parent / str(number)
            here.mkdir()
            os.chdir(here)
            try:
                answer = function()
            except BaseException:
                answer = traceback.format_exc()
            with file.open("a") as answers:
                answers.write(json.dumps(answer) + "\n")
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
    [names] = forked([scout])
    for name in (*libraries, *SHARED_BY_ALL, *(names if isinstance(names, list) else ())):
        if name in libraries or name.startswith(("torch.", "sympy", "numpy.", "devlint.")):
            importlib.import_module(name)
    gc.freeze()  # the forked processes share what is never collected


def runs(fixture: Fixture, machine: str, forked: Forked, apart: bool) -> list[Result]:
    """What came of each run of a fixture."""
    every = list(findings(fixture.text))
    due = list(trials(fixture, machine, every))
    calls = [lambda trial=trial: trial.judge().as_json(every) for trial in due if not isinstance(trial, dict)]
    if apart or fixture.code in ASK_THE_PROCESS or KEEP_A_STATE & imaginary.imported(fixture.tree):
        return _merged(due, [answer for call in calls for answer in forked([call])])
    results = _merged(due, forked(calls))
    if any(Outcome(fixture, machine, results, every).complaints()):
        results = _merged(due, [answer for call in calls for answer in forked([call])])
    return results


def _merged(due: list[Trial | Result], answers: list[Any]) -> list[Result]:
    rest = iter(answers)
    return [trial if isinstance(trial, dict) else _result(trial, next(rest)) for trial in due]


def _result(trial: Trial, answer: Any) -> Result:
    said = {"problem": answer} if isinstance(answer, str) else answer
    return {"case": trial.case.name, "call": trial.call, **said}


def trials(fixture: Fixture, machine: str, every: list[Finding]) -> Iterator[Trial | Result]:
    """The runs that a fixture is due, or what is to be said instead of one that cannot be.

    One that has no claim for this machine is not run on it.
    """
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
            yield Trial(fixture, case, call, machine, claims, own)


if __name__ == "__main__":
    main(*sys.argv[1:])
