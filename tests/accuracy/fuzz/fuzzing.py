"""Draws programs, compares each, and adds up what came of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.accuracy.fuzz.comparing import Comparison, Disagreement, compare
from tests.accuracy.fuzz.generate import programs
from tests.accuracy.fuzz.program import Program
from tests.accuracy.fuzz.running import NotAProgram, simulate
from tests.accuracy.fuzz.shrinking import shrink

CHUNK = 250
"""So many draws have one seed; about half of them are programs that were not there yet."""
SHOWN = 5
"""So many disagreements of a chunk are made small."""


@dataclass
class Tally:
    """What came of many programs."""

    programs: int = 0
    lines: int = 0
    failing: int = 0
    moving: int = 0
    unfinished: int = 0
    rejected: int = 0
    failures: int = 0
    undecided: int = 0
    seconds: float = 0.0
    claimed: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add what came of other programs."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(mine, Counter):
                mine.update(value)
            else:
                setattr(self, name, mine + value)

    def count(self, program: Program, outcome: Comparison) -> None:
        """A program about which there is no disagreement."""
        self.failures += outcome.failures
        self.undecided += outcome.undecided + sum(outcome.limits.values())
        self.unfinished += not outcome.finished
        found = outcome.failures or outcome.confirmed
        self.failing += bool(found)
        self.moving += not found and any(name.startswith(("move:", "module: moved")) for name in program.used)
        self.claimed.update(outcome.confirmed)
        self.claimed.update({f"{code} (elsewhere)": n for code, n in outcome.explained.items()})


def draw(number: int, seeded: int, visit: Callable[[Program], None]) -> None:
    """So many programs, whatever they are; the same ones for the same seed."""

    @seed(seeded)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def drawn(program: Program) -> None:
        visit(program)

    drawn()


def fuzz(seeded: int, number: int = CHUNK) -> Tally:
    """Draw, compare, and shrink what disagrees."""
    simulate()
    tally, seen = Tally(), set()
    found: list[Disagreement] = []
    began = time.process_time()

    def visit(program: Program) -> None:
        if program.text in seen:
            return
        seen.add(program.text)
        try:
            outcome = compare(program)
        except Disagreement as disagreement:
            found.append(disagreement)
        except NotAProgram as problem:
            tally.rejected += problem.expected
            if not problem.expected:
                tally.broken.append(f"{problem}\n{program.text}")
            return
        else:
            tally.count(program, outcome)
        tally.programs += 1
        tally.lines += program.statements
        tally.used.update(dict.fromkeys(program.used, 1))

    draw(number, seeded, visit)
    tally.seconds = time.process_time() - began
    found.sort(key=lambda disagreement: len(disagreement.program.lines))
    tally.disagreements = [str(shrink(d)) if n < SHOWN else str(d) for n, d in enumerate(found)]
    return tally
