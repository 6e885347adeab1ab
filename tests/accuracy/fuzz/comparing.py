"""Holds what `check` claims of a program to what happens when it runs.

A program stops at its first error, so it is compared step by step.  In each step it is checked, and run with every set
of words in its ``sys.argv`` (that is how a program has conditions that nobody can know).  Then, in this order:

1. A claim that a result is dropped (DVL102), or that a tensor stops being a leaf (DVL106), is held to what the run saw
   in that row.  Such a claim explains whatever happens later to the tensor, so its row is repaired first.
2. The first row that fails in any run must be claimed: by an error or warning in that row, or in the row of a call
   that led there; or by a warning elsewhere (a factory in ``forward``, a plain attribute, a plain list of modules)
   that names this row too, or whose remedy makes this failure vanish.
   The failing row is repaired (or the remedy kept), and the next step begins.
   A row that another run gets through fails for a condition which nobody can know: of a tensor that is moved to the
   accelerator under such a condition, `check` assumes that it is there, and may be silent.  It also reads a module's
   methods as if module and arguments were on the accelerator: what does not fail then is no miss either. Nor is what
   DVL103 is documented to tell only those who select it.
3. When nothing fails any more, an error that is still claimed for a row that was reached is a false claim, unless it
   says "when that is an accelerator" and the row fails once modules and the arguments of functions are on one.
   Functions that nobody called are left out here: a claim about what they would do is neither right nor wrong.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from devlint.check.analysis import Analyzer
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Finding, Severity
from tests.accuracy.fuzz.program import Program
from tests.accuracy.fuzz.running import Run, run

SILENT = frozenset({"DVL102", "DVL106"})
"""Rules whose claim is not that the row raises."""
ELSEWHERE = frozenset({"DVL103", "DVL104", "DVL105"})
"""Rules that speak of the place where a tensor comes from, instead of the row that fails."""
DEVICE_RULES = frozenset(
    {"DVL101", "DVL102", "DVL103", "DVL104", "DVL105", "DVL106", "DVL107", "DVL108", "DVL109", "DVL112", "DVL302"}
)
_MOVED_AT_ONCE = re.compile(r"( *)(\w+) = .*\n\1\2 = \2\.(cuda|to)\(")
_DVL103 = Config(rule_layers=(RuleLayer(("DVL103",)),))
STEPS = 12
"""After so many failures a program is let be."""


@dataclass
class Disagreement(AssertionError):
    """Linter and run say different things; ``program`` is what they disagree about, failures before it repaired."""

    kind: str
    program: Program
    row: int
    detail: str

    def __str__(self) -> str:
        shown = "".join(
            f"{'>' if number == self.row else ' '} {number:3} {line.text}\n"
            for number, line in enumerate(self.program.lines, 1)
        )
        return f"{self.kind}, row {self.row}: {self.detail}\n{shown}"


@dataclass
class Comparison:
    """What came of one program."""

    failures: int = 0
    undecided: int = 0
    moved: bool = False
    claimed: dict[str, int] = field(default_factory=dict)
    confirmed: dict[str, int] = field(default_factory=dict)
    explained: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    finished: bool = True

    def count(self, table: dict[str, int], code: str) -> None:
        table[code] = table.get(code, 0) + 1


def compare(program: Program) -> Comparison:
    """Compare, and raise :class:`Disagreement` where they disagree."""
    outcome = Comparison()
    for _ in range(STEPS):
        claims = claims_of(program.text)
        runs = [run(program.text, words) for words in subsets(program.words)]
        following = _silent(program, claims, runs, outcome) or _failing(program, claims, runs, outcome)
        if following is None:
            _clean(program, claims, runs)
            return outcome
        program = following
    outcome.finished = False
    return outcome


def claims_of(text: str) -> list[Finding]:
    """The findings that make a claim about devices, each as grave as if what it was inferred from held."""
    told = (one for one in _considered(text, Config()) if not one.asked or one.unproven is not None)
    claims = (replace(one, severity=one.unproven or one.severity) for one in told if one.code in DEVICE_RULES)
    return [claim for claim in claims if claim.severity >= Severity.WARNING]


def _considered(text: str, config: Config) -> list[Finding]:
    return Analyzer("program.py", config).considered(text.encode())


def subsets(words: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(words, n) for n in range(len(words) + 1))


def _silent(program: Program, claims: list[Finding], runs: list[Run], outcome: Comparison) -> Program | None:
    """Hold claims of silent misbehaviour to what was seen, and repair the first."""
    for claim in claims:
        row = claim.span.row
        if claim.code not in SILENT or not any(row in seen.reached for seen in runs):
            continue
        seen_rows = [seen.lost if claim.code == "DVL102" else seen.broken for seen in runs]
        failing = any(row in seen.failed for seen in runs)
        if not failing and not any(row in rows for rows in seen_rows) and not _silent_if_placed(program, claim):
            raise Disagreement("false claim", program, row, f"{claim.code} {claim.message}")
        outcome.count(outcome.confirmed, claim.code)
        outcome.count(outcome.claimed, claim.code)
        return program.repair(row)
    return None


def _silent_if_placed(program: Program, claim: Finding) -> bool:
    """Whether what is claimed "on an accelerator" comes true for callers that use one."""
    runs = [run(program.text, words, placed=True) for words in subsets(program.words)]
    return claim.code == "DVL106" and any(claim.span.row in seen.broken for seen in runs)


def _failing(program: Program, claims: list[Finding], runs: list[Run], outcome: Comparison) -> Program | None:
    """Find the claim of the first failure of a run, and repair it; first in a run that was told to fail there."""
    failures = [seen for seen in runs if seen.failed]
    if not failures:
        return None
    outcome.failures += 1
    for row in itertools.chain.from_iterable(seen.failed for seen in failures):
        claim = next((claim for claim in claims if claim.span.row == row), None)
        if claim is not None:
            outcome.count(outcome.claimed, claim.code)
            outcome.count(outcome.confirmed, claim.code)
            return program.repair(row)
    failed = failures[0]
    for claim in claims:
        if claim.code in ELSEWHERE and any(place.span.row in failed.failed for place in claim.related):
            outcome.count(outcome.explained, claim.code)
            return program.repair(failed.failed[0])
        mended = program.mend(claim.span.row) if claim.code in ELSEWHERE else None
        if mended is not None and not any(seen.failed == failed.failed for seen in _runs(mended)):
            outcome.count(outcome.explained, claim.code)
            return mended
    row = failed.failed[0]
    limit = next((program.lines[row - 1].limit for row in failed.failed if program.lines[row - 1].limit), "")
    limit = limit or ("a result moved at once" if _is_for_who_asks(program, row) else "")
    if limit:
        outcome.count(outcome.limits, limit)
        return program.repair(row)
    if any(row in seen.reached and row not in seen.failed for seen in runs) or _placed(program, failed):
        outcome.undecided += 1
        return program.repair(row)
    hidden = next((claim.span.row for claim in claims if claim.code in SILENT and claim.span.row != row), 0)
    if hidden:
        # what is lost there, in a row that a later round comes to, may be what fails here
        return program.repair(hidden)
    if not any(row in seen.failed for seen in _runs(program.longer())):
        outcome.count(outcome.limits, "the number of rounds")
        return program.repair(row)
    raise Disagreement("missed", program, row, failed.error)


def _fails_if_placed(program: Program, row: int, claimed: set[int]) -> bool:
    """Whether a row fails once the caller keeps modules and their inputs on the accelerator.

    What is claimed of rows behind one that was rightly claimed, in the same function, hangs on how that one is mended.
    """
    for _ in range(STEPS):
        runs = [run(program.text, words, placed=True) for words in subsets(program.words)]
        failed = next((seen.failed for seen in runs if seen.failed), None)
        if failed is None or row in failed:
            return failed is not None
        if failed[0] in claimed and failed[0] < row and program.function_of(failed[0]) == program.function_of(row):
            return True
        program = program.repair(failed[0])
    return False


def _placed(program: Program, failed: Run) -> bool:
    """Whether the failure is one of a method, and only for callers that do not keep the module on the accelerator."""
    if len(failed.failed) < 2 or not any("def forward(" in line.text for line in program.lines):
        return False
    others = [run(program.text, words, placed=True) for words in subsets(program.words)]
    return all(failed.failed[0] not in other.failed for other in others)


def _is_for_who_asks(program: Program, row: int) -> bool:
    """Whether DVL103 tells only those who select it of a row, as its result is moved in the next one.

    The rule says why: whoever wrote that holds all that meets there to be on the CPU.
    """
    text = "\n".join(line.text for line in program.lines[row - 1 : row + 1])
    hints = _considered(program.text, _DVL103) if _MOVED_AT_ONCE.match(text) else []
    return any(place.span.row == row for hint in hints for place in hint.related)


def _runs(program: Program) -> Iterable[Run]:
    return (run(program.text, words) for words in subsets(program.words))


def _clean(program: Program, claims: list[Finding], runs: list[Run]) -> None:
    """A program that runs: an error claimed of what was reached is wrong."""
    uncalled = program.without_uncalled(set().union(*(seen.reached for seen in runs)))
    if uncalled.lines != program.lines:
        claims = claims_of(uncalled.text)
    claimed = {claim.span.row for claim in claims}
    for claim in claims:
        row = claim.span.row
        reached = any(row in seen.reached for seen in runs)
        hypothetical = "when that is an accelerator" in claim.message and _fails_if_placed(program, row, claimed)
        if claim.severity is Severity.ERROR and reached and not hypothetical:
            raise Disagreement("false claim", program, claim.span.row, f"{claim.code} {claim.message}")
