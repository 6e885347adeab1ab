"""What came of running the fixtures: children run them, and this reads what they say."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from devlint.finding import Finding
from tests.running.cases import ROOT, Case, Fixture, fixtures, read
from tests.running.instrument import functions
from tests.test_fixtures import findings

REPOSITORY = ROOT.parents[1]
SECONDS = 600
GROUPS: dict[str, tuple[str, ...]] = {
    "simulated": ("DVL1", "DVL[234]", "DVL5|DVL60[38]|DVL70[13]"),
    "host": ("DVL60[1245679]|DVL702",),
}
"""The machines, and the rules whose fixtures share a process on each."""


@dataclass
class Outcome:
    """All that was seen of one fixture on one machine."""

    fixture: Fixture
    machine: str
    runs: list[dict[str, Any]]
    findings: list[Finding] = field(default_factory=list)

    @property
    def shown(self) -> set[int]:
        """The findings that a run has shown, by number."""
        return {number for run in self.runs for number in run.get("shown", ())}

    @property
    def judged(self) -> set[int]:
        """The findings for which there is a claim on this machine."""
        return self.shown | {int(number) for run in self.runs for number in run.get("against", ())}

    @property
    def excused(self) -> set[int]:
        """The findings in cases that cannot run."""
        cannot = {run["case"] for run in self.runs if "cannot" in run}
        rows = {number: finding.span.row for number, finding in enumerate(self.findings)}
        return {number for number, row in rows.items() if self.fixture.case_of(row).name in cannot}

    def complaints(self) -> Iterator[str]:
        """What is not as it is said to be."""
        if self.machine != "host":
            yield from self._never_entered()
        for run in self.runs:
            if run.get("problem"):
                yield f"{self._place(run['case'])}: `{run['call'] or run['case']}`: {run['problem']}"
        for number in sorted(self.judged - self.shown - self.excused):
            finding = self.findings[number]
            case = self.fixture.case_of(finding.span.row).name
            words = [run["against"][str(number)] for run in self.runs if str(number) in run.get("against", ())]
            said = [run["against"].get(str(number)) for run in self.runs if run["case"] == case and "against" in run]
            against = next(filter(None, [*said, *words]))
            yield f"{self._row(finding.span.row)}: {finding.code} ({finding.message}) is not shown: {against}"

    def _never_entered(self) -> Iterator[str]:
        """The functions that no run has called, but for those of cases that cannot run."""
        entered = {row for run in self.runs for row in run.get("entered", ())}
        cannot = {run["case"] for run in self.runs if "cannot" in run}
        for function in functions(self.fixture.tree):
            row = function.lineno
            if row not in entered and self.fixture.case_of(row).name not in cannot and not _is_trivial(function):
                yield f"{self._row(row)}: `{function.name}` is called by no run: give it a `# run:`"

    def _place(self, name: str) -> str:
        case = next(case for case in self.fixture.cases if case.name == name)
        return self._row(case.rows[0])

    def _row(self, row: int) -> str:
        return f"fixtures/rules/{self.fixture.name}:{row}"


def _is_trivial(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return all(isinstance(node, ast.Expr | ast.Pass) for node in function.body)


def run(machine: str, pattern: str, apart: bool = False) -> list[Outcome]:
    """Run the fixtures of the rules that match, on `simulated`, `real` or `host`; ``apart``: each run in a process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.running.child", machine, pattern, *(["apart"] if apart else [])],
        cwd=REPOSITORY,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    found = []
    for path in fixtures(pattern):
        fixture = read(path)
        if runs := results[fixture.name]:
            found.append(Outcome(fixture, machine, runs, list(findings(fixture.text))))
    return found


def _environment() -> dict[str, str]:
    """The environment of the children; Lightning, once imported, has `is_available()` ask NVML and leave CUDA alone."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTORCH_NVML_BASED_CUDA_CHECK"}
    return {**kept, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def cannot_run() -> Iterator[tuple[Fixture, Case]]:
    """The cases that say that they cannot run; a file that cannot run as a whole is one."""
    for path in fixtures():
        fixture = read(path)
        top = fixture.cases[0]
        if top.cannot:
            yield fixture, top
            continue
        yield from ((fixture, case) for case in fixture.cases if case.cannot)
