"""Holds what `check` claims on the strength of a run to what happens in every other run.

    python -m tests.accuracy.fuzz.taught [--programs 1000] [--seed 0]

A random program is run with one set of words in its ``sys.argv``, and its calls are observed. Then it is checked with
what was seen. A claim that is made only then must come true in some run: the row raises in one that reaches it, once
what raises before it is repaired. A claim that is withdrawn must be wrong: its row raises in no run.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from devlint.check.analysis import Analyzer
from devlint.config.schema import Config
from devlint.finding import Finding, Severity
from devlint.sites.observed import Observations
from tests.accuracy.fuzz import callers
from tests.accuracy.fuzz.comparing import DEVICE_RULES, ELSEWHERE, SILENT, STEPS, Disagreement, subsets
from tests.accuracy.fuzz.fuzzing import draw
from tests.accuracy.fuzz.observing import observe
from tests.accuracy.fuzz.program import Program
from tests.accuracy.fuzz.running import NotAProgram, Run, run, simulate

_ON_SOME_PATH = re.compile(r" can be on |raises when that is an accelerator|raises on an accelerator")


@dataclass
class Tally:
    """What came of many programs."""

    programs: int = 0
    observed: int = 0
    runs: int = 0
    gained: Counter[str] = field(default_factory=Counter)
    confirmed: int = 0
    unreached: int = 0
    rejected: int = 0
    cut: int = 0
    """Claims that rest on a run that has died, and do not come true in later calls."""
    hanging: int = 0
    """Claims for a branch not taken where the place hangs on the same word, as docs/teaching.md says."""
    withdrawn: int = 0
    disagreements: list[str] = field(default_factory=list)


def hidden(program: Program) -> Program:
    """The program with its calls of its own functions and modules as nobody can follow them who only reads it."""
    defined = re.findall(r"^(?:def )?([a-z]+\d+)\b(?=\(|.* = )", program.text, re.MULTILINE)
    called = re.compile(rf"(?<![\w.])(?<!def )({'|'.join(defined)})\(") if defined else None

    def hide(text: str) -> str:
        return called.sub(r'globals()["\1"](', text) if called is not None else text

    lines = (replace(line, text=hide(line.text), repaired=hide(line.repaired)) for line in program.lines)
    return replace(program, lines=tuple(lines))


def claims(text: str, observations: Observations | None = None) -> dict[tuple[str, int], Finding]:
    """The claims about devices, by rule and row."""
    found = Analyzer("program.py", Config(), None, observations).findings_in_code(text)
    told = (one for one in found if one.code in DEVICE_RULES and one.severity >= Severity.WARNING)
    return {(one.code, one.span.row): one for one in told}


def compare(program: Program, tally: Tally) -> None:
    """Compare what one run teaches, at each step another one, until nothing raises."""
    for step in range(STEPS):
        runs = {words: run(program.text, words) for words in subsets(program.words)}
        words = [*runs][(step + tally.programs) % len(runs)]
        observations = observe(program.text, words)
        if observations is not None:
            tally.runs += 1
            read, taught = claims(program.text), claims(program.text, observations)
            for code, row in taught.keys() - read.keys():
                if code not in SILENT:
                    _gained(program, taught[code, row], runs[words], tally)
            _withdrawn(program, read.keys() - taught.keys(), {row for _, row in taught}, runs[words], tally)
        failed = next((seen.failed for seen in runs.values() if seen.failed), None)
        if failed is None:
            return
        program = program.repair(failed[0])


def _gained(program: Program, finding: Finding, seen: Run, tally: Tally) -> None:
    """A claim that is made with the run alone says so, and comes true, unless the run has died before later calls."""
    code, row = finding.code, finding.span.row
    tally.gained[code] += 1
    if not any("in run.json" in place.label for place in finding.related):
        raise Disagreement("does not say on what it rests", program, row, f"{code} {finding.message}")
    rows = {row, *(place.span.row for place in finding.related)} if code in ELSEWHERE else {row}
    came = _comes_true(program, rows)
    tally.confirmed += came is True
    tally.unreached += came is None
    # what it says of some paths, or of callers that keep things on an accelerator, no run has to show
    if came is False and seen.failed:
        tally.cut += 1
    elif came is False and row not in seen.reached and _hangs_on_a_word(program, code, row):
        tally.hanging += 1
    elif came is False and not _ON_SOME_PATH.search(finding.message):
        raise Disagreement("false claim by observation", program, row, f"{code} {finding.message}")


def _hangs_on_a_word(program: Program, code: str, row: int) -> bool:
    """Whether a run that reaches the row finds things elsewhere, and teaches no such claim."""
    for _ in range(STEPS):
        runs = {words: run(program.text, words) for words in subsets(program.words)}
        for words, seen in runs.items():
            observations = observe(program.text, words) if row in seen.reached else None
            if observations is not None and (code, row) not in claims(program.text, observations):
                return True
        failed = next((seen.failed for seen in runs.values() if seen.failed), None)
        if failed is None:
            return False
        program = program.repair(failed[0])
    return False


def _withdrawn(program: Program, gone: Iterable[tuple[str, int]], claimed: set[int], seen: Run, tally: Tally) -> None:
    """A claim that is not made any more with the run does not come true in that run."""
    for code, row in gone:
        if code not in SILENT and row not in claimed:
            tally.withdrawn += 1
            if row in seen.failed[:1]:
                raise Disagreement("withdrawn by observation", program, row, code)


def _comes_true(program: Program, rows: set[int]) -> bool | None:
    """Whether one of the rows raises in some run, ``None`` where no run reaches them.

    What is claimed of a row behind one that raises, in the same function, hangs on how that one is mended.
    """
    reached = False
    row = min(rows)
    for _ in range(STEPS):
        runs = [run(program.text, words) for words in subsets(program.words)]
        reached = reached or any(rows & seen.reached for seen in runs)
        failures = [seen.failed for seen in runs if seen.failed]
        if any(rows.intersection(failed) for failed in failures):
            return True
        if not failures:
            break
        first = failures[0][0]
        if first < row and program.function_of(first) == program.function_of(row):
            return True
        program = program.repair(first)
    return False if reached else None


def fuzz(seeded: int, number: int) -> Tally:
    """Draw, and compare: two programs whose calls cannot be followed to one of the random programs of all."""
    simulate()
    tally = Tally()
    drawn: dict[str, Program] = {}
    draw(number // 3, seeded, lambda program: drawn.setdefault(program.text, hidden(program)) and None)
    programs = [program for program in drawn.values() if "def " in program.text]
    programs += [callers.draw(seeded * 1_000_000 + each) for each in range(number - len(programs))]
    for program in programs:
        before = tally.runs
        try:
            compare(program, tally)
        except Disagreement as disagreement:
            tally.disagreements.append(str(disagreement))
        except NotAProgram:
            tally.rejected += 1
            continue
        tally.programs += 1
        tally.observed += tally.runs > before
    return tally


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.accuracy.fuzz.taught")
    parser.add_argument("--programs", type=int, default=1_000, help="so many draws")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    tally = fuzz(options.seed, options.programs)
    for text in tally.disagreements:
        print(text)
    print(
        f"{tally.programs} programs ({tally.rejected} rejected), of which {tally.observed} taught something in "
        f"{tally.runs} runs: "
        f"{tally.gained.total()} claims gained {dict(tally.gained)}, {tally.confirmed} confirmed, {tally.unreached} of "
        f"rows that no run reaches, {tally.cut} not true of calls after the run died, {tally.hanging} of a "
        f"branch and a place that hang on one word; {tally.withdrawn} withdrawn; "
        f"{len(tally.disagreements)} disagreements"
    )
    return int(bool(tally.disagreements))


if __name__ == "__main__":
    sys.exit(main())
