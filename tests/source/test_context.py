"""What tells a finding from others when its lines have moved."""

from __future__ import annotations

import ast
import textwrap

import pytest

from devlint.check.analysis import check_source
from devlint.finding import Context, Finding, Severity, Span
from devlint.source.context import in_context, plain
from devlint.source.tree import Source
from tests.growth import QUADRATIC, Work, growth_of_time

pytestmark = pytest.mark.usefixtures("stub_rules")


def contexts(code: str) -> list[Context | None]:
    return [finding.context for finding in check_source(textwrap.dedent(code), "x.py")]


def at(code: str, part: str) -> Context | None:
    """The context of a finding whose span is the first occurrence of ``part``."""
    code = textwrap.dedent(code)
    source = Source.parse(code)
    assert isinstance(source, Source)
    before = code[: code.index(part)].split("\n")
    row, column = len(before), len(before[-1]) + 1
    span = Span(row, column, row, column + len(part))
    return in_context(source, [Finding("DVL102", "n", Severity.INFO, "m", "x.py", span)])[0].context


@pytest.mark.parametrize(
    "other",
    [
        "f(a,b)",
        "f( a, b )",
        "f(\n    a,\n    b,\n)",
        "f(a,  # why\n  b)",
        "f(a, \\\n  b)",
        "f(\n    # first\n    a,\n    b, # last\n)",
        "f(a,\r\n  b)",
    ],
)
def test_the_layout_does_not_count(other: str) -> None:
    assert plain(other) == plain("f(a, b)") == "f(a, b)"


def test_strings_keep_what_they_hold() -> None:
    assert plain("f('a  b', \"c\")") == 'f("a  b", "c")'
    assert plain("f('# no comment', x)") == 'f("# no comment", x)'
    assert plain("f('say \"x\"')") == "f('say \"x\"')"
    assert plain("f('''a\n  b''')") == "f('''a\n  b''')"
    assert plain("f(r'\\d')") == "f(r'\\d')"


def test_words_stay_apart() -> None:
    assert plain("x  if   y\\\nelse z") == "x if y else z"
    assert plain("await  x . cuda ( )") == "await x.cuda()"
    assert plain("not -x") != plain("not x")


def test_the_names_of_the_definitions_around() -> None:
    code = """
    dropped()
    class A:
        x = dropped()
        async def f(self):
            def g():
                for x in y:
                    with z:
                        dropped()
    @decorate(dropped())
    def h(x=dropped()):
        return lambda: dropped()
    """
    assert [found and found.scope for found in contexts(code)] == ["", "A", "A.f.g", "h", "h", "h"]


def test_an_atom_is_told_by_what_is_around_it() -> None:
    assert at('x = zeros(3, device="cuda")\n', '"cuda"') == Context("", 'zeros(3, device="cuda")', (1, 1))
    assert at('def f(a, device="cuda", b=1):\n    pass\n', '"cuda"') == Context(
        "f", 'def f(a, device="cuda", b=1):', (1, 1)
    )
    assert at("x = f(a.cuda(), other)\n", "a.cuda()") == Context("", "a.cuda()", (1, 1))


def test_the_rows_are_those_of_the_statement_or_of_a_header() -> None:
    code = """\
    x = f(
        1,
        dropped(),
    )
    @a(
        dropped()
    )
    def g():
        if x and (
            dropped()
        ):
            y
        try:
            z
        except dropped():
            z
    """
    assert [found and found.rows for found in contexts(code)] == [(1, 4), (5, 8), (9, 11), (15, 15)]


def test_a_file_without_a_tree_has_no_context() -> None:
    assert contexts("def f(:") == [None]


def test_long_code_is_cut_and_still_told_apart() -> None:
    first, second = (contexts(f"dropped({'x, ' * 60}{last})")[0] for last in "ab")
    assert first is not None
    assert second is not None
    assert first.text != second.text
    assert len(first.text) < 90


def test_wide_characters_before_a_finding() -> None:
    assert at('x = ("漢字", a.cuda(), "é")\n', "a.cuda()") == Context("", "a.cuda()", (1, 1))


@pytest.mark.parametrize("code", ["dropped()\n", "dropped(); "], ids=["lines", "one line"])
def test_many_findings_take_time_in_proportion(code: str) -> None:
    def work(size: int) -> Work:
        source = Source.parse(f"{code * size}x = [{'1, ' * 15 * size} dropped()]\n")
        assert isinstance(source, Source)
        calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
        found = [Finding("DVL102", "n", Severity.INFO, "m", "x.py", source.span(node)) for node in calls]
        assert len(found) == size + 1
        return lambda: in_context(source, found)

    assert growth_of_time(work, 400, 3_200) < QUADRATIC
