"""What a run says of a finding, in words and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from devlint.finding import Evidence, Finding, Measurement
from devlint.report.wording import duration, number, plural, rank_list, size
from devlint.sites.proof import CONFIRMED


def words(evidence: Evidence) -> str:
    """``confirmed: 60 calls, 3 per step, 1.20 ms blocked``; ``contradicted: there was ...``; ``not reached``."""
    shown = evidence.measured if evidence.verdict == CONFIRMED else None
    return ": ".join(filter(None, [evidence.verdict, evidence.note, seen(asdict(shown)) if shown is not None else ""]))


def said(finding: Finding, before: str = "", after: str = "") -> str:
    """The same for a finding, between two texts; empty where no run was asked."""
    return "" if finding.evidence is None else f"{before}{words(finding.evidence)}{after}"


def seen(measured: Mapping[str, Any]) -> str:
    """What was measured at a site, on one line: ``16 calls, 1 per step, 4.00 KiB per step, 1.20 ms blocked``."""
    calls, per_step = int(measured.get("calls") or 0), float(measured.get("per_step") or 0)
    parts = [plural(calls, "call")] if calls else []
    parts += [f"{number(per_step)} per step"] if per_step else []
    if measured.get("bytes_per_step"):
        parts.append(f"{size(measured['bytes_per_step'])} per step")
    elif measured.get("bytes"):
        parts.append(size(measured["bytes"]))
    if measured.get("seconds"):
        parts.append(f"{duration(measured['seconds'])} blocked")
    repeats = int(measured.get("repeats") or 0)
    parts += [f"{repeats:,} repeated"] if repeats else []
    ranks = measured.get("ranks") or ()
    parts += [f"on {rank_list(ranks)}"] if len(ranks) > 1 else []
    return ", ".join(parts)


def as_object(evidence: Evidence) -> dict[str, Any]:
    """The same for programs, with all that was measured."""
    return {"verdict": evidence.verdict, "note": evidence.note, "measured": measured(evidence.measured)}


def measured(found: Measurement | None) -> dict[str, Any] | None:
    """What was measured at a site, for programs."""
    return None if found is None else {**asdict(found), "ranks": list(found.ranks)}
