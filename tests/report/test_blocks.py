"""Findings of one rule in one file with the same help are one block; the end of a long report counts them all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import pytest

from devlint.config.schema import OUTPUT_FORMATS
from devlint.finding import Evidence, Finding, Place, Severity, Span
from devlint.report.base import Report
from devlint.report.formats import render
from devlint.report.terminal import cells
from tests.notebooks import notebook
from tests.test_cli import run

WARNING, ERROR, HINT = Severity.WARNING, Severity.ERROR, Severity.INFO


def finding(row: int, advice: str = "do it", filename: str = "a.py", code: str = "DVL601", **more) -> Finding:
    fields = {"message": f"`x{row}` is wrong", "severity": WARNING, "span": Span(row, 1, row, 4), **more}
    return Finding(code, "the-rule", filename=filename, help=advice, **fields)


def code(rows: int) -> bytes:
    return "".join(f"y = f(x{row}, 'a')\n" for row in range(1, rows + 1)).encode()


def report(*findings: Finding, **more) -> Report:
    contents = {one.filename: code(400) for one in findings}
    return Report(findings, 1, **{"contents": contents, "quiet": True, **more})


def blocks(*findings: Finding, **more) -> list[str]:
    return [f"{piece}\n" for piece in render(report(*findings, **more), "text")]


def places(text: str) -> list[tuple[int, int]]:
    return [(int(row), int(column)) for row, column in re.findall(r"(?<= )a\.py:(\d+):(\d+)(?=\s)", text)]


class TestTogether:
    def test_the_same_help_is_one_block(self) -> None:
        (block,) = blocks(finding(3), finding(7), finding(9, span=Span(9, 5, 9, 6)))
        assert places(block) == [(3, 1), (7, 1), (9, 5)]
        assert block.count("help: do it") == block.count("is wrong") == 1
        assert "y = f(x9, 'a')" in block

    @pytest.mark.parametrize("other", [{"advice": "else"}, {"filename": "b.py"}, {"code": "DVL602"}])
    def test_another_help_file_or_rule_is_another_block(self, other) -> None:
        first, second = blocks(finding(3), finding(7, **other))
        assert ":3:1" in first
        assert ":7:1" not in first
        assert ":7:1" in second

    def test_blocks_stand_where_their_first_findings_do(self) -> None:
        found = [finding(1, "one"), finding(2, "two"), finding(3, "one"), finding(4, "three"), finding(5, "two")]
        assert [places(block) for block in blocks(*found)] == [[(1, 1), (3, 1)], [(2, 1), (5, 1)], [(4, 1)]]

    def test_the_gravest_comes_first_and_others_say_what_they_are(self) -> None:
        (block,) = blocks(
            finding(3, severity=HINT, message="`x3` may be wrong"),
            finding(4, severity=HINT, message="`x4` may be wrong"),
            finding(8, severity=ERROR),
        )
        assert block.startswith("error[DVL601] the-rule: `x8` is wrong\n")
        assert places(block) == [(8, 1), (3, 1), (4, 1)]
        assert " = info: `x3` may be wrong\n" in block
        assert "`x4`" not in block, "the code says which it is"

    def test_a_name_that_is_not_in_the_code_is_told(self) -> None:
        (block,) = blocks(finding(3), finding(4, message="`self.hidden` is wrong"), finding(5, message="`x` is wrong"))
        assert "= also: `self.hidden` is wrong\n" in block
        assert "`x` is wrong" in block, "x5 is another name"

    @pytest.mark.parametrize("name", ["f(x4, 'a')", 'f(x4, "a")', "f(...)", "f( x4,'a' )"])
    def test_names_are_found_however_they_are_spelled(self, name: str) -> None:
        (block,) = blocks(finding(3, message="`f(x3, 'a')` is wrong"), finding(4, message=f"`{name}` is wrong"))
        assert block.count("is wrong") == 1

    def test_what_led_to_each_is_told(self) -> None:
        first = (Place(Span(1, 1, 1, 4), "made here"),)
        others = (*first, Place(Span(2, 1, 2, 4), "moved here"), Place(Span(6, 1, 6, 4), "read there", "b.py"))
        (block,) = blocks(finding(3, related=first), finding(4, related=others))
        assert "line 2: moved here; b.py:6: read there\n" in block
        assert block.count("made here") == 1

    def test_cells_of_a_notebook_are_one_file(self) -> None:
        spans = [Span(1, 1, 1, 4, cell=1), Span(2, 1, 2, 4, cell=1), *(Span(1, 1, 1, 4, cell=2) for _ in range(20))]
        found = [finding(0, filename="a.ipynb", span=span, message="it is wrong") for span in spans]
        contents = {"a.ipynb": notebook("x1\nx2", "other")}
        (block,) = blocks(*found, contents=contents)
        assert "--> a.ipynb:cell 1:1:1\n" in block
        assert "a.ipynb:cell 1:2:1  x2\n" in block
        assert "a.ipynb:cell 2:1:1  other\n" in block
        assert "more: cell 2:1\n" in block

    def test_places_are_links_and_colours_change_nothing_else(self) -> None:
        found = [finding(3), finding(7), finding(8, message="`z` is wrong")]
        (plain,), (painted,) = blocks(*found), blocks(*found, color=True, links=True)
        assert painted.count("\x1b]8;;file:") == 3
        assert re.sub(r"\x1b\]8;;.*?\x1b\\|\x1b\[[\d;]*m", "", painted) == plain

    def test_a_cell_links_to_its_notebook(self) -> None:
        found = [finding(0, filename="a.ipynb", span=Span(row, 1, row, 4, cell=1), message="no") for row in (1, 2)]
        (block,) = blocks(*found, contents={"a.ipynb": notebook("x1\nx2")}, links=True)
        assert len(re.findall(r"]8;;file:[^\x1b]*/a\.ipynb\x1b", block)) == 2


class TestFolded:
    @pytest.mark.parametrize("count", [2, 10, 11, 12, 13, 40, 300])
    def test_nothing_is_lost(self, count: int) -> None:
        (block,) = blocks(*(finding(row) for row in range(1, count + 1)))
        shown = [row for row, _ in places(block)]
        fold = re.search(r"and (\d+) more: lines (.*)", block)
        folded = [int(row) for row in fold[2].split(", ")] if fold else []
        assert shown + folded == list(range(1, count + 1))
        if fold:
            assert len(folded) == int(fold[1]) > 1
        assert block.count("\n") < 25, "it can be read"

    def test_errors_are_not_folded(self) -> None:
        found = [finding(row) for row in range(1, 41)]
        errors = [finding(row, severity=ERROR) for row in range(41, 81)]
        (block,) = blocks(*found, *errors)
        assert [row for row, _ in places(block)][:40] == list(range(41, 81))

    def test_what_a_run_says_is_not_folded(self) -> None:
        said = Evidence("confirmed")
        (block,) = blocks(*(finding(row, evidence=said) for row in range(1, 41)))
        assert block.count("confirmed") == len(places(block)) == 40

    @pytest.mark.parametrize("width", [50, 60, 80, 120])
    def test_it_keeps_to_the_terminal(self, width: int) -> None:
        long = f"y = {'1 + ' * 60}x{'2 + ' * 60}1\n"
        contents = {"a.py": (long * 400).encode()}
        at = long.index("x") + 1
        found = [finding(row, span=Span(row, at, row, at + 1), message="wrong") for row in range(1, 60)]
        (block,) = blocks(*found, contents=contents, width=width)
        assert max(map(cells, block.splitlines())) <= width
        assert block.count("x2") == 11, "what is meant is in view, with the first and with those that are listed"
        assert {int(row) for row in re.findall(r"\b\d+\b", block[block.index("more:") :])} >= set(range(12, 60))

    @pytest.mark.parametrize("name", [name for name in OUTPUT_FORMATS if name != "text"])
    def test_formats_for_programs_tell_each(self, name: str) -> None:
        text = "\n".join(render(report(*(finding(row, message="it is wrong") for row in range(101, 141))), name))
        assert all(re.search(rf"\b{row}\b", text) for row in range(101, 141))
        assert text.count("it is wrong") >= 40


def counted(lines: Sequence[str]) -> Counter[tuple[str, str]]:
    """The severities and rules in the rows of the counts."""
    rows = (re.match(r" *(\d+)  (\w+) +(\w+)  the-rule", line) for line in lines)
    return Counter({(row[2], row[3]): int(row[1]) for row in rows if row})


class TestCounts:
    FOUND = tuple(
        finding(row, f"help {row % 20}", code=f"DVL60{row % 3}", severity=(WARNING, HINT)[row % 7 == 0])
        for row in range(1, 100)
    )

    def shown(self, *findings: Finding, **more) -> list[str]:
        return "\n".join(render(report(*findings, **{"quiet": False, **more}), "text")).splitlines()

    def test_a_long_report_is_counted_by_rule_and_severity(self) -> None:
        found = Counter((str(one.severity), one.code) for one in self.FOUND)
        assert counted(self.shown(*self.FOUND)) == found
        assert not counted(self.shown(*self.FOUND, quiet=True))

    def test_errors_are_counted_whatever_else_there_is(self) -> None:
        lines = self.shown(*self.FOUND, finding(200, "help 3", code="DVL600", severity=ERROR))
        assert counted(lines)["error", "DVL600"] == 1

    def test_a_short_report_is_not(self) -> None:
        assert not counted(self.shown(*self.FOUND[:5]))
        assert not counted(self.shown(*(finding(row) for row in range(1, 100)))), "that is one block"

    def test_kinds_of_files_add_up_and_can_be_left_out(self, tree) -> None:
        text = "import torch\n" + "".join(f"torch.ones({n}).cuda()\n" for n in range(1, 4))
        names = ("a.py", "tests/a.py", "tests/sub/b.py", "lib/test_c.py", "demo/x.py", "vendor/y.py", "demo/n.ipynb")
        more = {f"lib/m{number}.py": text for number in range(10)}
        tree({**{name: notebook(text) if name.endswith("ipynb") else text for name in names}, **more})
        arguments = ("--exit-zero", "--select", "DVL601")
        lines = run(*arguments).stdout.splitlines()
        (line,) = [line for line in lines if "exclude-kinds" in line]
        counts = {kind: int(count) for count, kind in re.findall(r"(\d+) in (\w+)", line)}
        assert counts == {"tests": 9, "notebooks": 3, "examples": 3, "vendored": 3}
        tree({"pyproject.toml": f"[tool.devlint]\n{re.search('`(exclude-kinds.*?)`', line)[1]}\n"})
        left = run(*arguments, "--output-format", "concise").stdout.splitlines()
        everything = int(re.search(r"Found (\d+) problems", "\n".join(lines))[1])
        assert len(left) == everything - sum(counts.values()) == 33
        assert "exclude-kinds" not in run(*arguments).stdout
