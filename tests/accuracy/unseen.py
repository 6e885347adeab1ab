"""How `check` does on bug fixes of repositories it was not made with: ``python -m tests.accuracy.unseen``.

``unseen.jsonl`` lists the fixes by their commits, files and lines, and says whether devlint found them at first sight,
before anything was changed on their account.  They came in rounds; from the second on they were gathered by readers who
saw nothing of devlint.  ``unseen_next.jsonl`` has the rounds since, gathered in that way, which ``--since`` scores.
``unseen_read.csv`` has the verdicts on the findings of repositories, read at first sight.
The repositories and the scorer have to be given, as in :mod:`tests.accuracy.mined`; nothing of their code is kept.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.accuracy.figures import Figures, Table, save
from tests.accuracy.mined import DECIDABLE, Row, scored, share

CASES = Path(__file__).with_suffix(".jsonl")
SINCE = Path(__file__).with_name("unseen_next.jsonl")
READ = Path(__file__).with_name("unseen_read.csv")
COMMAND = "python -m tests.accuracy.unseen --score PATH --mirror DIR"


def main(arguments: Sequence[str] | None = None) -> int:
    """Score, keep the figures, and say on standard output what was counted."""
    ask = argparse.ArgumentParser(prog="python -m tests.accuracy.unseen", description=__doc__)
    ask.add_argument("--score", type=Path, required=True, help="the scorer of the collection that `mined` scores")
    ask.add_argument("--mirror", type=Path, required=True, help="the folder with the repositories")
    ask.add_argument("--since", action="store_true", help="the rounds of `unseen_next.jsonl` instead of the first ones")
    given = ask.parse_args(arguments)
    if not given.score.is_file() or not given.mirror.is_dir():
        ask.error("the scorer is a file and the mirror a folder; neither comes with devlint")
    path = SINCE if given.since else CASES
    cases = read(path)
    rows, _, _ = scored(given.score, given.mirror, "--cases", str(path), "--traps", os.devnull)
    absent = len(cases) - len(rows)
    if absent:
        sys.stdout.write(f"{absent} of {len(cases)} fixes are not in the mirror\n")
        return 1
    found = (figures_since if given.since else figures)(cases, {row["id"]: row["hit"] for row in rows})
    sys.stdout.write(f"{found.summary}\nkept in {save(path.stem, found)}\n")
    return 0


def read(path: Path) -> list[Row]:
    """The fixes of a collection."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def figures(cases: Sequence[Row], hits: dict[str, bool]) -> Figures:
    """The outcome for docs/accuracy.md: ``hits`` says of each fix, by its id, whether its bug is found now."""
    rows = _rows(cases, hits)
    rounds = sorted({row["round"] for row in rows})
    last = [row for row in rows if row["round"] == rounds[-1]]
    first, now = _shares([_at_first(row) for row in last]), _shares(last)
    summary = (
        f"The collection above was at hand while the rules were made. So {len(rows)} other fixes were gathered from "
        f"{_repositories_of(rows)} repositories which nobody had looked at, in {len(rounds)} rounds, in the order in "
        "which their histories have them, and judged before devlint was asked; from the second round on by readers who "
        "saw nothing of devlint. After each round causes were mended that it, or the reading of findings, had brought "
        "up. At first sight the last of them found of the bugs that can "
        f"be seen in the file {first['yes']}, of those that need a plausible assumption {first['heuristic']}; of the "
        f"rest, where silence is right, it reported {first['no']}. Now it is {now['yes']}, {now['heuristic']} and "
        f"{now['no']}."
    )
    tables = (_rounds(rows), _classes(rows), _read(), _repositories(rows), *_missed(rows))
    return Figures("Bugs of repositories not seen before", COMMAND, summary, tables)


def figures_since(cases: Sequence[Row], hits: dict[str, bool]) -> Figures:
    """The same for the rounds since: what to expect of other code is what they found at first sight."""
    rows = _rows(cases, hits)
    first, now = _shares([_at_first(row) for row in rows]), _shares(rows)
    summary = (
        f"{len(rows)} more fixes, of {_repositories_of(rows)} other repositories, were gathered and judged in the same "
        "way. What to expect of other code is what these rounds found at first sight: of the bugs that can be seen in "
        f"the file {first['yes']}, of those that need a plausible assumption {first['heuristic']}; of the rest, where "
        f"silence is right, {first['no']}. Now it is {now['yes']}, {now['heuristic']} and {now['no']}."
    )
    tables = (_rounds(rows), _classes(rows), _repositories(rows), *_missed(rows))
    return Figures("Bugs of repositories not seen before: the rounds since", f"{COMMAND} --since", summary, tables)


def _rows(cases: Sequence[Row], hits: dict[str, bool]) -> list[Row]:
    """The fixes in order, each with whether its bug is found."""
    return [{**case, "hit": hits[case["id"]]} for case in sorted(cases, key=lambda case: str(case["id"]))]


def _rounds(rows: Sequence[Row]) -> Table:
    columns = ("round", "fixes", "repositories", *(f"{text} (first; now)" for text in DECIDABLE.values()))
    told: list[Sequence[object]] = []
    for number in sorted({row["round"] for row in rows}):
        chosen = [row for row in rows if row["round"] == number]
        first, now = _shares([_at_first(row) for row in chosen]), _shares(chosen)
        told.append(
            (number, len(chosen), _repositories_of(chosen), *(f"{first[key]}; {now[key]}" for key in DECIDABLE))
        )
    return Table("By round, found of all:", columns, told)


def _classes(rows: Sequence[Row]) -> Table:
    """The classes by round: a round with more literals of CUDA in it is an easier one."""
    seen = _of(rows, "yes")
    numbers = sorted({row["round"] for row in rows})
    told: list[Sequence[str]] = []
    for name in sorted({row["class"] for row in seen}):
        chosen = [row for row in seen if row["class"] == name]
        told.append((name, *(_counts([row for row in chosen if row["round"] == number]) for number in numbers)))
    caption = (
        f"By class, of what {DECIDABLE['yes']} (first; now of all). Rounds differ in how many of their bugs are a "
        "literal that names CUDA or a load without `map_location`, which take no following of values:"
    )
    return Table(caption, ("class", *(f"round {number}" for number in numbers)), told)


def _counts(rows: Sequence[Row]) -> str:
    """What was found at first and is found now, such as `3; 4 of 5`."""
    return (
        "; ".join(str(sum(row[key] for row in rows)) for key in ("first_look", "hit")) + f" of {len(rows)}"
        if rows
        else ""
    )


def _read() -> Table:
    """The verdicts on what devlint said of the repositories without configuration."""
    columns, *rows = csv.reader(READ.read_text(encoding="utf-8").splitlines())
    numbers = [[int(cell) for cell in cells] for _, _, *cells in rows]
    told = [[*row[:2], *cells] for row, cells in zip(rows, numbers, strict=True)]
    total = ["", "**all**", *(sum(column) for column in zip(*numbers, strict=True))]
    caption = (
        "Findings at first sight, all or nearly all of them read in their code. Where the statement was right and the "
        "advice was not, the finding counts as wrong; mended are those that are gone, and those that are true now:"
    )
    return Table(caption, columns, [*told, total])


def _shares(rows: Sequence[Row]) -> dict[str, str]:
    return {key: share(_of(rows, key)) for key in DECIDABLE}


def _repositories_of(rows: Iterable[Row]) -> int:
    return len({row["repo"] for row in rows})


def _of(rows: Iterable[Row], decidable: str) -> list[Row]:
    return [row for row in rows if row["decidable"] == decidable]


def _at_first(row: Row) -> Row:
    return {**row, "hit": row["first_look"]}


def _repositories(rows: list[Row]) -> Table:
    columns = ("repository", *(f"{text} (first; now)" for text in DECIDABLE.values()))
    told: list[Sequence[str]] = []
    for name in dict.fromkeys(row["repo"] for row in rows):
        cells = []
        for key in DECIDABLE:
            cells.append(_counts([row for row in _of(rows, key) if row["repo"] == name]))
        told.append((name, *cells))
    return Table("By repository, found of all:", columns, told)


def _missed(rows: list[Row]) -> Iterator[Table]:
    for key in ("yes", "heuristic"):
        missed = [row for row in _of(rows, key) if not row["hit"]]
        told = [(row["id"], row["class"], row.get("why") or row["note"]) for row in missed]
        if told:
            yield Table(f"Missed, of what {DECIDABLE[key]}:", ("bug", "class", "why, or what it is"), told)


if __name__ == "__main__":
    raise SystemExit(main())
