"""What a suite's two runs have in common and where they differ, each difference with its reason."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .running import Outcome, Run
from .table import HERE

REASONS = HERE / "reasons.csv"
OURS = ("lacks", "differs")
"""Kinds of reasons that count against the simulation: what it lacks, and what it does otherwise than CUDA."""
KINDS = (*OURS, "hardware", "project", "skipped", "numerics")
"""The others: what needs real hardware, what the project or its tests do wrong on every accelerator, what the suite
skips there itself, what is equal up to rounding."""
UNEXPLAINED = "no reason known"
_DEVICE = re.compile(r"cuda(?::\d+)?")
"""How a device is written among the parameters of a test."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why tests differ whose suite, name and message match."""

    suite: str
    pattern: re.Pattern[str]
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A test that did not pass on the device, though it passed on the CPU or could not run there."""

    test: str
    outcome: Outcome
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A suite on the CPU and on the device."""

    cpu: Run
    simulated: Run
    both: int
    """Tests that passed on the device, of those that passed on the CPU or need a device."""
    fail_alike: int
    """Tests that fail on both."""
    differences: tuple[Difference, ...]

    @property
    def counted(self) -> Counter[str]:
        """Differences by reason."""
        return Counter(one.reason.text if one.reason else UNEXPLAINED for one in self.differences)

    @property
    def share(self) -> float | None:
        """The share that passes of what is not for hardware and not wrong by itself."""
        ours = sum(one.reason is None or one.reason.kind in OURS for one in self.differences)
        return self.both / (self.both + ours) if self.both + ours else None


def read_reasons(path: Path = REASONS) -> list[Reason]:
    """The reasons in a file, in their order; raises ``ValueError`` for a kind that there is not."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["kind"] not in KINDS:
            raise ValueError(f"{path.name}: no such kind of reason: {row['kind']}")
    return [Reason(row["suite"], re.compile(row["pattern"], re.DOTALL), row["kind"], row["reason"]) for row in rows]


def counterpart(test: str, cpu: Run) -> str:
    """What the test is called on the CPU that has this name on the device; the same if it has no such parameter."""
    name, bracket, parameters = test.partition("[")
    there = f"{name}{bracket}{_DEVICE.sub('cpu', parameters)}"
    return test if test in cpu.outcomes or test in cpu.collected else there


def compare(suite: str, cpu: Run, simulated: Run, reasons: list[Reason]) -> Comparison:
    """Compare two runs.

    A test that is skipped on the device counts as different if it passed on the CPU.  Those that failed there, or for
    which the time was not enough, do not count.
    """
    both = alike = 0
    differences = []
    for test, outcome in simulated.outcomes.items():
        there = counterpart(test, cpu)
        other = cpu.outcomes.get(there)
        if other is None and there in cpu.collected:
            continue
        passed_before = other is not None and other.outcome == "passed"
        failed_before = other is not None and other.outcome in ("failed", "crashed")
        if outcome.outcome == "passed":
            both += not failed_before
        elif outcome.outcome in ("failed", "crashed") and failed_before:
            alike += 1
        elif outcome.outcome in ("failed", "crashed") or passed_before:
            differences.append(Difference(test, outcome, _reason(suite, test, outcome, reasons)))
    return Comparison(cpu, simulated, both, alike, tuple(differences))


def _reason(suite: str, test: str, outcome: Outcome, reasons: list[Reason]) -> Reason | None:
    text = f"{test}: {outcome.message}"
    return next((one for one in reasons if one.suite in ("", suite) and one.pattern.search(text)), None)
