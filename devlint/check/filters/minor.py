"""Minor costs: what costs little each time is worth a word where it adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from devlint.finding import Finding

FEW = 5
"""So many findings of a rule add up."""


def few(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings that cost little, of rules of which there is nothing else, and not much of that."""
    counts = Counter(one.code for one in findings)
    more = {one.code for one in findings if not one.minor or one.evidence} | {
        code for code, count in counts.items() if count >= FEW
    }
    return [one for one in findings if one.code not in more]
