"""What `devlint check --fix --unsafe-fixes` does to real code, held to what a fix promises."""

from __future__ import annotations

import ast
import difflib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devlint.check.analysis import check_source
from devlint.check.engine import check_paths
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Applicability, Finding
from devlint.source.text import decode, split_lines
from tests.followed import added, codes

from .errors import EcosystemError
from .wheels import Wheel

EVERY_RULE = Config(rule_layers=(RuleLayer(select=("ALL",)),))
_IMPORT = re.compile(r"\s*(?:import \w+)?\s*")


@dataclass(slots=True)
class Outcome:
    """What fixes did to the files of a wheel, and every promise that they broke, in a line each."""

    wheel: Wheel
    findings: int = 0
    safe: int = 0
    unsafe: int = 0
    files: int = 0
    lines: int = 0
    remaining: int = 0
    broken: list[str] = field(default_factory=list)

    def row(self) -> str:
        """A row of the table; :data:`HEAD` names the columns."""
        numbers = (self.findings, self.safe, self.unsafe, self.files, self.lines, self.remaining, len(self.broken))
        return f"{self.wheel.name:<14}" + "".join(f"{number:>11}" for number in numbers)


HEAD = f"{'':<14}" + "".join(
    f"{title:>11}" for title in ("findings", "safe", "unsafe", "files", "lines", "remaining", "broken")
)


def fix_wheel(wheel: Wheel, folder: Path, jobs: int) -> Outcome:
    """Fix a copy of an unpacked wheel, and compare it with the original."""
    outcome = Outcome(wheel)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder, copy)
        before = _findings(copy, jobs)
        outcome.broken += _run(copy, jobs)
        fixed = {file: file.read_bytes() for file in sorted(copy.rglob("*.py"))}
        after = _findings(copy, jobs)
        outcome.broken += _run(copy, jobs)
        for file, data in fixed.items():
            name = file.relative_to(copy)
            original = (folder / name).read_bytes()
            outcome.broken += [f"{name}:{line}" for line in _judge(original, data, before[file], after[file])]
            if file.read_bytes() != data:
                outcome.broken.append(f"{name}: a second run changes it again")
            outcome.files += original != data
            outcome.lines += sum(last - first for first, last, _ in _changes(_lines(original), _lines(data)))
    found = [finding for group in before.values() for finding in group]
    outcome.findings, outcome.remaining = len(found), sum(map(len, after.values()))
    outcome.safe = sum(_applicability(finding) is Applicability.SAFE for finding in found)
    outcome.unsafe = sum(_applicability(finding) is Applicability.UNSAFE for finding in found)
    return outcome


def _findings(folder: Path, jobs: int) -> defaultdict[Path, list[Finding]]:
    grouped: defaultdict[Path, list[Finding]] = defaultdict(list)
    for finding in check_paths([folder], EVERY_RULE, jobs).findings:
        grouped[Path(finding.filename)].append(finding)
    return grouped


def _run(folder: Path, jobs: int) -> list[str]:
    """Fix all that can be fixed, as a user does; the lines that say what could not be done."""
    command = [sys.executable, "-m", "devlint", "check", "--isolated", "--select", "ALL", "--fix", "--unsafe-fixes"]
    done = subprocess.run([*command, "-q", "--statistics", "-j", str(jobs), folder], capture_output=True, text=True)
    if done.returncode not in (0, 1, 2):
        raise EcosystemError(f"devlint ended with {done.returncode}: {done.stderr.strip()[-200:]}")
    return [line.replace(f"{folder}/", "") for line in done.stderr.splitlines()]


def _judge(original: bytes, fixed: bytes, before: Sequence[Finding], after: Sequence[Finding]) -> Iterator[str]:
    """The promises that the fixes of one file broke."""
    fixable = [finding for finding in before if finding.fix is not None]
    applied = codes(fixable)
    if more := added(before, after, applied):
        yield f"1: adds {dict(more)}"
    for code, number in applied.items():
        if codes(after)[code] > codes(before)[code] - number:
            rows = [finding.span.row for finding in after if finding.code == code]
            yield f"{rows[0]}: {code} is not silent: {codes(before)[code]} with {number} fixes, and then {len(rows)}"
    if original == fixed:
        return
    if _parses(original) and not _parses(fixed):
        yield "1: does not parse any more"
    reported = {row for finding in fixable for first, last in _rows(finding) for row in range(first, last + 1)}
    for first, last, new in _changes(_lines(original), _lines(fixed)):
        if first == last and all(_IMPORT.fullmatch(line) for line in new):
            continue
        strange = [row for row in range(first + 1, last + 1) if row not in reported]
        alone = first == last and not reported & {first, first + 1}
        if (strange or alone) and not _reported_once_the_rest_is_fixed(original, fixed, (first, last)):
            yield f"{(strange or [first + 1])[0]}: changed, but not reported: {new[:1]}"


def _reported_once_the_rest_is_fixed(original: bytes, fixed: bytes, place: tuple[int, int]) -> bool:
    """Whether a change was for a finding that only other fixes brought to light: without it, there is that finding."""
    old, new = _lines(original), _lines(fixed)
    pieces, rows = [], range(0)
    for kind, first, last, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal" and (first, last) == place:
            rows = range(len(pieces) + 1, len(pieces) + last - first + 2)
        pieces += old[first:last] if (first, last) == place else new[start:end]
    found = [finding for finding in check_source("\n".join(pieces), config=EVERY_RULE) if finding.fix]
    return any(first in rows or last in rows for finding in found for first, last in _rows(finding))


def _rows(finding: Finding) -> Iterator[tuple[int, int]]:
    """First and last row of the statement that a finding is about, and of all places that it shows in its own file."""
    yield (finding.span.row, finding.span.end_row) if finding.context is None else finding.context.rows
    yield from ((place.span.row, place.span.end_row) for place in finding.related if not place.filename)


def _changes(old: list[str], new: list[str]) -> Iterator[tuple[int, int, list[str]]]:
    """The ranges of old lines that were replaced, and by what."""
    if old != new:
        for kind, first, last, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind != "equal":
                yield first, last, new[start:end]


def _applicability(finding: Finding) -> Applicability | None:
    return finding.fix.applicability if finding.fix else None


def _parses(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except SyntaxError:
        return False
    return True


def _lines(data: bytes) -> list[str]:
    text = decode(data)
    return split_lines(text) if isinstance(text, str) else []
