"""What devlint finds now against what was reviewed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from .errors import EcosystemError
from .reported import Identity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .wheels import Wheel

HERE = Path(__file__).parent


class Expected(TypedDict):
    """What ``expected.json`` says about one wheel."""

    version: str
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What a person has agreed that devlint finds in a wheel."""

    version: str
    counts: Counter[str]
    findings: Counter[Identity]


@dataclass(frozen=True, slots=True)
class Difference:
    """How the findings of one wheel changed."""

    counts: tuple[tuple[str, int, int], ...]
    """Rule, reviewed count, count now; only where they differ."""
    added: tuple[Identity, ...]
    lost: tuple[Identity, ...]

    def __bool__(self) -> bool:
        return bool(self.counts or self.added or self.lost)


def count(findings: Iterable[Identity]) -> Counter[str]:
    """How often each rule fired."""
    return Counter(identity.code for identity in findings)


def compare(reviewed: Reviewed, now: Iterable[Identity]) -> Difference:
    """What came and what went since the review. Two findings of one rule on one line are two."""
    found = Counter(now)
    counts = count(found.elements())
    codes = sorted(reviewed.counts.keys() | counts.keys())
    return Difference(
        counts=tuple(
            (code, reviewed.counts[code], counts[code]) for code in codes if reviewed.counts[code] != counts[code]
        ),
        added=tuple(sorted((found - reviewed.findings).elements())),
        lost=tuple(sorted((reviewed.findings - found).elements())),
    )


def load(wheel: Wheel, folder: Path = HERE) -> Reviewed | None:
    """The reviewed findings of ``wheel``, or None if nobody has reviewed it yet."""
    entry = _expected(folder).get(wheel.name)
    listing = folder / "findings" / f"{wheel.name}.txt"
    if entry is None or not listing.is_file():
        return None
    return Reviewed(
        version=entry["version"],
        counts=Counter(entry["counts"]),
        findings=Counter(_identity(line) for line in listing.read_text(encoding="utf-8").splitlines()),
    )


def store(wheel: Wheel, now: Iterable[Identity], folder: Path = HERE) -> None:
    """Make what is found now the reviewed state of ``wheel``."""
    found = sorted(now)
    expected = _expected(folder)
    expected[wheel.name] = {"version": wheel.version, "counts": dict(sorted(count(found).items()))}
    text = json.dumps(expected, indent=2, sort_keys=True) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8", newline="\n")
    listing = folder / "findings" / f"{wheel.name}.txt"
    listing.parent.mkdir(exist_ok=True)
    listing.write_text("".join(f"{identity}\n" for identity in found), encoding="utf-8", newline="\n")


def _expected(folder: Path) -> dict[str, Expected]:
    """The counts per wheel, empty before the first review."""
    file = folder / "expected.json"
    expected: dict[str, Expected] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return expected


def _identity(line: str) -> Identity:
    """One line of a findings file."""
    place, _, code = line.rpartition(" ")
    path, _, row = place.rpartition(":")
    if not path or not row.isdecimal():
        raise EcosystemError(f"not a reviewed finding (path:row code): {line!r}")
    return Identity(path, int(row), code)
