"""What people read."""

from __future__ import annotations

import re
import textwrap

import pytest

from devlint.finding import Finding, Place, Severity, Span
from devlint.report.base import Report
from devlint.report.formats.text import render, summary
from devlint.source.tree import Source


def finding(span: Span, label: str = "here", related: tuple[Place, ...] = (), **more: object) -> Finding:
    fields = {"message": "it is wrong", "filename": "-", "help": "", "severity": Severity.ERROR, **more}
    return Finding("DVL101", "device-mismatch", span=span, label=label, related=related, **fields)  # type: ignore[arg-type]  # by name


def shown(code: str, *findings: Finding, color: bool = False) -> str:
    report = Report(findings, 1, contents={"-": code.encode()}, color=color, quiet=True)
    return "\n".join(render(report))


def place(row: int, start: int, end: int, label: str) -> Place:
    return Place(Span(row, start, row, end), label)


def test_the_frame_with_what_led_there() -> None:
    code = "model.to(device)\n" + "\n" * 7 + "for x in loader:\n    x = f(x)\n    model(x)\n"
    related = (place(1, 1, 17, "moved to `device` here"), place(9, 10, 16, "batches are on the CPU"))
    found = finding(Span(11, 5, 11, 13), "`x` is on the CPU", related, help="move it:\n`x.to(device)`")
    assert shown(code, found) == textwrap.dedent(
        """\
        error[DVL101] device-mismatch: it is wrong
          --> -:11:5
           |
         1 | model.to(device)
           | ---------------- moved to `device` here
        ...
         9 | for x in loader:
           |          ------ batches are on the CPU
        10 |     x = f(x)
        11 |     model(x)
           |     ^^^^^^^^ `x` is on the CPU
           |
           = help: move it:
                   `x.to(device)`
        """
    )


def test_two_places_on_the_line_of_the_finding() -> None:
    text = shown(
        "f(a, b)\n", finding(Span(1, 1, 1, 8), "", (place(1, 3, 4, "on the CPU"), place(1, 6, 7, "on `cuda`")))
    )
    assert text.splitlines()[3:7] == [
        "1 | f(a, b)",
        "  | ^^^^^^^",
        "  |   - on the CPU",
        "  |      - on `cuda`",
    ]


def test_the_finding_is_not_told_twice() -> None:
    text = shown("f(a)\n", finding(Span(1, 1, 1, 5), "here", (place(1, 1, 5, "here"),)))
    assert text.count("here") == 1


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ("\tf(x)", 4),
        ("x =\tf(x)", 7),
        ("漢字 = f(x)", 7),
        ("e\u0301 = f(x)", 4),
        ("'\U0001f600', f(x)", 6),
        ("'\x1b', f(x)", 5),
        ("'\u202e\u2066', f(x)", 6),
    ],
)
def test_underlines_stand_under_what_they_mean(line: str, columns: int) -> None:
    start = line.index("f(x)") + 1
    frame = shown(line + "\n", finding(Span(1, start, 1, start + 4), "")).splitlines()
    assert frame[4] == "  | " + " " * columns + "^^^^"
    assert not {"\t", "\u202e", "\u2066"} & set(frame[3])  # the latter two turn the order of what follows


def test_no_escape_sequence_of_the_source_reaches_the_terminal() -> None:
    text = shown("x = '\x1b[31m\x07'\n", finding(Span(1, 1, 1, 2), "\x1b[0m", message="a\x1b[1mb\nc"))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.splitlines()[0].endswith("a [1mb c")


def test_of_a_long_line_the_part_that_matters_is_shown() -> None:
    line = "x = [" + "1, " * 300_000 + "f(x), " + "2, " * 300_000 + "]"
    start = line.index("f(x)") + 1
    frame = shown(line, finding(Span(1, start, 1, start + 4))).splitlines()
    assert max(map(len, frame)) < 200
    at = frame[4].index("^")
    assert frame[3][at : at + 4] == "f(x)"
    assert "..." in frame[3]


def test_a_finding_longer_than_the_window_ends_with_it() -> None:
    frame = shown("x" * 10_000, finding(Span(1, 1, 1, 10_001))).splitlines()
    assert max(map(len, frame)) < 200


def test_several_lines_are_underlined_one_by_one() -> None:
    code = "x = f(\n    1,\n)  # why\n"
    source = Source.parse(code, "-")
    assert isinstance(source, Source)
    span = source.span(source.tree.body[0].value)  # type: ignore[attr-defined]  # an expression statement
    assert shown(code, finding(span)).splitlines()[3:9] == [
        "1 | x = f(",
        "  |     ^^",
        "2 |     1,",
        "  |     ^^",
        "3 | )  # why",
        "  | ^ here",
    ]


def test_of_many_lines_the_middle_is_left_out() -> None:
    code = "f(\n" + "    1,\n" * 50 + ")\n"
    frame = shown(code, finding(Span(1, 1, 52, 2)))
    assert "...\n" in frame
    assert len(frame.splitlines()) < 14


def test_a_place_that_is_not_there_any_more_costs_the_frame_only() -> None:
    assert shown("x\n", finding(Span(7, 1, 7, 2), help="do it")).splitlines() == [
        "error[DVL101] device-mismatch: it is wrong",
        " --> -:7:1",
        "  = help: do it",
    ]
    gone = Report([finding(Span(1, 1, 1, 2), filename="/no/such/file.py")], quiet=True)
    assert "/no/such/file.py:1:1" in "\n".join(render(gone))


def test_an_empty_span_still_has_a_caret() -> None:
    assert "  | ^ here" in shown("x\n", finding(Span(1, 1, 1, 1))).splitlines()
    assert "  |  ^ here" in shown("x\n", finding(Span(1, 9, 1, 9))).splitlines()


def test_colours_change_nothing_else() -> None:
    found = finding(Span(1, 1, 1, 5), "here", (place(1, 3, 4, "there"),), help="do it")
    colored = shown("f(a)\n", found, color=True)
    assert "\x1b[1;31merror[DVL101]" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == shown("f(a)\n", found)


def test_the_summary_counts() -> None:
    warning = finding(Span(1, 1, 1, 2), severity=Severity.WARNING)
    hint = finding(Span(1, 1, 1, 2), severity=Severity.INFO)
    error = finding(Span(1, 1, 1, 2))
    assert summary(Report([], 12)) == "No problems in 12 files."
    assert summary(Report([error], 1)) == "Found 1 problem (1 error) in 1 file."
    assert (
        summary(Report([warning, error, warning, hint], 1200, ["a: no", "b: no"]))
        == "Found 4 problems (1 error, 2 warnings, 1 hint) in 1,200 files. 2 paths could not be checked."
    )


def test_what_few_ask_for_is_named_at_the_end() -> None:
    places = [Span(row, 1, row, 2) for row in range(1, 7)]
    more = [finding(span, filename="a.py") for span in places]
    other = Finding("DVL201", "redundant-move", Severity.INFO, "it moves nothing", "b.ipynb", Span(3, 1, 3, 2, 4))
    lines = [*render(Report([], 2, withheld=[*more, other]))]
    assert "\n".join(lines).splitlines() == [
        "No problems in 2 files.",
        "Left out, since few want it changed (`--extend-select DVL101,DVL201` tells of each):",
        "  DVL101 device-mismatch: a.py:1, a.py:2, a.py:3 and 3 more",
        "  DVL201 redundant-move: b.ipynb:cell 4:3",
    ]
    assert [*render(Report([], 2, quiet=True, withheld=more))] == []
