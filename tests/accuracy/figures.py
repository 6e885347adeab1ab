"""What a measurement of accuracy found, kept beside the tests until the next one; docs/accuracy.md is made of it."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

import devlint

KEPT = Path(__file__).with_name("figures")
# The order of the sections in docs/accuracy.md.
SECTIONS = ("readings", "fixtures", "fuzz", "drawn", "mined", "unseen", "unseen_next", "robustness")


@dataclass(frozen=True)
class Table:
    """A table of the report, with a caption above it; cells are text or numbers."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | int | float]]


@dataclass(frozen=True)
class Figures:
    """The outcome of one measurement.

    ``command`` repeats it, ``summary`` is Markdown that says in a few sentences what was measured and found, and
    ``tables`` have the details. Date and versions are those of the measurement.
    """

    title: str
    command: str
    summary: str
    tables: Sequence[Table] = ()
    measured: str = field(default_factory=lambda: date.today().isoformat())
    versions: str = field(default_factory=lambda: versions())


def versions() -> str:
    """What measured: devlint, Python, and torch where it is installed."""
    names = [f"devlint {devlint.__version__}", f"Python {platform.python_version()}"]
    try:
        names.append(f"torch {importlib.metadata.version('torch').partition('+')[0]}")
    except importlib.metadata.PackageNotFoundError:
        pass
    return ", ".join(names)


def save(section: str, figures: Figures) -> Path:
    """Keep the figures of ``section``, one of :data:`SECTIONS`; returns the file."""
    if section not in SECTIONS:
        raise ValueError(f"no section {section!r} in {SECTIONS}")
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{section}.json"
    path.write_text(json.dumps(asdict(figures), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def load() -> list[Figures]:
    """The figures that have been measured so far, in the order of the report."""
    found = []
    for section in SECTIONS:
        path = KEPT / f"{section}.json"
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            found.append(Figures(**{**kept, "tables": [Table(**table) for table in kept["tables"]]}))
    return found
