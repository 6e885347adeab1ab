"""Subsumption: what another finding at the same call says better is left out, and one cause is one finding."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from devlint.finding import Finding, Place


def subsumed(findings: Sequence[Finding], told: Collection[Finding]) -> list[Finding]:
    """Those of a file's findings, in order, that are ``told``, but for those that others make superfluous.

    A finding says also what those of the rules that it ``covers`` would say of the same call. Of findings with one
    ``cause`` the first stands for all, and shows the places of the others. Whoever silences a finding silences what it
    covers, and what it stands for.
    """
    covered = {(code, finding.span) for finding in findings for code in finding.covers}
    heard = {(finding.code, finding.span) for finding in told}
    leading: dict[tuple[str, object], Finding] = {}
    for finding in findings:
        if (finding.code, finding.span) in covered:
            continue
        key = (finding.code, finding.cause or finding.span)
        first = leading.setdefault(key, finding)
        if first is not finding and (finding.code, finding.span) in heard:
            leading[key] = replace(first, related=(*first.related, Place(finding.span, "also here")))
    return [finding for finding in leading.values() if (finding.code, finding.span) in heard]
