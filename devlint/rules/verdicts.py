"""Verdicts: sites in, what the rules that listen to them say of them out, as findings."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from devlint.finding import Applicability, Finding, Fix, Place, Severity
from devlint.rules.base import Report, Rule
from devlint.rules.code.blocks import in_format
from devlint.rules.code.edits import loses_comments
from devlint.sites.base import Site
from devlint.source.test_files import is_of_tests
from devlint.source.tree import Source


def verdicts(
    source: Source,
    rules: Sequence[type[Rule]],
    sites: Iterable[Site],
    target_torch: tuple[int, int] | None = None,
    home: Callable[[ast.AST], Source] | None = None,
) -> list[tuple[Finding, Site]]:
    """What ``rules`` say of ``sites``, which lie in ``source``, and of which; each finding once.

    ``home`` tells the file of a node that explains a finding, where that may be another one.
    """
    listeners: dict[type[Site], list[Rule]] = {}
    for rule in rules:
        judge = rule(source, target_torch)
        for kind in rule.sites:
            listeners.setdefault(kind, []).append(judge)
    found: dict[tuple[object, ...], tuple[Finding, Site]] = {}
    for site in sites:
        for judge in listeners.get(type(site), ()):
            for report in judge.judge(site):
                node = report.node or site.node
                if home is not None and home(node) is not source:
                    continue
                finding = _finding(source, judge, report, node, home)
                key = (finding.code, finding.span)
                # the same place can be reached on several paths: keep the gravest verdict
                if key not in found or finding.severity > found[key][0].severity:
                    found[key] = finding, site
    return list(found.values())


def _finding(
    source: Source, rule: Rule, report: Report, node: ast.AST, home: Callable[[ast.AST], Source] | None
) -> Finding:
    homes = ((step, source if home is None else home(step.node)) for step in report.steps)
    places = (Place(file.span(step.node), step.label, "" if file is source else file.filename) for step, file in homes)
    severity = report.severity or rule.severity
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=severity,
        message=report.message,
        filename=source.filename,
        span=source.span(node),
        label=report.label,
        related=tuple(dict.fromkeys(places)),
        help=report.help,
        fix=_applicable(source, report.fix),
        # what it costs in a test, or where else that could run, hardly matters to most
        asked=report.asked
        or (severity is Severity.INFO and (is_of_tests(source.filename, source.text) or not rule.hints)),
    )


def _applicable(source: Source, fix: Fix | None) -> Fix | None:
    """The fix, unless it would edit the inside of an f-string; it is not safe where a comment would be lost."""
    if fix is None or any(in_format(source, edit.span) for edit in fix.edits):
        return None
    if fix.applicability is Applicability.SAFE and loses_comments(source, fix.edits):
        return replace(fix, applicability=Applicability.UNSAFE)
    return fix
