"""What the scripts of fixtures/train say about themselves, and the same of a record.

``# seen:`` at the end of a line names all that happens there: the phase, the kind, calls and bytes over the whole run,
and words for the rest.  On a line of its own it speaks of the next line, or of the steps.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

TRAIN = Path(__file__).parents[2] / "fixtures" / "train"
SCRIPTS = sorted(path.stem for path in TRAIN.glob("*.py"))
ALONE = [name for name in SCRIPTS if name != "ddp"]
RANKS = 2

Seen = Counter[tuple[object, ...]]


def expected(name: str) -> tuple[Seen, dict[str, str]]:
    """What a script says: (line, phase, kind, words) to (calls, bytes), and the words about its steps."""
    seen: Seen = Counter()
    steps: dict[str, str] = {}
    for number, line in enumerate((TRAIN / f"{name}.py").read_text().splitlines(), 1):
        match = re.search("# seen: (.*)$", line)
        if match is None:
            continue
        place = number + line.lstrip().startswith("#")
        for clause in match[1].split(" | "):
            words = clause.split()
            if words[0] == "steps":
                steps = dict(word.split("=") for word in words[1:])
            else:
                phase, kind, calls, *rest = words
                size = rest.pop(0) if rest and rest[0].isdigit() else "0"
                seen[(place, phase, kind, int(calls), int(size), *sorted(rest))] += 1
    return seen, steps


def observed(name: str, process: dict[str, Any], anytime: set[int]) -> Seen:
    """The same of a record; kinds and words are spelled as the fixtures do."""
    sums: dict[tuple[object, ...], Counter[str]] = {}
    for event in process["events"]:
        frame = event["frame"]
        assert frame is not None, event
        assert Path(frame["file"]) == TRAIN / f"{name}.py", event
        phase = "any" if frame["line"] in anytime else event["phase"]
        # each phase has its own entry in a record; only calls without a phase of their own are put together here
        key = (frame["line"], phase, kind_of(event), *words_of(event))
        sums.setdefault(key, Counter()).update(calls=event["calls"], bytes=event["bytes"])
    return Counter(
        (line, phase, kind, total["calls"], total["bytes"], *words)
        for (line, phase, kind, *words), total in sums.items()
    )


def kind_of(event: dict[str, Any]) -> str:
    if event["name"] == "item" or event["kind"] != "copy":
        return "item" if event["kind"] == "copy" else event["kind"]
    host = [event["source"] == "cpu", event["target"] == "cpu"]
    return {(True, False): "H2D", (False, True): "D2H", (False, False): "D2D"}[host[0], host[1]]


def words_of(event: dict[str, Any]) -> list[str]:
    words = []
    if event["kind"] == "copy":
        words.append({True: "blocking", False: "async", None: "staged"}[event["blocking"]])
        if event["name"] != "item":
            words.append("pinned" if event["pinned"] else "pageable")
    if event["backward"]:
        words.append("backward")
    if event["temporary"]:
        words.append("temporary")
    if event["repeats"]:
        words.append(f"repeats={event['repeats']}")
    return sorted(words)
