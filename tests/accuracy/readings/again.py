"""Which of the findings that readers judged are still told by today's devlint, and how: what a mend did to them."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.accuracy.repositories import MirrorError, Repository, first_run, unpack
from tests.ecosystem.verdicts import DEBATABLE, RIGHT, WRONG

from .__main__ import READ
from .rounds import FOLDER, Drawn, load

MOVED = 3
"""A finding counts as still told where the same rule speaks within so many lines: it may name another of the places."""


class Outcome(NamedTuple):
    """A finding that readers judged, and how it is told now; both texts are empty where it is not told."""

    round: int
    finding: Drawn
    severity: str
    text: str


def main() -> int:
    """0 if all rounds could be read again; 2, with a line that says why, if not."""
    parser = argparse.ArgumentParser("python -m tests.accuracy.readings.again", description=__doc__)
    parser.add_argument("rounds", nargs="+", type=int)
    parser.add_argument("--mirror", type=Path, required=True)
    parser.add_argument("--folder", type=Path, help="where to unpack the repositories, which then stay there")
    parser.add_argument("--output", type=Path, help="a file for all outcomes, as JSON")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="devlint-again-") as scratch:
            folder = options.folder or Path(scratch)
            outcomes = [one for number in options.rounds for one in _again(number, options.mirror, folder)]
    except (OSError, ValueError, MirrorError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.output:
        kept = [{"round": one.round, "now": one.severity, "text": one.text, **_plain(one.finding)} for one in outcomes]
        options.output.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for line in table(outcomes):
        print(line)
    return 0


def table(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """A line per rule and severity of what is still told: right, debatable and wrong ones, and those no longer told."""
    told: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    gone: dict[str, Counter[str]] = defaultdict(Counter)
    for one in outcomes:
        if one.severity:
            told[one.severity, one.finding.code][one.finding.verdict] += 1
        else:
            gone[one.finding.code][one.finding.verdict] += 1
    for (severity, code), words in sorted(told.items()):
        yield f"{severity:8}{code} {_counts(words)}"
    for kind, severities in (("errors, warnings", ("error", "warning")), ("hints", ("info",))):
        together = sum((words for (severity, _), words in told.items() if severity in severities), Counter[str]())
        yield f"{kind}: {_counts(together)}"
    yield f"no longer told: {_counts(sum(gone.values(), Counter[str]()))}"


def _counts(words: Counter[str]) -> str:
    return " / ".join(str(words[word]) for word in (RIGHT, DEBATABLE, WRONG))


def _plain(finding: Drawn) -> dict[str, object]:
    names = ("repository", "path", "row", "code", "severity", "verdict", "why_first", "why_second")
    return {name: getattr(finding, name) for name in names}


def _again(number: int, mirror: Path, folder: Path) -> list[Outcome]:
    """The outcomes of a round; repositories of which nothing was drawn are not read."""
    round_ = load(FOLDER / f"{number}.json")
    drawn = {finding.repository for finding in round_.drawn}
    subjects = [Repository(one.name, one.commit) for one in round_.repositories if one.name in drawn]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(pool.map(lambda one: (one.name, _found(one, mirror, folder)), subjects))
    return [Outcome(number, one, *_now(one, found[one.repository])) for one in round_.drawn]


def _found(repository: Repository, mirror: Path, where: Path) -> list[dict[str, object]]:
    folder = where.resolve() / repository.name.replace("/", "+")
    if not folder.is_dir():
        unpack(repository, mirror, folder, READ)
    return first_run(repository.name, folder)


def _now(finding: Drawn, entries: Sequence[dict[str, object]]) -> tuple[str, str]:
    """Severity and words of the finding of the same rule that is nearest, or two empty texts."""
    near = [
        (abs(row - finding.row), entry)
        for entry in entries
        if entry["code"] == finding.code and entry["filename"] == finding.path
        for row in [entry["location"]["row"]]  # type: ignore[index]  # an object of the agreed JSON
        if abs(row - finding.row) <= MOVED
    ]
    if not near:
        return "", ""
    entry = min(near, key=lambda one: one[0])[1]
    label, help_ = entry.get("label") or "", entry.get("help") or ""
    return str(entry["severity"]), f"{entry['message']}\n  {label}\n  help: {help_}"


if __name__ == "__main__":
    sys.exit(main())
