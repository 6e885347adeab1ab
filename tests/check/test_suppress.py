"""Suppression comments, and the report of those that silence nothing."""

from __future__ import annotations

import textwrap

import pytest

from devlint.check.analysis import Analyzer, check_source
from devlint.check.rewrite.fixes import ApplyFixes
from devlint.config.schema import Config, RuleLayer
from devlint.rules.registry import registry
from tests.growth import QUADRATIC, Work, growth_of_time

pytestmark = pytest.mark.usefixtures("stub_rules")


def codes(code: str, *select: str) -> list[str]:
    config = Config().selecting(RuleLayer(select)) if select else Config()
    return [f"{finding.code}:{finding.span.row}" for finding in check_source(textwrap.dedent(code), "x.py", config)]


@pytest.mark.parametrize(
    "comment",
    [
        "# devlint: ignore",
        "#devlint:ignore",
        "# devlint: ignore[DVL102]",
        "# devlint: ignore[DVL1]",
        "# devlint: ignore[discarded-move]",
        "# devlint: ignore[ dvl102 ,]",
        "# devlint: ignore[DVL102] the result is not needed",
        "# type: ignore  # devlint: ignore[DVL102]",
        "# noqa",
        "# NOQA",
        "#noqa",
        "# noqa: DVL102",
        "# noqa:DVL102",
        "# noqa: E501, DVL102",
        "# noqa: E501 DVL102",
        "# noqa : dvl102",
        "# noqa: DVL1",
        "# type: ignore # noqa: DVL102",
        "# noqa: E501  # devlint: ignore[DVL102]",
    ],
)
def test_at_the_end_of_the_line(comment: str) -> None:
    assert codes("dropped()\n") == ["DVL102:1"]
    assert codes(f"dropped()  {comment}\n") == []


@pytest.mark.parametrize(
    "comment", ["# noqa: E501", "# noqa-something", "# noqaa", "# the devlint: ignored", "# type: ignore"]
)
def test_what_does_not_silence(comment: str) -> None:
    assert codes(f"dropped()  {comment}\n") == ["DVL102:1"]


def test_a_suppression_in_a_string_is_no_comment() -> None:
    assert codes("dropped('# devlint: ignore')\n") == ["DVL102:1"]
    assert codes("dropped('''\n# noqa\n''')\n") == ["DVL102:1"]
    assert codes("x = '''\n# devlint: ignore[DVL999]\n'''\n") == []


def test_on_a_line_of_its_own_before_the_statement() -> None:
    assert codes("# devlint: ignore[DVL102]\ndropped()\ndropped()\n") == ["DVL102:3"]
    assert codes("if x:\n    # devlint: ignore[DVL102]\n\n    # why\n    dropped()\n") == []
    assert codes("# noqa\ndropped()\n") == ["DVL102:2"], "noqa speaks of its own line only"


def test_before_or_at_either_end_of_a_long_statement() -> None:
    assert codes("# devlint: ignore[DVL102]\nx = f(\n    1,\n    dropped(),\n)\n") == []
    assert codes("x = f(  # devlint: ignore[DVL102]\n    dropped(),\n)\n") == []
    assert codes("x = f(\n    dropped(),\n)  # devlint: ignore[DVL102]\n") == []
    assert codes("x = f(\n    dropped(),\n)  # noqa: DVL102\n") == []
    assert codes("x = f(\n    # devlint: ignore[DVL102]\n    dropped(),\n    1,\n)\n") == []
    assert codes('x = dropped("""\n""")  # devlint: ignore[DVL102]\n') == []


def test_elsewhere_in_a_long_statement_it_counts_for_its_own_line_only() -> None:
    code = "x = f(\n    1,\n    2,  # devlint: ignore[DVL102]\n    dropped(),\n)\n"
    assert codes(code) == ["DVL901:3", "DVL102:4"]


def test_a_compound_statement_is_its_header() -> None:
    assert codes("for x in y:  # devlint: ignore[DVL102]\n    dropped()\n") == ["DVL901:1", "DVL102:2"]
    assert codes("while dropped(\n    1\n):  # devlint: ignore[DVL102]\n    pass\n") == []


def test_before_a_decorated_definition() -> None:
    assert codes("# devlint: ignore[DVL102]\n@a\n@b\ndef f(x=dropped()):\n    pass\n") == []


def test_for_the_whole_file() -> None:
    assert codes("# devlint: ignore-file\ndropped()\nmismatch()\n") == []
    assert codes("dropped()\nmismatch()\n# devlint: ignore-file[DVL102]\n") == ["DVL101:2"]
    assert codes("# devlint: ignore-file[DVL102]\nmismatch()\n") == ["DVL901:1", "DVL101:2"]


def test_only_what_it_names() -> None:
    assert codes("dropped(), mismatch()  # devlint: ignore[DVL102]\n") == ["DVL101:1"]
    assert codes("dropped(), mismatch()  # devlint: ignore[DVL102, device-mismatch]\n") == []


@pytest.mark.parametrize(
    "comment",
    [
        "# devlint: ignore",
        "# devlint: ignore[DVL102]",
        "# devlint: ignore[DVL1]",
        "# devlint: ignore-file[DVL102]",
        "# noqa: DVL102",
        "# noqa: E501,DVL102",
    ],
)
def test_an_unused_one_is_reported(comment: str) -> None:
    assert codes(f"x = 1  {comment}\n") == ["DVL901:1"]


def test_only_the_unused_part_is_reported() -> None:
    (found,) = check_source("dropped()  # devlint: ignore[DVL102, DVL101]\n")
    assert found.code == "DVL901"
    assert "DVL101" in found.message
    assert (found.span.column, found.span.end_column) == (12, 45)


@pytest.mark.parametrize("comment", ["# noqa", "# noqa: E501", "# noqa: F401, E501"])
def test_a_blank_or_foreign_noqa_is_never_reported(comment: str) -> None:
    assert codes(f"x = 1  {comment}\n") == []


def test_only_rules_that_ran_can_show_that_it_is_unused() -> None:
    assert codes("x = 1  # devlint: ignore[DVL102]\n", "DVL6", "DVL901") == []
    assert codes("x = 1  # devlint: ignore[DVL605]\n") == [], "a rule that is off by default did not run"
    assert codes("x = 1  # devlint: ignore[DVL605]\n", "ALL") == ["DVL901:1"]
    assert codes("x = 1  # devlint: ignore[DVL1]\n", "DVL101", "DVL901") == [], "DVL102 might need it"
    assert codes("x = 1  # devlint: ignore[DVL102]\n", "DVL102") == [], "DVL901 itself did not run"


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("# devlint: ignore[DVL107]", "unknown rule 'DVL107'"),
        ("# devlint: ignore[discarded-mov]", "did you mean 'discarded-move'"),
        ("# noqa: DVL999", "unknown rule 'DVL999'"),
        ("# devlint: ignroe[DVL102]", "did you mean 'ignore'"),
        ("# devlint: disable", "no devlint comment 'disable'"),
        ("# devlint: ignore DVL102", "ignore[DVL102]"),
        ("# devlint: ignore[]", "ignore[DVL101, DVL6]"),
        ("# devlint: ignore[DVL102", "ignore[DVL101, DVL6]"),
    ],
)
def test_what_is_not_understood_silences_nothing_and_says_so(comment: str, words: str) -> None:
    found = check_source(f"dropped()  {comment}\n")
    assert [finding.code for finding in found] == ["DVL102", "DVL901"]
    assert words in found[1].message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # devlint: ignore\n", "x = 1\n"),
        ("x = 1  # devlint: ignore[DVL102] - why\n", "x = 1\n"),
        ("x = 1\t# noqa: DVL102", "x = 1"),
        ("dropped()  # devlint: ignore[DVL101, DVL102]\n", "dropped()  # devlint: ignore[DVL102]\n"),
        ("dropped()  # devlint: ignore[dvl102,DVL101,DVL6] why\n", "dropped()  # devlint: ignore[dvl102] why\n"),
        ("x = 1  # noqa: E501, DVL102\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # NOQA:dvl102,E501 DVL101\n", "x = 1  # NOQA:E501\n"),
        ("x = 1  # noqa: DVL102 because\n", "x = 1  # because\n"),
        ("x = 1  # noqa: DVL102  # because\n", "x = 1  # because\n"),
        ("x = 1  # type: ignore  # devlint: ignore[DVL102]  # noqa: E501\n", "x = 1  # type: ignore  # noqa: E501\n"),
        ("x = 1  # devlint: ignore[DVL101]  # devlint: ignore[DVL102]\n", "x = 1\n"),
        ("x = (\n    # devlint: ignore[DVL102]\n    1,\n)\n", "x = (\n    1,\n)\n"),
        ("if x:\r\n    # devlint: ignore\r\n    y\r\n", "if x:\r\n    y\r\n"),
        ("x\n# devlint: ignore-file[DVL102]", "x\n"),
        (
            "# devlint: ignore-file[DVL101, DVL102] generated\ndropped()\n",
            "# devlint: ignore-file[DVL102] generated\ndropped()\n",
        ),
        ("é = 'é'  # devlint: ignore[DVL102]\n", "é = 'é'\n"),
    ],
)
def test_what_is_unused_can_be_removed(before: str, after: str) -> None:
    mended = ApplyFixes(True).rewrite(before.encode(), Analyzer("x.py", Config()))
    assert (mended.data.decode(), mended.unfixed) == (after, None)
    assert [finding for finding in mended.findings if finding.code == "DVL901"] == []


@pytest.mark.parametrize(
    ("comment", "unasked"),
    [
        ("# devlint: ignore[DVL102]", True),
        ("# devlint: ignore[DVL102, DVL6] both", True),
        ("# devlint: ignore", False),
        ("# devlint: ignore[DVL101]", False),
        ("# devlint: ignore[DVL1]", False),
        ("# devlint: ignore[DVL102, DVL101]", False),
        ("# noqa: DVL101", False),
    ],
)
def test_what_an_audit_may_need_is_not_removed_unasked(
    comment: str, unasked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry()["DVL101"], "observed", True)
    text = f"x = 1  {comment}\n".encode()
    assert ApplyFixes().rewrite(text, Analyzer("x.py", Config())).data == (b"x = 1\n" if unasked else text)
    assert ApplyFixes(True).rewrite(text, Analyzer("x.py", Config())).data == b"x = 1\n"


@pytest.mark.parametrize("rest", ["", "\n", "\ny = 2\n"])
def test_a_line_that_ends_a_statement_with_a_backslash_stays(rest: str) -> None:
    text = f"x = 1 \\\n# devlint: ignore[DVL102]{rest}".encode()
    mended = ApplyFixes(True).rewrite(text, Analyzer("x.py", Config()))
    assert (mended.data, mended.unfixed) == (text, None)
    assert [finding.code for finding in mended.findings] == ["DVL901"]


@pytest.mark.parametrize("comment", ["# devlint: ignore[DVL107]", "# devlint: disable", "# devlint: ignore[DVL102"])
def test_what_is_not_understood_is_left_to_a_person(comment: str) -> None:
    text = f"x = 1  {comment}\n".encode()
    assert ApplyFixes(True).rewrite(text, Analyzer("x.py", Config())).data == text


def test_the_report_can_be_silenced_by_name_only() -> None:
    assert codes("x = 1  # devlint: ignore[DVL102, DVL901]\n") == []
    assert codes("x = 1  # devlint: ignore[DVL102]  # devlint: ignore\n") == ["DVL901:1", "DVL901:1"]


def test_line_ends_form_feeds_and_a_missing_last_newline() -> None:
    assert codes("# one\r\n\x0cdropped()  # devlint: ignore[DVL102]") == []
    assert codes("a = 1\rdropped()  # noqa: DVL102\rdropped()") == ["DVL102:3"]


def test_no_tokens_are_read_where_no_comment_can_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenize.generate_tokens", lambda readline: pytest.fail("tokenized"))
    assert codes("x = 1  # noqa: E501\n") == []
    assert codes("dropped()  # type: ignore\n") == ["DVL102:1"]


def test_many_comments_take_time_in_proportion() -> None:
    def work(size: int) -> Work:
        def check() -> None:
            assert codes("dropped()  # noqa\n" * size) == []

        return check

    assert growth_of_time(work, 400, 3_200) < QUADRATIC


def test_a_file_that_does_not_parse_can_be_left_alone() -> None:
    assert codes("# devlint: ignore-file[DVL900]\nprint 'x'\n") == []
    assert codes("# devlint: ignore-file\nprint 'x'\n") == []
    assert codes("print 'x'  # devlint: ignore\n") == ["DVL900:1"]
