"""Subsumption: what another finding says as well or better is left out, and one cause is one finding."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from devlint.finding import ALSO, OF_COPIES, OF_RULE, Applicability, Finding, Place, Severity
from devlint.source.file_kinds import is_beside


def subsumed(findings: Sequence[Finding], told: Collection[Finding]) -> list[Finding]:
    """Those of a file's findings, in order, that are ``told``, but for those that others make superfluous.

    A finding says also what those of the rules that it ``covers`` would say of the same call. Whoever silences a
    finding silences what it covers, and the first of those with one ``cause`` silences them all. What nobody asked for
    stands behind all others.
    """
    covered = {(code, finding.span) for finding in findings if not finding.asked for code in finding.covers}
    heard = {(finding.code, finding.span) for finding in told}
    left = [finding for finding in findings if (finding.code, finding.span) not in covered]
    left.sort(key=lambda finding: finding.asked)
    leading: dict[tuple[str, object], Finding] = {}
    for finding in left:
        leading.setdefault((finding.code, finding.cause or finding.span), finding)
    places = ((finding, leading[finding.code, finding.cause or finding.span]) for finding in left)
    return [one for one, first in places if {(one.code, one.span), (first.code, first.span)} <= heard]


def unasked(finding: Finding, wanted: Collection[str]) -> Finding:
    """A finding as it is told to somebody who has selected, or graded, the ``wanted`` rules alone.

    To others the findings of a design are hints, and all hints of one rule are one.
    """
    if finding.asked:
        # what was inferred a run may confirm, and then it is told to all
        return finding if finding.unproven else replace(finding, label="", related=(), help="", fix=None)
    if finding.code in wanted:
        return replace(finding, design="", shared="", selected=True)
    if finding.design:
        return replace(finding, severity=Severity.INFO, unproven=finding.severity)
    return finding if finding.severity > Severity.INFO else replace(finding, design=OF_RULE.format(finding.code))


def summarized(findings: Sequence[Finding]) -> list[Finding]:
    """A run's findings, in order, of which one stands for those of a file with the same cause, or of one design.

    What is found in a class that somebody has copied is one design, too.
    """
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        # what a run says is said of each
        told = finding if finding.evidence is None else replace(finding, design="", shared="", cause="")
        own = (finding.code, finding.severity)
        key = (*own, told.shared) if told.shared else (*own, finding.filename, told.cause or finding.span)
        alike.setdefault((told.design,) if told.design else key, []).append(finding)
    return [_one(several) for several in alike.values()]


def _one(several: Sequence[Finding]) -> Finding:
    """One of several findings, which shows the places of the others, and whose fix mends as many as it can.

    It is the gravest, and the dearest, and of those the first that is not in an example, in a test, or in what is done
    beside a step.
    """
    first, *others = sorted(
        several, key=lambda one: (-(one.unproven or one.severity), one.minor, is_beside(one.filename))
    )
    fix = first.fix
    for second in (other.fix for other in others if other.filename == first.filename):
        if fix is not None and second is not None and not fix.overlaps(second):
            weaker = fix if fix.applicability is Applicability.UNSAFE else second
            edits = dict.fromkeys((*fix.edits, *second.edits))
            fix = replace(fix, edits=tuple(edits), applicability=weaker.applicability)
    places = [Place(one.span, ALSO, "" if one.filename == first.filename else one.filename) for one in others]
    told = replace(first, related=(*first.related, *places), fix=fix)
    design = first.design or (OF_COPIES if first.shared else "")
    if not others or not design:
        return told
    files = len({one.filename for one in several})
    more = f" ({len(others)} more {design}" + (f", in {files} files)" if files > 1 else ")")
    codes = ",".join(sorted({one.code for one in several}))
    help_ = f"{first.help}; `--extend-select {codes}` tells of each place"
    return replace(told, message=first.message + more, help=help_)
