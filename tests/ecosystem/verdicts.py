"""A reader's verdicts on findings: kept in CSV files, matched with what devlint reports, summed up per rule.

A verdict belongs to a finding with the same path, code and source line, so that it survives when lines move. Where one
line stands in a file several times, the verdict of the same row is taken first and the others in order.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple

from .compare import HERE
from .errors import EcosystemError
from .reported import Identity, Reported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from .wheels import Wheel

RIGHT, WRONG, DEBATABLE, UNREAD = "right", "wrong", "debatable", "?"
WORDS = (RIGHT, WRONG, DEBATABLE, UNREAD)

READ_BY_HAND = ("timm", "ultralytics", "accelerate", "lightning", "diffusers", "transformers")
SHARE_RIGHT = 0.95
"""The promise: of what is reported by default, at least this share is right, a debatable finding being half right."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reader thinks of one finding: a row of ``verdicts/WHEEL.csv``."""

    path: str
    row: int
    code: str
    verdict: str
    why: str
    line: str

    @property
    def identity(self) -> Identity:
        """Where the finding was when it was read."""
        return Identity(self.path, self.row, self.code)


class Matched(NamedTuple):
    """A finding and its verdict, if somebody has read it."""

    finding: Reported
    verdict: Verdict | None

    @property
    def word(self) -> str:
        """The verdict in a word; a row which waits for its reader counts as unread."""
        return self.verdict.verdict if self.verdict else UNREAD


@dataclass(frozen=True, slots=True)
class Reading:
    """All findings of a wheel with their verdicts, and the verdicts whose finding is gone."""

    matched: tuple[Matched, ...]
    gone: tuple[Verdict, ...]

    @property
    def unread(self) -> tuple[Reported, ...]:
        """The findings which somebody still has to read."""
        return tuple(pair.finding for pair in self.matched if pair.word == UNREAD)


def match(findings: Iterable[Reported], verdicts: Iterable[Verdict]) -> Reading:
    """Give each finding its verdict; one verdict judges one finding."""
    waiting: dict[tuple[str, str, str], list[Verdict]] = defaultdict(list)
    for verdict in sorted(verdicts, key=lambda verdict: verdict.identity):
        waiting[verdict.path, verdict.code, verdict.line].append(verdict)
    ordered = sorted(findings, key=lambda finding: finding.identity)
    taken: dict[int, Verdict] = {}
    for same_row in (True, False):
        for number, finding in enumerate(ordered):
            path, row, code = finding.identity
            candidates = waiting[path, code, finding.line]
            if same_row:
                candidates = [verdict for verdict in candidates if verdict.row == row]
            if number not in taken and candidates:
                taken[number] = candidates[0]
                waiting[path, code, finding.line].remove(candidates[0])
    gone = sorted((verdict for left in waiting.values() for verdict in left), key=lambda verdict: verdict.identity)
    return Reading(tuple(Matched(finding, taken.get(number)) for number, finding in enumerate(ordered)), tuple(gone))


def verdict_file(wheel: Wheel, folder: Path = HERE) -> Path:
    """Where the verdicts on a wheel are kept."""
    return folder / "verdicts" / f"{wheel.name}.csv"


def load_verdicts(file: Path) -> list[Verdict]:
    """The verdicts in ``file``; none if there is no such file."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as stream:
        return [_verdict(row, f"{file.name} line {number}") for number, row in enumerate(csv.DictReader(stream), 2)]


def _verdict(row: Mapping[str, str | None], place: str) -> Verdict:
    """One row of a file, checked."""
    try:
        path, number, code, word, why, line = (str(row[field.name] or "") for field in fields(Verdict))
        verdict = Verdict(path, int(number), code, word, why, line)
    except (KeyError, ValueError) as error:
        columns = ", ".join(field.name for field in fields(Verdict))
        raise EcosystemError(f"{place}: not a verdict ({columns}): {error}") from error
    if verdict.verdict not in WORDS:
        raise EcosystemError(f"{place}: {verdict.verdict!r} is none of {', '.join(WORDS)}")
    if verdict.verdict in (WRONG, DEBATABLE) and not verdict.why:
        raise EcosystemError(f"{place}: {verdict.verdict} needs a why")
    return verdict


def store_verdicts(file: Path, verdicts: Iterable[Verdict]) -> None:
    """Write ``verdicts`` to ``file``, in order of place."""
    file.parent.mkdir(exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(Verdict)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(verdict) for verdict in sorted(verdicts, key=lambda verdict: verdict.identity))


def with_unread_rows(reading: Reading) -> list[Verdict]:
    """The verdicts at their present rows, and a ``?`` row for each finding which has to be read.

    A verdict whose finding is gone is kept, since the finding may come back; a ``?`` row without a finding is not.
    """
    present = [replace(verdict, row=finding.identity.row) for finding, verdict in reading.matched if verdict]
    waiting = [
        Verdict(*pair.finding.identity, verdict=UNREAD, why="", line=pair.finding.line)
        for pair in reading.matched
        if pair.verdict is None
    ]
    return [*present, *waiting, *(verdict for verdict in reading.gone if verdict.verdict != UNREAD)]


class Tally(NamedTuple):
    """How many findings got which verdict."""

    right: int
    wrong: int
    debatable: int
    unread: int

    @property
    def share(self) -> float | None:
        """The share right of those that were read, debatable ones by half; None if none was."""
        read = self.right + self.wrong + self.debatable
        return (self.right + self.debatable / 2) / read if read else None


def tally(pairs: Iterable[Matched]) -> Tally:
    """Count the verdicts."""
    words = [pair.word for pair in pairs]
    return Tally(*(words.count(word) for word in WORDS))


def table(pairs: Sequence[Matched]) -> Iterator[str]:
    """The verdicts per rule and severity, then all together."""
    groups: dict[str, list[Matched]] = defaultdict(list)
    for pair in pairs:
        groups[f"{pair.finding.identity.code} {pair.finding.severity}"].append(pair)
    yield f"{'rule':16}{'right':>7}{'wrong':>7}{'debatable':>11}{'unread':>8}{'share right':>13}"
    for name, group in [*sorted(groups.items()), ("all", pairs)]:
        result = tally(group)
        share = "-" if result.share is None else f"{result.share:.1%}"
        yield f"{name:16}{result.right:7}{result.wrong:7}{result.debatable:11}{result.unread:8}{share:>13}"
