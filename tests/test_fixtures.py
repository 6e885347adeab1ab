"""Every rule against its fixtures: it fires where they say, nowhere else, and what it would change is right.

A fixture is a file `fixtures/rules/CODE_name/bad*.py` or `good*.py`. An expectation stands at the end of the finding's
first row: `# expect: DVL102`, `# expect: DVL201 info` where the severity is not the rule's own, several separated by
commas.
Both kinds are judged by all rules, so a `good` file is silent altogether.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from devlint.check.analysis import Analyzer, check_source
from devlint.check.rewrite.fixes import ApplyFixes
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Edit, Finding, Span
from devlint.rules.registry import registry
from devlint.source.document import Document
from devlint.source.text import split_lines
from tests.followed import added, codes

RULES = registry()
ROOT = Path(__file__).parents[1] / "fixtures" / "rules"
FIXTURES = sorted(ROOT.glob("*/*.py"))
# The rules about the file itself: what they say is no Python expression's fault, and what they show need not parse.
META = frozenset({"DVL900", "DVL901"})
# Hints on what every second fixture does in passing, waiting for CUDA without asking for it: they judge only the
# fixtures that speak of them.
RESERVED = frozenset({"DVL605", "DVL606", "DVL609"})
HEADINGS = (
    "What it does",
    "Why it matters",
    "Example",
    "Use instead",
    "When it stays silent",
    "Fix safety",
    "References",
)
# What an example of the documentation may leave out.
IMPORTS = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
"""
EXPECTATION = re.compile(r"#\s*expect:(.*)")

Expected = tuple[int, str, str]


def name_of(fixture: Path) -> str:
    return f"{fixture.parent.name}/{fixture.name}"


def named(prefix: str) -> list[Path]:
    return [fixture for fixture in FIXTURES if fixture.name.startswith(prefix)]


def folder_of(code: str) -> Path:
    return ROOT / f"{code}_{RULES[code].name.replace('-', '_')}"


@lru_cache(maxsize=1024)
def findings(text: str, *codes: str) -> tuple[Finding, ...]:
    config = Config(rule_layers=(RuleLayer(codes),)) if codes else every_rule(text)
    return tuple(check_source(text, "fixture.py", config))


def every_rule(text: str) -> Config:
    """All rules, but for the reserved ones that the text does not speak of."""
    unasked = tuple(code for code in sorted(RESERVED) if code not in text)
    return Config(rule_layers=(RuleLayer(("ALL",), unasked),))


def found(text: str) -> list[Expected]:
    return [(finding.span.row, finding.code, str(finding.severity)) for finding in findings(text)]


def expected(text: str) -> Iterator[Expected]:
    """What a fixture says about itself: row, code and severity."""
    for row, comment in comments(text):
        match = EXPECTATION.search(comment)
        for entry in match[1].split(",") if match else ():
            code, _, severity = entry.strip().partition(" ")
            assert code in RULES, f"row {row} expects {code!r}, which is no rule"
            yield row, code, severity or str(RULES[code].severity)


def comments(text: str) -> Iterator[tuple[int, str]]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    except (tokenize.TokenError, SyntaxError):
        return  # a fixture of DVL900 ends where its tokens do


def differences(fixture: Path, wanted: Iterable[Expected], got: Iterable[Expected]) -> list[str]:
    """One line per place where a fixture and the rules disagree."""
    missing, unwanted = Counter(wanted), Counter(got)
    missing, unwanted = missing - unwanted, unwanted - missing
    lines = [(row, f"{code} {severity} expected, but nothing fires") for row, code, severity in missing.elements()]
    lines += [(row, f"{code} {severity} fires, but is not expected") for row, code, severity in unwanted.elements()]
    return [f"{fixture.relative_to(ROOT.parents[1])}:{row}: {line}" for row, line in sorted(lines)]


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text after edits, which must not overlap."""
    document = Document.read(text.encode())
    return document.changed([document.change(edit) for edit in edits]).text


def mended(text: str, unsafe: bool) -> str:
    """The text after all fixes, as `devlint check --fix` leaves it."""
    result = ApplyFixes(unsafe).rewrite(text.encode(), Analyzer("fixture.py", every_rule(text)))
    assert result.unfixed is None
    return result.data.decode()


def end_of(span: Span) -> tuple[int, int]:
    return span.end_row, span.end_column


def snippet(code: str, heading: str) -> str:
    """The code under a heading of a rule's documentation."""
    section = sections(code)[heading]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 1, f"{code}: one python block under {heading!r}"
    block = str(blocks[0])
    return block if re.search(r"^(import|from) ", block, re.MULTILINE) else IMPORTS + block


def sections(code: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", RULES[code].documentation(), flags=re.MULTILINE)
    return {heading.strip(): body for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize("fixture", FIXTURES, ids=name_of)
def test_fixture_is_named_and_parses(fixture: Path) -> None:
    text = fixture.read_text(encoding="utf-8")
    code = fixture.parent.name.partition("_")[0]
    assert code in RULES, f"{fixture.parent.name}: no such rule"
    assert fixture.parent == folder_of(code)
    assert fixture.name.startswith(("bad", "good"))
    if code != "DVL900":
        ast.parse(text)
    if fixture.name.startswith("good"):
        assert not list(expected(text)), "a good fixture expects nothing"
    elif code != "DVL900":
        assert any(wanted == code for _, wanted, _ in expected(text)), f"a bad fixture of {code} expects {code}"


@pytest.mark.parametrize("fixture", named("bad"), ids=name_of)
def test_bad_fires_where_it_says_and_nowhere_else(fixture: Path) -> None:
    text = fixture.read_text(encoding="utf-8")
    if fixture.parent.name.startswith("DVL900"):
        assert [finding.code for finding in findings(text)] == ["DVL900"]
        return
    wrong = differences(fixture, expected(text), found(text))
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("fixture", named("good"), ids=name_of)
def test_good_is_silent_under_all_rules(fixture: Path) -> None:
    text = fixture.read_text(encoding="utf-8")
    wrong = differences(fixture, [], found(text))
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("code", sorted(RULES))
def test_rule_has_fixtures(code: str) -> None:
    files = [fixture.name for fixture in folder_of(code).glob("*.py")]
    assert any(name.startswith("bad") for name in files), f"{folder_of(code).name} has no bad*.py"
    assert any(name.startswith("good") for name in files), f"{folder_of(code).name} has no good*.py"


@pytest.mark.parametrize("code", sorted(RULES.keys() - META))
def test_rule_is_documented_under_the_fixed_headings(code: str) -> None:
    rule = RULES[code]
    assert re.fullmatch(r"DVL\d{3}", code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert rule.summary().endswith(".")
    assert tuple(sections(code)) == HEADINGS
    assert all(body.strip() for body in sections(code).values())
    assert "https://" in sections(code)["References"]


@pytest.mark.parametrize("code", sorted(RULES.keys() - META))
def test_documentation_shows_what_fires_and_what_does_not(code: str) -> None:
    assert code in codes(findings(snippet(code, "Example"), code)), f"{code}: its example does not fire"
    assert code not in codes(findings(snippet(code, "Use instead"), code)), f"{code}: its remedy fires"


@pytest.mark.parametrize("fixture", named("bad"), ids=name_of)
def test_every_fix_silences_its_finding_and_adds_none(fixture: Path) -> None:
    text = fixture.read_text(encoding="utf-8")
    before = findings(text)
    for finding in before:
        if finding.fix is None:
            continue
        where = f"{name_of(fixture)}:{finding.span.row}: {finding.fix.message}"
        fixed = apply(text, finding.fix.edits)
        ast.parse(fixed)
        after = findings(fixed)
        assert codes(after)[finding.code] < codes(before)[finding.code], f"{where}: {finding.code} still fires"
        assert not (more := added(before, after, [finding.code])), f"{where}: adds {more}"


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("fixture", named("bad"), ids=name_of)
def test_all_fixes_together_leave_nothing_to_fix(fixture: Path, unsafe: bool) -> None:
    text = fixture.read_text(encoding="utf-8")
    fixed, fixes = mended(text, unsafe), ApplyFixes(unsafe)
    assert not [finding for finding in findings(fixed) if fixes.applies(finding)]
    applied = {finding.code for finding in findings(text) if fixes.applies(finding)}
    assert not added(findings(text), findings(fixed), applied)
    assert mended(fixed, unsafe) == fixed
    # what is written with other line ends is fixed with them
    assert mended(text.replace("\n", "\r\n"), unsafe) == fixed.replace("\n", "\r\n")


@pytest.mark.parametrize("fixture", named("good"), ids=name_of)
def test_nothing_is_changed_in_a_good_file(fixture: Path) -> None:
    text = fixture.read_text(encoding="utf-8")
    assert mended(text, unsafe=True) == text


@pytest.mark.parametrize("fixture", named("bad"), ids=name_of)
def test_every_finding_can_be_shown(fixture: Path) -> None:
    text = fixture.read_text(encoding="utf-8")
    rows = len(split_lines(text))
    for finding in findings(text):
        assert finding.message
        assert "\n" not in finding.message
        assert finding.message.count("`") % 2 == 0
        for span in (finding.span, *(place.span for place in finding.related)):
            assert 1 <= span.row <= span.end_row <= rows
            assert (span.row, span.column) < end_of(span)
