"""Runs the fixtures of some rules on one machine, each run in a process forked for it, and prints what came of them.

``python -m tests.running.child simulated|real|host PATTERN``: the pattern is matched with the codes of the rules.
"""

from __future__ import annotations

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

from devlint.finding import Finding
from tests.running import imaginary
from tests.running.arguments import Unfilled
from tests.running.cases import Case, Fixture, fixtures, read
from tests.running.claims import Claim, registry
from tests.running.execution import execute, recorder
from tests.running.imaginary import NotInstalled
from tests.running.observed import Run
from tests.test_fixtures import findings

SECONDS = 60
"""A run that takes longer is ended."""

Result = dict[str, Any]


def main(machine: str, pattern: str) -> None:
    """Print an object: for each fixture, what came of each of its runs."""
    files = [read(path) for path in fixtures(pattern)]
    imaginary.install({name for fixture in files for name in imaginary.imported(fixture.tree)})
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        forked = Forked(Path(directory))
        prepare(machine, forked)
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


def prepare(machine: str, forked: Forked) -> None:
    """Import what a run imports, so that it is there in all processes."""

    def scout() -> list[str]:
        with recorder(machine):
            torch.ones(3, 3, device="cpu" if machine == "host" else "cuda").sum()
        return sorted(sys.modules)

    if machine == "simulated":
        with recorder(machine):
            pass
    names = forked(scout)
    for name in names if isinstance(names, list) else ():
        if name.startswith(("torch.", "sympy", "devlint.")):
            importlib.import_module(name)


def runs(fixture: Fixture, machine: str, forked: Forked) -> Iterator[Result]:
    """What came of each run of a fixture; one that has no claim for this machine is not run on it."""
    every = list(findings(fixture.path.read_text(encoding="utf-8")))
    known = registry()
    where = "host" if machine == "host" else "accelerator"
    claims = []
    for finding in every:
        claim = known.get(finding.code)
        if isinstance(claim, Claim) and claim.machine == where:
            claims.append((finding, claim))
    if fixture.code not in known or (machine == "host" and not claims):
        return
    blocked = fixture.cases[0].cannot
    for case in fixture.cases:
        if blocked or case.cannot:
            yield {"case": case.name, "call": "", "cannot": blocked or case.cannot}
            continue
        for call in case.calls:
            result = forked(lambda case=case, call=call: judged(fixture, case, call, machine, every, claims))
            if isinstance(result, str):
                result = {"problem": result}
            yield {"case": case.name, "call": call, **result}


def judged(
    fixture: Fixture, case: Case, call: str, machine: str, every: list[Finding], claims: list[tuple[Finding, Claim]]
) -> Result:
    """Run a case, again after each mistake that ends it, and tell what was shown and what is wrong."""
    own = registry()[fixture.code]
    survey = own if isinstance(own, Claim) else None
    against: dict[Finding, str] = {}
    shown: list[Finding] = []
    entered: set[int] = set()
    left_out: tuple[Finding, ...] = ()
    problem = ""
    while True:
        run = execute(fixture, case, call, machine, claims, survey, left_out)
        entered |= run.entered
        fatal = None
        for finding, claim in claims:
            said = claim.shown(finding, run)
            if said is None:
                shown.append(finding)
                fatal = finding if claim.raises and run.failure else fatal
            else:
                against[finding] = said
        if fatal is None or not _is_more(fixture, fatal, claims, shown):
            break
        left_out = (*left_out, fatal)
    if run.failure and fatal is None and not left_out and machine != "host":
        problem = _trouble(run)
    if fixture.is_good and survey and machine != "host":
        problem = "; ".join(filter(None, [problem, *survey.absent(run)]))
    return {
        "problem": problem,
        "shown": sorted({every.index(finding) for finding in shown}),
        "against": {every.index(finding): words for finding, words in against.items() if finding not in shown},
        "entered": sorted(entered),
    }


def _is_more(fixture: Fixture, fatal: Finding, claims: list[tuple[Finding, Claim]], shown: list[Finding]) -> bool:
    """Whether the case that ended there has more to show."""
    case = fixture.case_of(fatal.span.row)
    return any(finding not in shown and fixture.case_of(finding.span.row) == case for finding, _ in claims)


def _trouble(run: Run) -> str:
    """An exception that nobody has spoken of."""
    assert run.failure
    error = run.failure.error
    if isinstance(error, NotInstalled):
        return (
            f"needs {error}, which is not installed: say so with `# cannot run: needs {str(error).partition('.')[0]}`"
        )
    if isinstance(error, Unfilled):
        return str(error)
    rows = [place.span.row for place in run.failure.places]
    return f"{run.failure.text} (rows {rows})"


if __name__ == "__main__":
    main(*sys.argv[1:])
