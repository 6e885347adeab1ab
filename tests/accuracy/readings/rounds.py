"""A round of a reading: what was drawn of what was found, and what the two readers say."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.ecosystem.verdicts import DEBATABLE, RIGHT, WRONG

FOLDER = Path(__file__).parent
SEVERITIES = ("error", "warning", "info")


class RoundError(Exception):
    """A round cannot be drawn or judged; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A repository at a commit, and how much of it there is: lines of Python and findings by default."""

    name: str
    commit: str
    lines: int
    findings: int

    @property
    def density(self) -> float:
        """Findings per 1,000 lines."""
        return 1000 * self.findings / self.lines if self.lines else 0.0


@dataclass(slots=True)
class Drawn:
    """A finding that was drawn, by its place, and the verdicts of the two readers with their reasons."""

    repository: str
    path: str
    row: int
    code: str
    severity: str
    first: str = ""
    second: str = ""
    why_first: str = ""
    why_second: str = ""

    @property
    def verdict(self) -> str:
        """What both say; debatable where they differ."""
        return self.first if self.first == self.second else DEBATABLE


@dataclass(slots=True)
class Round:
    """A round as it is kept; ``population`` counts all findings by severity and rule, as ``"warning DVL601"``."""

    number: int
    date: str
    devlint: str
    seed: str
    repositories: list[Subject]
    population: dict[str, int]
    drawn: list[Drawn] = field(default_factory=list)

    @property
    def judged(self) -> bool:
        """Whether both readers have answered for all that was drawn."""
        return all(finding.first and finding.second for finding in self.drawn)

    @property
    def density(self) -> float:
        """Findings per 1,000 lines in the median repository."""
        return median(subject.density for subject in self.repositories)


class Shares(NamedTuple):
    """How much of a kind of findings is right, debatable and wrong: shares of 1, and how many were read."""

    read: int
    right: float
    debatable: float
    wrong: float


def shares(round_: Round, severities: Sequence[str], weighted: bool = True) -> Shares:
    """The shares of the findings of ``severities``: each group of a severity and a rule by how often it was found."""
    groups: dict[str, list[str]] = defaultdict(list)
    for finding in round_.drawn:
        if finding.severity in severities:
            groups[f"{finding.severity} {finding.code}"].append(finding.verdict)
    totals: Counter[str] = Counter()
    for group, verdicts in groups.items():
        weight = round_.population[group] / len(verdicts) if weighted else 1
        for verdict in verdicts:
            totals[verdict] += weight  # type: ignore[assignment]  # a weight is no whole number
    whole = totals.total() or 1
    read = sum(map(len, groups.values()))
    return Shares(read, *(totals[word] / whole for word in (RIGHT, DEBATABLE, WRONG)))


class Candidate(NamedTuple):
    """A finding that may be drawn, ``text`` being all that its reader is told."""

    severity: str
    code: str
    repository: str
    path: str
    row: int
    text: str


def draw(candidates: Iterable[Candidate], number: int, seed: str) -> list[Candidate]:
    """``number`` findings: groups of a severity and a rule in turn, their repositories in turn, then at random."""
    chance = random.Random(seed)
    groups: dict[tuple[int, str], dict[str, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(candidates):
        groups[SEVERITIES.index(one.severity), one.code][one.repository].append(one)
    queues = [_in_turn(groups[group], chance) for group in sorted(groups)]
    drawn: list[Candidate] = []
    while len(drawn) < number and any(queues):
        drawn += [queue.pop(0) for queue in queues if queue]
    return drawn[:number]


def _in_turn(by_repository: dict[str, list[Candidate]], chance: random.Random) -> list[Candidate]:
    """All findings of a group: one of each repository, in an order by chance, and again until none is left."""
    names = sorted(by_repository)
    chance.shuffle(names)
    for name in names:
        chance.shuffle(by_repository[name])
    longest = max(map(len, by_repository.values()))
    return [by_repository[name][turn] for turn in range(longest) for name in names if turn < len(by_repository[name])]


def load(file: Path) -> Round:
    """A round as it was kept in ``file``."""
    kept = json.loads(file.read_text(encoding="utf-8"))
    subjects = [Subject(**one) for one in kept.pop("repositories")]
    drawn = [Drawn(**one) for one in kept.pop("drawn")]
    return Round(**kept, repositories=subjects, drawn=drawn)


def store(round_: Round, folder: Path = FOLDER) -> Path:
    """Keep a round; returns its file."""
    file = folder / f"{round_.number}.json"
    file.write_text(json.dumps(asdict(round_), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


def rounds(folder: Path = FOLDER) -> list[Round]:
    """All rounds, oldest first."""
    return sorted((load(file) for file in folder.glob("*.json")), key=lambda one: one.number)


def judge(round_: Round, first: Path, second: Path) -> None:
    """Enter the readers' answers; all of them or none."""
    words = (RIGHT, DEBATABLE, WRONG)
    answers = [{int(one["number"]): one for one in json.loads(file.read_text("utf-8"))} for file in (first, second)]
    for number in range(1, len(round_.drawn) + 1):
        for file, given in zip((first, second), answers, strict=True):
            if given.get(number, {}).get("verdict") not in words:
                raise RoundError(f"{file}: no verdict of {', '.join(words)} on finding {number}")
    for number, finding in enumerate(round_.drawn, 1):
        finding.first, finding.second = (given[number]["verdict"] for given in answers)
        finding.why_first, finding.why_second = (given[number].get("why", "") for given in answers)
