"""Subsumption: what another finding says as well or better is left out, and one cause is one finding."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from devlint.config.schema import Config
from devlint.finding import Applicability, Finding, Place, Severity
from devlint.rules.selection import asked


def subsumed(findings: Sequence[Finding], told: Collection[Finding]) -> list[Finding]:
    """Those of a file's findings, in order, that are ``told``, but for those that others make superfluous.

    A finding says also what those of the rules that it ``covers`` would say of the same call. Whoever silences a
    finding silences what it covers, and the first of those with one ``cause`` silences them all.
    """
    covered = {(code, finding.span) for finding in findings for code in finding.covers}
    heard = {(finding.code, finding.span) for finding in told}
    left = [finding for finding in findings if (finding.code, finding.span) not in covered]
    leading: dict[tuple[str, object], Finding] = {}
    for finding in left:
        leading.setdefault((finding.code, finding.cause or finding.span), finding)
    places = ((finding, leading[finding.code, finding.cause or finding.span]) for finding in left)
    return [one for one, first in places if {(one.code, one.span), (first.code, first.span)} <= heard]


def summarized(findings: Sequence[Finding], configs: Mapping[str, Config]) -> list[Finding]:
    """A run's findings, in order, of which one stands for those with the same cause, and for hints that say the same.

    Whoever selects a rule has each of its hints. ``configs`` are those of the files, by their names.
    """
    leading: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        alike = finding.severity is Severity.INFO and finding.code not in asked(configs[finding.filename])
        words = (finding.message, finding.help, finding.fix and finding.fix.applicability) if alike else finding.span
        key = (finding.filename, finding.code, finding.severity, finding.cause or words)
        first = leading.setdefault(key, finding)
        if first is not finding:
            leading[key] = _with(first, finding)
    return list(leading.values())


def _with(first: Finding, other: Finding) -> Finding:
    """A finding that stands for another one, too: it shows its place, and its fix mends both."""
    fix, second = first.fix, other.fix
    if fix is not None and second is not None and not fix.overlaps(second):
        weaker = fix if fix.applicability is Applicability.UNSAFE else second
        fix = replace(fix, edits=tuple(dict.fromkeys((*fix.edits, *second.edits))), applicability=weaker.applicability)
    return replace(first, related=(*first.related, Place(other.span, "also here")), fix=fix)
