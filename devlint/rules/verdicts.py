"""Verdicts: sites in, what the rules that listen to them say of them out, as findings."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from devlint.finding import Applicability, Finding, Fix, Place, Severity
from devlint.flow.catalog.accelerator_api import EXPORTS
from devlint.rules.base import Report, Rule
from devlint.rules.basis import is_inferred
from devlint.rules.code.blocks import around, in_format, statement_around
from devlint.rules.code.device_choice import hides_gpus, names_devices
from devlint.rules.code.edits import loses_comments
from devlint.rules.code.trials import tried_out
from devlint.sites.base import Site
from devlint.source.file_kinds import is_notebook, is_of_tests, is_vendored
from devlint.source.syntax import walk
from devlint.source.tree import Source

_COSTS = ("DVL2", "DVL3", "DVL4")
"""Rules of what takes time or memory, and fails nowhere."""


def verdicts(
    source: Source,
    rules: Sequence[type[Rule]],
    sites: Iterable[Site],
    target_torch: tuple[int, int] | None = None,
    home: Callable[[ast.AST], Source] | None = None,
    latest_torch: tuple[int, int] | None = None,
) -> list[tuple[Finding, Site]]:
    """What ``rules`` say of ``sites``, which lie in ``source``, and of which; each finding once.

    ``home`` tells the file of a node that explains a finding, where that may be another one; ``latest_torch`` is the
    youngest torch that the project allows, if it says so.
    """
    listeners: dict[type[Site], list[Rule]] = {}
    for rule in rules:
        judge = rule(source, target_torch, latest_torch)
        for kind in rule.sites:
            listeners.setdefault(kind, []).append(judge)
    found: dict[tuple[object, ...], tuple[Finding, Site]] = {}
    for site in sites:
        for judge in listeners.get(type(site), ()):
            for report in judge.judge(site):
                node = report.node or site.node
                if home is not None and home(node) is not source:
                    continue
                finding = _finding(source, judge, report, node, site, home)
                key = (finding.code, finding.span)
                # the same place can be reached on several paths: keep the gravest verdict
                if key not in found or finding.severity > found[key][0].severity:
                    found[key] = finding, site
    return list(found.values())


def _finding(
    source: Source, rule: Rule, report: Report, node: ast.AST, site: Site, home: Callable[[ast.AST], Source] | None
) -> Finding:
    homes = [(step, source if home is None else home(step.node)) for step in report.steps]
    places = (Place(file.span(step.node), step.label, "" if file is source else file.filename) for step, file in homes)
    severity = report.severity or rule.severity
    inferred = is_inferred(source, report, node, homes, site)
    # what raises in a test has been seen by whoever runs it
    measured = getattr(site, "measured", None) is not None
    tested = rule.raising and not measured and is_of_tests(source.filename, source.text)
    asked = report.asked or _is_for_few(source, rule, severity, node) or _is_shown(source, rule, node)
    asked = asked or ((rule.raising or rule.accelerated) and hides_gpus(source))
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=Severity.INFO if inferred or report.unproven else severity,
        message=report.message,
        filename=source.filename,
        span=source.span(node),
        label=report.label,
        related=tuple(dict.fromkeys(places)),
        help=report.help,
        fix=_applicable(source, report.fix),
        asked=asked or report.unproven or tested or (inferred and (not rule.hints or _has_no_hints(source))),
        cause=report.cause,
        design=report.design,
        shared=_shared(source, report, node, site.scope.owner),
        covers=report.covers,
        implied=rule.implied or report.implied,
        minor=report.minor,
        unproven=severity if (inferred or report.unproven or tested) and not asked else None,
    )


def _shared(source: Source, report: Report, node: ast.AST, owner: str) -> str:
    """What a report says of a class but for its name, with the code that it is about; empty if it is of none."""
    told = f"{report.message}\n{report.help}"
    others = re.sub(rf"\b{re.escape(owner)}\b", "", told) if owner else told
    return "" if others == told else f"{others}\n{' '.join(source.segment(node).split())}"


def _is_for_few(source: Source, rule: Rule, severity: Severity, node: ast.AST) -> bool:
    """Whether most who have not asked for a finding would shrug at it, for the kind of code that it is in."""
    name = source.filename
    if severity is Severity.INFO and (not rule.hints or _has_no_hints(source)):
        return True
    stays = rule.accelerated and (_stays_on_the_cpu(source) or _exports(around(source, node)))
    # a copy of other people's code is for them to mend, and what tries a module out is run by hand
    few = is_vendored(name) or stays or getattr(node, "lineno", 0) in tried_out(source.tree)
    # a test may be there for the move that does nothing, and a notebook for the time that it takes
    few = few or (rule.code.startswith(_COSTS) and _has_no_hints(source))
    return severity < Severity.ERROR and few


def _has_no_hints(source: Source) -> bool:
    """Whether hints about a file are only for those who ask: nobody mends tests and notebooks for small things."""
    return is_of_tests(source.filename, source.text) or is_notebook(source.filename)


def _is_shown(source: Source, rule: Rule, node: ast.AST) -> bool:
    """Whether a notebook keeps the error that is told of, since it is there to show it."""
    if not rule.raising or not is_notebook(source.filename):
        return False
    from devlint.source.notebook.script import raised

    lines = raised(source.text)
    span = source.span(_simple_statement(source, node))
    return any(line.strip() in lines for line in source.lines[span.row - 1 : span.end_row])


def _simple_statement(source: Source, node: ast.AST) -> ast.AST:
    """The statement around a node, or the node itself where that is a compound one."""
    statement = statement_around(source, node) or node
    return node if hasattr(statement, "body") else statement


def _stays_on_the_cpu(source: Source) -> bool:
    """Whether a file trains its network where it is made: it has the loop, and never names another device."""
    return "backward(" in source.text and not names_devices(source)


@lru_cache(maxsize=8)
def _exports(function: ast.AST) -> bool:
    """Whether a function records a network for elsewhere, on inputs that it makes where the network is."""
    calls = (node.func for node in walk(function) if isinstance(node, ast.Call))
    return any(ast.unparse(func).endswith(EXPORTS) for func in calls if isinstance(func, ast.Attribute))


def _applicable(source: Source, fix: Fix | None) -> Fix | None:
    """The fix, unless it would edit the inside of an f-string; it is not safe where a comment would be lost."""
    if fix is None or any(in_format(source, edit.span) for edit in fix.edits):
        return None
    if fix.applicability is Applicability.SAFE and loses_comments(source, fix.edits):
        return replace(fix, applicability=Applicability.UNSAFE)
    return fix
