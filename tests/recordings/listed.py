"""The recordings, and what is kept of each."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RECORDINGS = HERE / "recordings.csv"
DIGESTS = HERE / "digests.json"


@dataclass(frozen=True)
class Recording:
    """A trace in a public repository; of what is not told the text is empty.

    ``script`` is what ran, ``program`` which of ours does the same, with ``arguments``: the number of steps, and more.
    """

    name: str
    repository: str
    commit: str
    path: str
    sha256: str
    card: str
    torch: str
    script: str
    program: str
    arguments: str


@dataclass(frozen=True)
class Quantity:
    """What happened alike: so many copies or waits, of so many bytes in all.

    ``what`` is ``to the device``, ``from the device``, ``value read`` or ``wait``; ``memory`` is the host's side of a
    copy, empty where it is not known or nobody's choice; ``host`` is what the host does meanwhile, ``waits``,
    ``goes on`` or ``waits in part``; of a wait ``name`` says for what.
    """

    what: str
    name: str
    memory: str
    host: str
    calls: int
    bytes: int
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Digest:
    """What a trace says of the steps of its recording, or of the whole if it has none."""

    steps: int
    stacks: bool
    exact: bool
    """Whether its lines are those of the calls, and not those of the functions' `def`."""
    quantities: tuple[Quantity, ...]


def recordings() -> list[Recording]:
    """Those of the list, in its order."""
    names = [field.name for field in fields(Recording)]
    with RECORDINGS.open(encoding="utf-8", newline="") as file:
        return [Recording(**{name: row[name] for name in names}) for row in csv.DictReader(file)]


def digests() -> dict[str, Digest]:
    """By the names of the recordings."""
    return {name: _digest(kept) for name, kept in json.loads(DIGESTS.read_text(encoding="utf-8")).items()}


def as_text(found: dict[str, Digest]) -> str:
    """The text of the file of digests."""
    return json.dumps({name: asdict(digest) for name, digest in found.items()}, indent=1, ensure_ascii=False) + "\n"


def _digest(kept: dict[str, Any]) -> Digest:
    quantities = tuple(Quantity(**{**each, "lines": tuple(each["lines"])}) for each in kept["quantities"])
    return Digest(kept["steps"], kept["stacks"], kept["exact"], quantities)
