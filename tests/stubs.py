"""Rules that fire on a call's name alone, so that what is around the rules can be tested without the analysis."""

from __future__ import annotations

import ast
import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from devlint.finding import Applicability, Edit, Finding, Fix, Place, Severity
from devlint.rules import selection
from devlint.rules.base import Rule
from devlint.rules.meta.parse_error import ParseError
from devlint.rules.meta.unused_suppression import UnusedSuppression
from devlint.rules.registry import registry
from devlint.source.tree import Source


class Mismatch(Rule):
    """Fires on `mismatch()`."""

    code, name, severity = "DVL101", "device-mismatch", Severity.ERROR


class Dropped(Rule):
    """Fires on `dropped()`."""

    code, name, severity = "DVL102", "discarded-move", Severity.WARNING


class Hint(Rule):
    """Fires on `hint()`."""

    code, name, severity = "DVL601", "hardcoded-cuda-call", Severity.INFO


class Strict(Rule):
    """Fires on `strict()`, when asked for."""

    code, name, severity, default = "DVL605", "strict-rule", Severity.WARNING, False


TRIGGERS = {"mismatch": Mismatch, "dropped": Dropped, "hint": Hint, "strict": Strict}
RULES: tuple[type[Rule], ...] = (Mismatch, Dropped, Hint, Strict, ParseError, UnusedSuppression)


def run(source: Source, rules: Sequence[type[Rule]], config: object, project: object) -> list[Finding]:
    """Take the place of `devlint.check.analysis.rule_findings`."""
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            misbehave(node.func.id)
            rule = TRIGGERS.get(node.func.id)
            if rule in rules:
                found.append(finding(source, node, rule))
    return found


def misbehave(name: str) -> None:
    if name == "fails":
        raise KeyError("a bug\nin the analysis")
    if name == "recurses":
        misbehave(name)
    if name == "dies":
        os.kill(os.getpid(), signal.SIGKILL)


def finding(source: Source, node: ast.Call, rule: type[Rule]) -> Finding:
    span = source.span(node)
    related = tuple(Place(source.span(argument), "from here") for argument in node.args)
    edit = Edit(source.span(node.func), "mended")
    return Finding(
        rule.code,
        rule.name,
        rule.severity,
        f"`{source.segment(node.func)}` was called",
        source.filename,
        span,
        label="this call",
        related=related,
        help="call something else",
        fix=Fix("Call `mended`", (edit,), Applicability.UNSAFE) if rule is Dropped else None,
    )


def install(monkeypatch: pytest.MonkeyPatch, **replace: Any) -> None:
    """Put the stub rules in the place of the real ones."""
    monkeypatch.setattr("devlint.rules.registry.discover", lambda: RULES)
    monkeypatch.setattr("devlint.check.analysis.rule_findings", replace.get("run", run))
    forget()


def forget() -> None:
    """Let the rules be looked for anew."""
    registry.cache_clear()
    selection.selected.cache_clear()
