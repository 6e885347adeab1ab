"""How `check` does on bug fixes of repositories it was not made with: ``python -m tests.accuracy.unseen``.

``unseen.jsonl`` lists the fixes by their commits, files and lines, and says whether devlint found them at first sight,
before anything was changed on their account. Those of the second round were gathered blindly, and nothing was.
``unseen_read.csv`` has the verdicts on the findings of the first round's repositories, which were read at first sight.
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
READ = Path(__file__).with_name("unseen_read.csv")
COMMAND = "python -m tests.accuracy.unseen --score PATH --mirror DIR"


def main(arguments: Sequence[str] | None = None) -> int:
    """Score, keep the figures, and say on standard output what was counted."""
    ask = argparse.ArgumentParser(prog="python -m tests.accuracy.unseen", description=__doc__)
    ask.add_argument("--score", type=Path, required=True, help="the scorer of the collection that `mined` scores")
    ask.add_argument("--mirror", type=Path, required=True, help="the folder with the repositories")
    given = ask.parse_args(arguments)
    if not given.score.is_file() or not given.mirror.is_dir():
        ask.error("the scorer is a file and the mirror a folder; neither comes with devlint")
    cases = read(CASES)
    rows, _, _ = scored(given.score, given.mirror, "--cases", str(CASES), "--traps", os.devnull)
    absent = len(cases) - len(rows)
    if absent:
        sys.stdout.write(f"{absent} of {len(cases)} fixes are not in the mirror\n")
        return 1
    found = figures(cases, {row["id"]: row["hit"] for row in rows})
    sys.stdout.write(f"{found.summary}\nkept in {save('unseen', found)}\n")
    return 0


def read(path: Path) -> list[Row]:
    """The fixes of a collection."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def figures(cases: Sequence[Row], hits: dict[str, bool]) -> Figures:
    """The outcome for docs/accuracy.md: ``hits`` says of each fix, by its id, whether its bug is found now."""
    rows = [{**case, "hit": hits[case["id"]]} for case in sorted(cases, key=lambda case: str(case["id"]))]
    first, second = ([row for row in rows if row["round"] == number] for number in (1, 2))
    at_first = _shares([_at_first(row) for row in first])
    now, blind = _shares(first), _shares(second)
    summary = (
        f"The collection above was at hand while the rules were made. So {len(first)} other fixes were gathered from "
        f"{_repositories_of(first)} repositories which nobody had looked at, in the order in which their histories "
        "have them, and judged before devlint was asked. At first sight it found, of the bugs that can be seen in the "
        f"file, {at_first['yes']}, of those that need a plausible assumption {at_first['heuristic']}, and of the rest, "
        f"where silence is right, it reported {at_first['no']}. After the causes were mended that these repositories "
        f"brought up, most of them wrong findings, it is {now['yes']}, {now['heuristic']} and {now['no']}. A second "
        f"round of {len(second)} fixes of {_repositories_of(second)} further repositories was gathered by readers who "
        f"saw nothing of devlint, and nothing was mended on its account: {blind['yes']}, {blind['heuristic']} and "
        f"{blind['no']}. These and the first figures are those to expect of other code."
    )
    return Figures(
        "Bugs of repositories not seen before", COMMAND, summary, (_read(), _repositories(rows), *_missed(rows))
    )


def _read() -> Table:
    """The verdicts on what devlint said of the first round's repositories without configuration."""
    columns, *rows = csv.reader(READ.read_text(encoding="utf-8").splitlines())
    numbers = [[int(cell) for cell in cells] for _, *cells in rows]
    told = [[row[0], *cells] for row, cells in zip(rows, numbers, strict=True)]
    total = ["**all**", *(sum(column) for column in zip(*numbers, strict=True))]
    return Table("Findings at first sight, all or nearly all of them read in their code:", columns, [*told, total])


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
            chosen = [row for row in _of(rows, key) if row["repo"] == name]
            at_first, now = (sum(row[field] for row in chosen) for field in ("first_look", "hit"))
            cells.append(f"{at_first}; {now} of {len(chosen)}" if chosen else "")
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
