"""The suppressions that devlint adds, on all that its rules find in their fixtures."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from devlint.check.analysis import Analyzer
from devlint.check.rewrite.suppressions import suppressed
from devlint.config.schema import Config, RuleLayer
from tests.test_fixtures import META, name_of, named

EVERYTHING = Config().selecting(RuleLayer(("ALL",)))


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("fixture", [file for file in named("bad") if "DVL900" not in str(file)], ids=name_of)
def test_every_finding_can_be_silenced(fixture: Path, ends: str) -> None:
    text = fixture.read_text(encoding="utf-8")
    data = text.replace("\n", ends).encode()
    analyzer = Analyzer("fixture.py", EVERYTHING)
    found = analyzer.findings(data)
    wanted = [finding for finding in found if finding.code not in META]
    after, left = suppressed(data, analyzer, found, wanted, "for now")
    assert {finding.code for finding in left} <= META
    assert len(left) == len(found) - len(wanted)
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(text))
    assert after.count(b"\n") == data.count(b"\n"), "no line was needed"
    assert after.count(b"\r") == data.count(b"\r")
