"""The command: draw a round, enter what its readers say, compute the figures."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

from tests.accuracy.figures import Figures, Table, save
from tests.accuracy.repositories import MirrorError, Repository, first_run, unpack
from tests.ecosystem.reported import REPOSITORY
from tests.ecosystem.verdicts import DEBATABLE, RIGHT, WRONG

from . import __doc__ as PROTOCOL
from .rounds import FOLDER, Candidate, Drawn, Round, RoundError, Subject, draw, judge, load, rounds, shares, store

NUMBER = 150
READ = (
    ".py",
    ".ipynb",
    ".toml",
    ".cfg",
    ".txt",
    ".yml",
    ".yaml",
    "Pipfile",
    ".md",
    ".MD",
    ".rst",
    "README",
    "Dockerfile",
    ".sh",
    ".pyi",
    ".ini",
    ".json",
    "LICENSE",
    "License",
    "LICENCE",
    "COPYING",
)
"""What `check` reads: code, what names it, where a project says which torch it needs, and under which terms it is."""


def main() -> int:
    """0 if it could be done; 2, with a line that says why, if not."""
    parser = argparse.ArgumentParser(
        "python -m tests.accuracy.readings", description=PROTOCOL, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step")
    drawing = steps.add_parser("draw")
    drawing.add_argument("number", type=int)
    drawing.add_argument("repositories", nargs="+", metavar="OWNER/NAME@COMMIT")
    drawing.add_argument("--mirror", type=Path, required=True)
    drawing.add_argument("--sheet", type=Path, required=True)
    drawing.add_argument("--seed", required=True)
    judging = steps.add_parser("judge")
    judging.add_argument("number", type=int)
    judging.add_argument("first", type=Path)
    judging.add_argument("second", type=Path)
    options = parser.parse_args()
    try:
        if options.step == "draw":
            _draw(options)
        elif options.step == "judge":
            round_ = load(FOLDER / f"{options.number}.json")
            judge(round_, options.first, options.second)
            store(round_)
        figures = _figures([one for one in rounds() if one.judged])
        save("readings", figures)
        print(figures.summary)
    except (OSError, ValueError, KeyError, MirrorError, RoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _draw(options: argparse.Namespace) -> None:
    candidates: list[Candidate] = []
    subjects = []
    with tempfile.TemporaryDirectory(prefix="devlint-reading-") as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        repositories = [Repository(*given.split("@")) for given in options.repositories]
        for subject, found in pool.map(lambda one: _checked(one, options.mirror, Path(scratch)), repositories):
            subjects.append(subject)
            candidates += found
    drawn = draw(candidates, NUMBER, options.seed)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True).stdout.strip()
    population = Counter(f"{one.severity} {one.code}" for one in candidates)
    kept = [Drawn(one.repository, one.path, one.row, one.code, one.severity) for one in drawn]
    store(Round(options.number, date.today().isoformat(), commit, options.seed, subjects, dict(population), kept))
    sheet = [f"## {number}. {one.repository}\n\n{one.text}\n" for number, one in enumerate(drawn, 1)]
    options.sheet.write_text("\n".join(sheet), encoding="utf-8")


def _checked(repository: Repository, mirror: Path, scratch: Path) -> tuple[Subject, list[Candidate]]:
    """A repository with its size, and what a first run finds in it."""
    folder = scratch.resolve() / repository.name.replace("/", "+")
    unpack(repository, mirror, folder, READ)
    found = list(_found(repository.name, folder))
    lines = sum(file.read_bytes().count(b"\n") for file in folder.rglob("*.py") if file.is_file())
    return Subject(repository.name, repository.commit, lines, len(found)), found


def _found(name: str, folder: Path) -> Iterator[Candidate]:
    """The findings of a repository as a first run shows them."""
    for entry in first_run(name, folder):
        path = entry["filename"]
        yield Candidate(entry["severity"], entry["code"], name, path, entry["location"]["row"], _told(path, entry))


def _told(path: str, entry: dict[str, object]) -> str:
    """A finding as its reader gets it."""
    cell = f" (cell {entry['cell']})" if entry.get("cell") else ""
    row, column = entry["location"].values()  # type: ignore[attr-defined]  # an object of the agreed JSON
    lines = [f"{path}{cell}:{row}:{column}: {entry['severity']}: {entry['message']}"]
    if entry.get("label"):
        lines.append(f"  at this place: {entry['label']}")
    for place in entry.get("related") or ():  # type: ignore[attr-defined]
        other = Path(place["filename"]).name if Path(place["filename"]).name != Path(path).name else "line"
        lines.append(f"  {other} {place['location']['row']}: {place.get('label') or place.get('message')}")
    if entry.get("help"):
        lines.append(f"  help: {entry['help']}")
    if entry.get("fix"):
        lines.append(f"  fix offered: {json.dumps(entry['fix'], ensure_ascii=False)}")
    return "\n".join(lines)


def _figures(done: list[Round]) -> Figures:
    if not done:
        raise RoundError("no round has been judged")
    last = done[-1]
    severe, hints = shares(last, ("error", "warning")), shares(last, ("info",))
    summary = (
        f"Two readers who knew neither the rules nor their authors judged {len(last.drawn)} findings of "
        f"{len(last.repositories)} repositories that devlint's authors had not seen, as their maintainers would. Of "
        f"errors and warnings {severe.right:.0%} are right, {severe.debatable:.0%} debatable and {severe.wrong:.0%} "
        f"wrong; of hints {hints.right:.0%}, {hints.debatable:.0%} and {hints.wrong:.0%}. The median repository has "
        f"{last.density:.1f} findings per 1,000 lines. Right means: true, and the maintainers would take the advice. "
        "Where the readers differ it counts as debatable. Groups of a rule and a severity count by how often they "
        "were found.\n\nFrom the ninth round on, repositories are such as have a commit of the last three years: only "
        "where somebody keeps one up can anybody merge something. The protocol is in "
        "`tests/accuracy/readings/__init__.py`, with each round's repositories, commits, seed and verdicts beside it. "
        "The first figures of each round stand, and no repository is read twice."
    )
    return Figures(
        "Findings in code nobody had seen, read by strangers",
        "python -m tests.accuracy.readings",
        summary,
        (_all_rounds(done), _by_rule(last)),
    )


def _all_rounds(done: list[Round]) -> Table:
    columns = ("round", "devlint", "repositories", "per 1,000 lines", "kind", "read", "right", "debatable", "wrong")
    rows = []
    for one in done:
        about = (one.number, one.devlint[:7], len(one.repositories), f"{one.density:.1f}")
        for kind, severities in (("errors, warnings", ("error", "warning")), ("hints", ("info",))):
            read, *parts = shares(one, severities)
            rows.append((*about, kind, read, *(f"{part:.0%}" for part in parts)))
    return Table("All rounds", columns, rows)


def _by_rule(last: Round) -> Table:
    words = Counter((one.code, one.severity, one.verdict) for one in last.drawn)
    rows = [
        (
            code,
            severity,
            last.population[f"{severity} {code}"],
            *tuple(words[code, severity, word] for word in (RIGHT, DEBATABLE, WRONG)),
        )
        for code, severity in sorted({(code, severity) for code, severity, _ in words})
    ]
    return Table("The last round by rule", ("rule", "severity", "found", "right", "debatable", "wrong"), rows)


if __name__ == "__main__":
    sys.exit(main())
