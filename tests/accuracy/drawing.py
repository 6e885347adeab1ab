"""A random draw of findings that hardly changes when findings come and go, and a reader's verdicts on them.

A finding is drawn if the hash of its place and its line is among the lowest. One that is new or gone moves the border
by one place; all others that were drawn stay drawn, and keep their verdict. A verdict knows its line by a hash: no line
of the code that was read is kept.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

from tests.ecosystem.reported import Reported
from tests.ecosystem.verdicts import DEBATABLE, RIGHT, UNREAD, WORDS, WRONG

SEED = "devlint"
NUMBER = 200
SHARE_OF_ALL, SHARE_OF_A_RULE = 0.95, 0.90
"""The promise: so many of the findings read are right, of all and of each rule; a debatable one is not right."""
HEX_DIGITS = 12


class DrawingError(Exception):
    """The kept verdicts cannot be used; the message is one clear line."""


class Place(NamedTuple):
    """A finding by which it is known again: the line by its hash, and which of several equal ones it is."""

    project: str
    path: str
    code: str
    line: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """A finding in a project that was checked."""

    place: Place
    version: str
    finding: Reported

    @property
    def rank(self) -> str:
        """Where it stands in the draw: a number that looks random and depends on nothing else."""
        return hashlib.sha256("\0".join(map(str, (SEED, *self.place))).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reader thinks of one finding: a row of the file."""

    project: str
    version: str
    path: str
    row: int
    code: str
    severity: str
    verdict: str
    why: str
    line: str

    @property
    def order(self) -> tuple[str, str, int, str]:
        """How the file is sorted."""
        return self.project, self.path, self.row, self.code


def hashed(line: str) -> str:
    """A line of code as it is kept: enough to know it again, and nothing to read."""
    return hashlib.sha256(line.strip().encode()).hexdigest()[:HEX_DIGITS]


def found_in(project: str, version: str, findings: Iterable[Reported]) -> list[Found]:
    """The findings of one project, equal ones numbered in the order of their rows."""
    seen: Counter[Place] = Counter()
    result = []
    for finding in sorted(findings, key=lambda finding: finding.identity):
        path, _, code = finding.identity
        place = Place(project, path, code, hashed(finding.line))
        result.append(Found(place._replace(number=seen[place]), version, finding))
        seen[place] += 1
    return result


def without_twins(findings: Iterable[Found]) -> list[Found]:
    """The findings, but for those that an earlier project has at the same place: a release and its repository."""
    kept: dict[tuple[str, str, str, int], Found] = {}
    for found in findings:
        _, path, *rest = found.place
        kept.setdefault((path.removeprefix("src/"), *rest), found)  # type: ignore[arg-type]  # the rest of a Place
    return list(kept.values())


def draw(findings: Iterable[Found], number: int = NUMBER) -> list[Found]:
    """The findings whose rank is lowest, in order of place."""
    return sorted(sorted(findings, key=lambda found: found.rank)[:number], key=lambda found: found.finding.identity)


class Reading(NamedTuple):
    """What was drawn, with ``None`` for a verdict where nobody has read it, and the verdicts on what is not drawn."""

    drawn: list[tuple[Found, Verdict | None]]
    others: list[Verdict]

    @property
    def unread(self) -> list[Found]:
        """What a reader still has to read."""
        return [found for found, verdict in self.drawn if verdict is None or verdict.verdict == UNREAD]


def match(drawn: Iterable[Found], verdicts: Iterable[Verdict]) -> Reading:
    """Give each finding the verdict on its line; of several equal lines the one whose row is nearest."""
    waiting: dict[tuple[str, ...], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        waiting[verdict.project, verdict.version, verdict.path, verdict.code, verdict.line].append(verdict)
    pairs: list[tuple[Found, Verdict | None]] = []
    for found in drawn:
        place, row = found.place, found.finding.identity.row
        candidates = waiting[place.project, found.version, place.path, place.code, place.line]
        nearest = min(candidates, key=lambda verdict: abs(verdict.row - row), default=None)
        if nearest is not None:
            candidates.remove(nearest)
        pairs.append((found, nearest))
    return Reading(pairs, [verdict for left in waiting.values() for verdict in left])


def load(file: Path) -> list[Verdict]:
    """The verdicts in ``file``, checked."""
    with file.open(encoding="utf-8", newline="") as stream:
        return [_verdict(row, f"{file.name} line {number}") for number, row in enumerate(csv.DictReader(stream), 2)]


def _verdict(row: dict[str, str], place: str) -> Verdict:
    try:
        verdict = Verdict(**{**row, "row": int(row["row"])})  # type: ignore[arg-type]  # all others are text
    except (KeyError, TypeError, ValueError) as error:
        raise DrawingError(f"{place}: not a verdict: {error}") from error
    if verdict.verdict not in WORDS:
        raise DrawingError(f"{place}: {verdict.verdict!r} is none of {', '.join(WORDS)}")
    if verdict.verdict != UNREAD and not verdict.why:
        raise DrawingError(f"{place}: no reason is given")
    return verdict


def store(file: Path, reading: Reading) -> None:
    """Write all verdicts, with a ``?`` for what nobody has read; a ``?`` on what is not drawn any more is dropped."""
    rows = [verdict for verdict in reading.others if verdict.verdict != UNREAD]
    for found, verdict in reading.drawn:
        word, why = (verdict.verdict, verdict.why) if verdict else (UNREAD, "")
        path, row, code = found.finding.identity
        about = (found.place.project, found.version, path, row, code, found.finding.severity)
        rows.append(Verdict(*about, word, why, found.place.line))
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(Verdict)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in sorted(rows, key=lambda row: row.order))


class Tally(NamedTuple):
    """How many of the findings of a rule were drawn, and what they are."""

    code: str
    found: int
    right: int
    wrong: int
    debatable: int

    @property
    def read(self) -> int:
        """All that have a verdict."""
        return self.right + self.wrong + self.debatable

    @property
    def share(self) -> float:
        """The share that is right, strictly."""
        return self.right / self.read


def tallies(population: Iterable[Found], reading: Reading) -> list[Tally]:
    """A row per rule of which a finding was read, and last the sum of them all."""
    number = Counter(found.place.code for found in population)
    words = Counter((found.place.code, verdict.verdict) for found, verdict in reading.drawn if verdict)
    rules = sorted({code for code, word in words if word != UNREAD})
    rows = [Tally(code, number[code], *(words[code, word] for word in (RIGHT, WRONG, DEBATABLE))) for code in rules]
    sums = (sum(getattr(row, word) for row in rows) for word in (RIGHT, WRONG, DEBATABLE))
    return [*rows, Tally("all", number.total(), *sums)]


def shortfalls(rows: Sequence[Tally]) -> list[str]:
    """What falls short of the promise, in a line each."""
    return [
        f"{row.code}: {row.right} of {row.read} are right; {promised:.0%} are promised"
        for row in rows
        for promised in [SHARE_OF_ALL if row.code == "all" else SHARE_OF_A_RULE]
        if row.share < promised
    ]
