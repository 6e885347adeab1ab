"""Findings for people: the message, the place, the code with the finding and what led to it underlined, the help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from devlint.finding import named
from devlint.report.base import Report
from devlint.report.block import blocks, told
from devlint.report.formats.counts import kinds, statistics
from devlint.report.terminal import Paint, one_line
from devlint.report.wording import listed, plural, problems
from devlint.sites.proof import VERDICTS

_SOME = 4
"""So many places are named of what is left out, or one less and how many more there are."""
_LONG = 10
"""So many blocks, eight lines each, can be overlooked as they are; more of them are counted at the end."""


def render(report: Report) -> Iterator[str]:
    """Yield the findings in blocks, then the summary."""
    paint = Paint(report.color, report.width, report.width, report.links)
    if report.filed:
        yield from (one_line(f"error: {line}") for line in report.undone)
    grouped = blocks(report.findings)
    for findings in grouped:
        yield "\n".join([*told(findings, report.lines, paint), ""])
    if not report.quiet and (report.files or report.findings):
        if len(grouped) > _LONG:
            yield "\n".join([*statistics(report, "text"), ""])
        yield summary(report)
        if report.run:
            yield weighed(report)
        yield from filter(None, [_fixable(report), withheld(report), kinds(report) if len(grouped) > _LONG else ""])


def weighed(report: Report) -> str:
    """How many findings a run confirms, and so on."""
    counts = Counter(finding.evidence.verdict for finding in report.findings if finding.evidence is not None)
    parts = [f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS if counts[verdict]]
    return f"By {report.run}: {', '.join(parts) or 'nothing to decide'}."


def summary(report: Report) -> str:
    """The closing line."""
    where = f"in {plural(report.files, 'file')}"
    counts = Counter(finding.severity for finding in report.findings)
    if report.fixed:
        found, left = plural(report.fixed + counts.total(), "problem"), f"{counts.total():,} remaining"
        text = f"Found {found} ({report.fixed:,} fixed, {left}) {where}."
    elif not counts:
        text = f"No problems {where}."
    else:
        text = f"Found {problems(counts)} {where}."
    if report.known:
        text = f"{text} The baseline holds {report.known:,}{' more' if counts else ''}."
    return f"{text} {plural(len(report.failures), 'path')} could not be checked." if report.failures else text


def withheld(report: Report) -> str:
    """The rules whose findings are for those alone who ask for them, with some places; empty if there are none."""
    found: dict[tuple[str, str], list[str]] = {}
    for finding in sorted(report.withheld, key=lambda finding: finding.sort_key):
        place = f"{named(finding.filename, finding.span.cell)}:{finding.span.row}"
        found.setdefault((finding.code, finding.name), []).append(place)
    if not found:
        return ""
    codes = ",".join(sorted(code for code, _ in found))
    lines = [f"Left out, since few want it changed (`--extend-select {codes}` tells of each):"]
    for (code, name), places in sorted(found.items()):
        lines.append(one_line(f"  {code} {name}: {listed(places, _SOME)}"))
    return "\n".join(lines)


def _fixable(report: Report) -> str:
    """What `--fix` could do, or could have done with `--unsafe-fixes`; empty if nothing."""
    fixable, more = report.fixable()
    if report.fixed is not None:
        return f"{more:,} fixable with `--unsafe-fixes`." if more else ""
    if report.unsafe_fixes or not fixable:
        return f"{fixable + more:,} fixable with `--fix --unsafe-fixes`." if fixable + more else ""
    return f"{fixable:,} fixable with `--fix`" + (f" ({more:,} more with `--unsafe-fixes`)." if more else ".")
