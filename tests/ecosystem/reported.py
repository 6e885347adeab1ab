"""Run ``devlint check`` over a folder, and read its JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from tokenize import detect_encoding
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import EcosystemError

if TYPE_CHECKING:
    from collections.abc import Sequence

REPOSITORY = Path(__file__).resolve().parents[2]
ONE_HOUR = 3600
COLD_CHECK = (sys.executable, "-m", "devlint", "check", "--isolated", "--no-cache", "--output-format", "json")
"""The command as everybody has it: no configuration, and nothing remembered from an earlier run."""


class Identity(NamedTuple):
    """Which finding it is, whatever its message says."""

    path: str
    row: int
    code: str

    def __str__(self) -> str:
        return f"{self.path}:{self.row} {self.code}"


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding as another program sees it: what ``--output-format json`` says, and the source line it points at."""

    identity: Identity
    severity: str
    message: str
    line: str
    related: tuple[tuple[int, str], ...] = ()


def check(folder: Path, options: Sequence[str]) -> list[Reported]:
    """What ``devlint check`` reports on ``folder``, in order of path, row and code."""
    try:
        done = subprocess.run(
            [*COLD_CHECK, *options, str(folder)],
            cwd=REPOSITORY,
            capture_output=True,
            encoding="utf-8",
            timeout=ONE_HOUR,
        )
    except subprocess.TimeoutExpired:
        raise EcosystemError(f"devlint did not come back within an hour on {folder}") from None
    if done.returncode not in (0, 1):
        raise EcosystemError(f"devlint exited with {done.returncode} on {folder}:\n{done.stderr.strip()}")
    if done.stderr.strip():
        print(done.stderr.strip(), file=sys.stderr)
    return read_json(done.stdout, folder)


def read_json(text: str, folder: Path) -> list[Reported]:
    """The findings in devlint's JSON, with paths relative to ``folder``."""
    try:
        entries: list[dict[str, Any]] = json.loads(text)
        found = [_reported(entry, folder) for entry in entries]
    except (ValueError, KeyError, TypeError) as error:
        raise EcosystemError(f"devlint's JSON is not what was agreed: {error!r} in {text[:200]!r}") from error
    return sorted(found, key=lambda finding: finding.identity)


def _reported(entry: dict[str, Any], folder: Path) -> Reported:
    """One object of devlint's list."""
    file = (REPOSITORY / entry["filename"]).resolve()
    row = int(entry["location"]["row"])
    related = tuple(
        (int(place["location"]["row"]), str(place.get("label") or place.get("message") or ""))
        for place in entry.get("related") or ()
    )
    return Reported(
        identity=Identity(file.relative_to(folder.resolve()).as_posix(), row, str(entry["code"])),
        severity=str(entry["severity"]),
        message=str(entry["message"]),
        line=source_line(file, row).strip(),
        related=related,
    )


@lru_cache(maxsize=64)
def source_lines(file: Path) -> tuple[str, ...]:
    """The lines of a Python file as Python counts them: a form feed ends none."""
    content = file.read_bytes()
    try:
        encoding, _ = detect_encoding(BytesIO(content).readline)
    except SyntaxError:
        encoding = "utf-8"
    text = content.decode(encoding, errors="replace")
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def source_line(file: Path, row: int) -> str:
    """One line of ``file``, counted from 1; empty if there is no such line."""
    lines = source_lines(file)
    return lines[row - 1] if 0 < row <= len(lines) else ""


def excerpt(finding: Reported, folder: Path, context: int) -> str:
    """The finding with ``context`` lines of code on both sides, for a person to judge."""
    path, row, code = finding.identity
    lines = source_lines(folder / path)
    first, last = max(1, row - context), min(len(lines), row + context)
    shown = [f"{path}:{row} {code} {finding.severity}: {finding.message}"]
    shown += [f"  {'>' if number == row else ' '}{number:5} | {lines[number - 1]}" for number in range(first, last + 1)]
    for place, label in finding.related:
        shown.append(f"  {label} (line {place}): {source_line(folder / path, place).strip()}")
    return "\n".join(shown) + "\n"
