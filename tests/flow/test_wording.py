"""Nothing is decided by the words in which somebody is told of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from devlint._about import is_compiled
from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Finding, Span
from devlint.sites.base import Act, Step

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").rglob("*.py"))
EVERY_RULE = Config(rule_layers=(RuleLayer(("ALL",)),))


def verdicts() -> list[tuple[object, ...]]:
    """What is found in all fixtures, and what would be done about it, without a word of explanation."""
    return [
        (path, finding.code, finding.span, finding.severity, finding.asked, finding.fix, _places(finding))
        for path in FIXTURES
        for finding in check_source(path.read_bytes(), str(path), EVERY_RULE)
    ]


def _places(finding: Finding) -> list[Span]:
    return list(dict.fromkeys(place.span for place in finding.related))


def test_no_finding_depends_on_the_label_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    if is_compiled():
        pytest.skip("what a compiled module makes cannot be replaced")
    expected = verdicts()
    assert len(expected) > 1_000
    make = Step.__init__
    labels: set[str] = set()

    def wordless(self: Step, node: ast.AST, label: str, act: Act = Act.OTHER) -> None:
        labels.add(label)
        make(self, node, "here", act)

    monkeypatch.setattr(Step, "__init__", wordless)
    assert verdicts() == expected
    assert len(labels) > 50
