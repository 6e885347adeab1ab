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

from devlint.check.engine import check_source
from devlint.check.source import split_lines
from devlint.config import Config, Selection
from devlint.finding import Edit, Finding, Severity, Span
from devlint.rules import registry

RULES = registry()
ROOT = Path(__file__).parents[1] / "fixtures" / "rules"
FIXTURES = sorted(ROOT.glob("*/*.py"))
# The rules about the file itself: what they say is no Python expression's fault, and what they show need not parse.
META = frozenset({"DVL900", "DVL901"})
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
    config = Config(selections=(Selection(select=codes or ("ALL",)),))
    return tuple(check_source(text, "fixture.py", config))


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
    lines = split_lines(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
        start = starts[edit.span.row - 1] + edit.span.column - 1
        end = starts[edit.span.end_row - 1] + edit.span.end_column - 1
        text = text[:start] + edit.content + text[end:]
    return text


def together(reports: Iterable[Finding]) -> list[Edit]:
    """The edits of as many fixes as do not touch one another."""
    edits: list[Edit] = []
    reached = (0, 0)
    for fix in sorted((finding.fix for finding in reports if finding.fix), key=lambda fix: fix.edits[0].span):
        if (fix.edits[0].span.row, fix.edits[0].span.column) >= reached:
            edits += fix.edits
            reached = max(end_of(edit.span) for edit in fix.edits)
    return edits


def end_of(span: Span) -> tuple[int, int]:
    return span.end_row, span.end_column


def codes(reports: Iterable[Finding]) -> Counter[str]:
    return Counter(finding.code for finding in reports)


def defects(reports: Iterable[Finding]) -> Counter[str]:
    """Without the hints: memory that is pinned now may be copied better still."""
    return codes(finding for finding in reports if finding.severity > Severity.INFO)


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
    before = codes(findings(text))
    for finding in findings(text):
        if finding.fix is None:
            continue
        where = f"{name_of(fixture)}:{finding.span.row}: {finding.fix.message}"
        fixed = apply(text, finding.fix.edits)
        ast.parse(fixed)
        after = codes(findings(fixed))
        assert after[finding.code] < before[finding.code], f"{where}: {finding.code} still fires"
        added = defects(findings(fixed)) - defects(findings(text))
        assert not added, f"{where}: adds {added}"


@pytest.mark.parametrize("fixture", named("bad"), ids=name_of)
def test_all_fixes_together_leave_nothing_to_fix(fixture: Path) -> None:
    text = fixture.read_text(encoding="utf-8")
    # two fixes may touch one another, as those of a chain of calls do: then one waits for the next round
    for _ in range(4):
        edits = together(findings(text))
        if not edits:
            return
        text = apply(text, edits)
        ast.parse(text)
    pytest.fail(f"{name_of(fixture)}: its fixes do not come to an end")


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
