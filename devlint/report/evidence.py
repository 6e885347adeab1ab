"""What a run says of a finding, in words and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from devlint.finding import Finding
from devlint.sites.proof import CONFIRMED, UNDECIDED, Evidence


def words(evidence: Evidence) -> str:
    """``confirmed: 60 calls, 3 per step, 1.20 ms blocked``; ``contradicted: there was ...``; ``not reached``."""
    from devlint.report.audit.findings import seen

    shown = evidence.measured if evidence.verdict == CONFIRMED else None
    return ": ".join(filter(None, [evidence.verdict, evidence.note, seen(asdict(shown)) if shown is not None else ""]))


def said(finding: Finding, before: str = "", after: str = "") -> str:
    """The same for a finding, between two texts; empty where the run does not decide and there is no reason to name."""
    evidence = finding.evidence
    if evidence is None or (evidence.verdict == UNDECIDED and not evidence.note):
        return ""
    return f"{before}{words(evidence)}{after}"


def as_object(evidence: Evidence) -> dict[str, Any]:
    """The same for programs, with all that was measured."""
    measured = None
    if evidence.measured is not None:
        measured = {**asdict(evidence.measured), "ranks": list(evidence.measured.ranks)}
    return {"verdict": evidence.verdict, "note": evidence.note, "measured": measured}
