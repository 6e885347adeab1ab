"""How many bugs that were mended upstream `check` finds in the code before: ``python -m tests.accuracy.mined``.

The collection of fixes, its scorer and the repositories are not part of this one, and have to be given:
``--score PATH`` is the scorer, ``--mirror DIR`` holds the repositories.  Nothing of their code is kept, only counts,
and for each bug that was missed the reason in ``misses.json``, which a reader wrote.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.accuracy.figures import Figures, Table, save

REASONS = Path(__file__).with_name("misses.json")
COMMAND = "python -m tests.accuracy.mined --score PATH --mirror DIR"
DECIDABLE = {
    "yes": "can be seen in the file",
    "heuristic": "needs a plausible assumption",
    "no": "cannot be seen in the file",
}
_UNREAD = "not read yet"

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Score, keep the figures, and say on standard output what was counted."""
    ask = argparse.ArgumentParser(
        prog="python -m tests.accuracy.mined",
        description="Score `devlint check` on bug fixes of public repositories. The scorer and the repositories are no "
        "part of devlint: without them there is nothing to measure.",
    )
    ask.add_argument("--score", type=Path, required=True, help="the scorer of the collection")
    ask.add_argument("--mirror", type=Path, required=True, help="the folder with the repositories")
    given = ask.parse_args(arguments)
    if not given.score.is_file() or not given.mirror.is_dir():
        ask.error("the scorer is a file and the mirror a folder; neither comes with devlint")
    rows, traps, read = scored(given.score, given.mirror)
    reasons: dict[str, str] = json.loads(REASONS.read_text(encoding="utf-8"))
    found = figures(rows, traps, read, reasons)
    sys.stdout.write(f"{found.summary}\nkept in {save('mined', found)}\n")
    unread = [row["id"] for row in rows if not row["hit"] and row["id"] not in reasons]
    if unread:
        sys.stdout.write(f"{REASONS.name} gives no reason for {', '.join(unread)}\n")
    return int(bool(unread))


def scored(score: Path, mirror: Path, *options: str) -> tuple[list[Row], int, int]:
    """What the scorer says of each bug, how many traps were sprung, and of how many; options are the scorer's."""
    check = f"{sys.executable} -m devlint check --output-format json --select ALL"
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "rows.json"
        command = [sys.executable, str(score), "--mirror", str(mirror), "--command", check, "--json", str(kept)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
        rows: list[Row] = json.loads(kept.read_text(encoding="utf-8"))
    match = re.search(r"traps sprung: (\d+) of (\d+)", done.stdout)
    assert match, done.stdout
    return rows, int(match[1]), int(match[2])


def figures(rows: Iterable[Row], sprung: int, traps: int, reasons: dict[str, str]) -> Figures:
    """The outcome for docs/accuracy.md."""
    rows = sorted(rows, key=lambda row: (row["class"], row["id"]))
    shares = {key: share([row for row in rows if row["decidable"] == key]) for key in DECIDABLE}
    summary = (
        f"{len(rows)} places where public projects mended a bug of devices or transfers were checked as they were "
        "before the fix: each file by itself, so that imports lead nowhere, under all rules and with all hints, of "
        "which a run without configuration leaves some out. A bug is found if a rule for its kind reports one of its "
        "lines. Somebody who read each fix judged what it takes to see the bug. Of those that can be seen in the file "
        f"{shares['yes']} are found, of those that need a plausible assumption {shares['heuristic']}. The rest needs "
        f"ranks, device maps or other packages, and silence is right there: {shares['no']} are reported. Of {traps} "
        f"places that look wrong and are right, {sprung} are reported as a warning or an error. Gone after the fix are "
        "those whose file has fewer reports of such rules then; where the fix moved the bug, or mended one place of "
        "several, it has not. The rules were developed with this collection at hand, so that other code is the "
        "harder test; it is not part of the repository."
    )
    return Figures("Bugs that were mended upstream", COMMAND, summary, (_classes(rows), *_misses(rows, reasons)))


def share(rows: Sequence[Row]) -> str:
    """Hits among rows, such as `3 of 4 (75 %)`."""
    hits = sum(row["hit"] for row in rows)
    return f"{hits} of {len(rows)} ({hits / max(len(rows), 1):.0%})".replace("%", " %")


def _classes(rows: list[Row]) -> Table:
    columns = ("class", *(f"{text} (found of all)" for text in DECIDABLE.values()), "gone after the fix")
    found = []
    for name in (*dict.fromkeys(row["class"] for row in rows), ""):
        chosen = [row for row in rows if not name or row["class"] == name]
        cells = []
        for key in DECIDABLE:
            counted = Counter(row["hit"] for row in chosen if row["decidable"] == key)
            cells.append(f"{counted[True]} of {counted.total()}" if counted else "")
        found.append((name or "**all**", *cells, sum(row["cleared"] for row in chosen)))
    return Table("By class of bug:", columns, found)


def _misses(rows: list[Row], reasons: dict[str, str]) -> Iterable[Table]:
    for key, text in DECIDABLE.items():
        missed = [row for row in rows if row["decidable"] == key and not row["hit"]]
        told = [(row["id"], row["class"], reasons.get(row["id"], _UNREAD)) for row in missed]
        if told:
            heading = "Silent, as it should be, on what" if key == "no" else "Missed, of what"
            yield Table(f"{heading} {text}:", ("bug", "class", "why"), told)


if __name__ == "__main__":
    raise SystemExit(main())
