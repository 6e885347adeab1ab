"""What the benchmark measured, kept beside it until the next time; docs/speed.md is made of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

FIGURES = Path(__file__).with_name("figures")
AST, LIBCST = "`ast.parse`", "`libcst.parse_module`"
COLD, SEVERAL = "devlint, cold, 1 process", "devlint, cold, {} processes"
ALONE = "devlint, {} processes with a processor each"
WARM, CHANGED = "devlint, nothing changed", "devlint, one file changed"
COMPILED = "compiled {}"
"""The name of what the compiled devlint does, made of the plain one's."""
PARTS = ("timm", "ultralytics", "transformers", "eighth", "small", "curve")


@dataclass(frozen=True, slots=True)
class Row:
    """What one tool cost on one corpus.

    ``yardstick`` are the CPU seconds that `ast.parse` took there in the same run: it tells a slow day from a slow tool.
    """

    corpus: str
    files: int
    lines: int
    tool: str
    release: str
    cpu_seconds: float
    seconds: float
    peak_bytes: int
    runs: int
    yardstick: float
    measured: str
    machine: str


def load(part: str) -> list[Row]:
    """The rows of a part, none if it has not been measured."""
    path = FIGURES / f"{part}.json"
    if not path.exists():
        return []
    return [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))]


def save(part: str, rows: Iterable[Row], order: Iterable[str]) -> None:
    """Keep rows in the place of those of the same tools and corpora, the tools in an order."""
    new = {(row.tool, row.corpus): row for row in load(part)}
    new |= {(row.tool, row.corpus): row for row in rows}
    places = {tool: place for place, tool in enumerate(order)}
    kept = sorted(new.values(), key=lambda row: (row.lines, places.get(row.tool, len(places))))
    FIGURES.mkdir(exist_ok=True)
    text = json.dumps([asdict(row) for row in kept], indent=1, ensure_ascii=False)
    (FIGURES / f"{part}.json").write_text(f"{text}\n", encoding="utf-8")
