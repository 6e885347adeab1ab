"""Fixes applied by the engine: what comes together, what waits, what is refused, and which bytes change."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

import pytest

from devlint.check.analysis import Analyzer
from devlint.check.outcome import AnalysisError, Outcome
from devlint.check.rewrite.fixes import MAX_PASSES, ApplyFixes
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Applicability, Edit, Finding, Fix, Severity, Span
from devlint.source.diff import unified
from devlint.source.document import Change, Changes, Document, UnfixableError

SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE
Rule = Callable[[str], list[Finding]]


def finding(*edits: Edit, code: str = "DVL101", applicability: Applicability = SAFE) -> Finding:
    return Finding(code, "rule", Severity.ERROR, "", "a.py", edits[0].span, fix=Fix("", edits, applicability))


def edit(row: int, column: int, end_column: int, content: str, end_row: int | None = None) -> Edit:
    return Edit(Span(row, column, end_row or row, end_column), content)


def replacing(pattern: str, content: str, applicability: Applicability = SAFE) -> Rule:
    """A rule that wants one thing in the place of another, wherever it stands."""

    def rule(text: str) -> list[Finding]:
        rows = re.split("\r\n|\r|\n", text)
        found = [(row, match) for row, line in enumerate(rows, 1) for match in re.finditer(pattern, line)]
        return [
            finding(edit(row, match.start() + 1, match.end() + 1, match.expand(content)), applicability=applicability)
            for row, match in found
        ]

    return rule


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch):
    """Mend bytes under a rule that is a function of the text."""

    def run(data: str | bytes, rule: Rule, unsafe: bool = False) -> Outcome:
        def check(_: Analyzer, data: bytes) -> list[Finding]:
            return rule(Document.read(data).text)

        monkeypatch.setattr(Analyzer, "findings_in_code", check)
        return ApplyFixes(unsafe).rewrite(data.encode() if isinstance(data, str) else data, Analyzer("a.py", Config()))

    return run


class TestPasses:
    """From findings to a text."""

    def test_all_that_keep_apart_go_at_once(self, fixed) -> None:
        assert fixed("a b a\n".replace(" ", "; "), replacing("a", "x")) == Outcome(
            "a.py", (), data=b"x; b; x\n", gone=2
        )

    def test_what_overlaps_waits_for_the_next_pass(self, fixed) -> None:
        assert fixed("f(f(f(1)))\n", replacing(r"f\((\w|\(.*\))\)", r"(\1)")).data == b"(((1)))\n"

    def test_what_touches_waits_too(self) -> None:
        taken = Changes()
        assert taken.take([Change(5, 8, "x")])
        assert not taken.take([Change(8, 9, "y")])
        assert not taken.take([Change(1, 2, "y"), Change(3, 5, "y")])
        assert taken.take([Change(1, 2, "y"), Change(9, 9, "y")])
        assert not taken.take([Change(0, 20, "y")])
        assert not taken.take([Change(6, 7, "y")])

    def test_the_same_edit_may_belong_to_several(self, fixed) -> None:
        add = edit(1, 1, 1, "import torch\n")

        def rule(text: str) -> list[Finding]:
            rows = text.split("\n")
            used = [(row, line.index("old") + 1) for row, line in enumerate(rows, 1) if "old" in line]
            needed = [] if "import torch" in text else [add]
            return [finding(*needed, edit(row, column, column + 3, "torch.new")) for row, column in used]

        mended = fixed("old()\nx = old()\n", rule)
        assert mended == Outcome("a.py", (), data=b"import torch\ntorch.new()\nx = torch.new()\n", gone=2)

    def test_a_fix_is_applied_whole_or_not_at_all(self, fixed) -> None:
        def rule(text: str) -> list[Finding]:
            if text != "a = 1; b = 2; c = 3\n":
                return []
            return [finding(edit(1, 1, 2, "x"), edit(1, 8, 9, "y")), finding(edit(1, 15, 16, "z"), edit(1, 9, 10, ""))]

        assert fixed("a = 1; b = 2; c = 3\n", rule).data == b"x = 1; y = 2; c = 3\n"

    def test_the_unsafe_ones_only_if_wanted(self, fixed) -> None:
        rule = replacing("a", "x", UNSAFE)
        assert fixed("a\n", rule).data == b"a\n"
        assert fixed("a\n", rule).gone == 0
        assert fixed("a\n", rule, unsafe=True).data == b"x\n"

    def test_two_that_are_right_may_be_too_much(self, fixed) -> None:
        """Each removal leaves its block a statement; both would leave it none."""

        def rule(text: str) -> list[Finding]:
            rows = [row for row, line in enumerate(text.split("\n"), 1) if line == "    flush()"]
            inside = sum(line.startswith("    ") for line in text.split("\n"))
            return [finding(edit(row, 1, 1, "", row + 1)) for row in rows] if inside > 1 else []

        mended = fixed("if x:\n    flush()\n    flush()\n    flush()\nend()\n", rule)
        assert mended == Outcome("a.py", (), data=b"if x:\n    flush()\nend()\n", gone=2)

    def test_an_argument_given_twice_only_the_compiler_notices(self, fixed) -> None:
        def rule(text: str) -> list[Finding]:
            return [finding(edit(1, 4, 4, ", d=1")), finding(edit(1, 6, 6, ", d=1"))] if "d=" not in text else []

        assert fixed("f(a,b)\n", rule).data in (b"f(a, d=1,b)\n", b"f(a,b, d=1)\n")

    def test_a_broken_fix_costs_the_file_all_of_them(self, fixed) -> None:
        def rule(text: str) -> list[Finding]:
            return [finding(edit(1, 1, 2, "(")), finding(edit(2, 1, 2, "x"), code="DVL102")] if "a" in text else []

        mended = fixed("a\n", replacing("a", "("))
        assert mended.data == b"a\n"
        assert mended.unfixed == "nothing was fixed: Python could not read the code after DVL101; please report it"
        assert fixed("a\nb\n", rule).data == b"a\nb\n"
        assert len(fixed("a\nb\n", rule).findings) == 2

    def test_fixes_that_chase_each_other_are_dropped(self, fixed) -> None:
        mended = fixed("a = 1\n", lambda text: replacing("^a", "b")(text) + replacing("^b", "a")(text))
        assert mended.data == b"a = 1\n"
        assert mended.unfixed == "nothing was fixed: the fixes of DVL101 come to no end; please report it"

    def test_many_passes_are_no_reason_to_give_up(self, fixed) -> None:
        deep = MAX_PASSES - 1
        assert fixed("f(" * deep + "1" + ")" * deep, replacing(r"^(.*)f\(", r"\1(")).unfixed is None

    def test_a_fix_that_changes_nothing_is_none(self, fixed) -> None:
        mended = fixed("a\n", replacing("a", "a"))
        assert (mended.data, mended.gone, mended.unfixed) == (b"a\n", 0, None)
        assert len(mended.findings) == 1

    @pytest.mark.parametrize("wrong", [(9, 1, 2), (1, 1, 9), (0, 1, 1), (1, 3, 2)])
    def test_a_place_that_does_not_exist_is_refused(self, fixed, wrong: tuple[int, int, int]) -> None:
        mended = fixed("a\n", lambda text: [finding(edit(*wrong, "x"))])
        assert mended.data == b"a\n"
        assert "there is no such place" in str(mended.unfixed)

    def test_edits_of_one_fix_must_not_overlap(self, fixed) -> None:
        mended = fixed("abc\n", lambda text: [finding(edit(1, 1, 3, "x"), edit(1, 2, 4, "y"))])
        assert mended.unfixed == "nothing was fixed: the edits of a fix of DVL101 overlap; please report it"

    def test_an_analysis_that_fails_on_the_result(self, fixed) -> None:
        def rule(text: str) -> list[Finding]:
            if "x" in text:
                raise AnalysisError("KeyError")
            return replacing("a", "x")(text)

        assert fixed("a\n", rule).unfixed == "nothing was fixed: devlint failed on the fixed code: KeyError"


class TestBytes:
    """What an edit does not cover stays, byte by byte."""

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfx\n"),
            ("# coding: latin-1\ns = 'é'; a\n".encode("latin-1"), "# coding: latin-1\ns = 'é'; x\n".encode("latin-1")),
            ("# coding: cp1251\r\na  # я\r\n".encode("cp1251"), "# coding: cp1251\r\nx  # я\r\n".encode("cp1251")),
            (b"a\r\nb\rc\na", b"x\r\nb\rc\nx"),
            (b"a", b"x"),
            (b"\x0ca\n\x0c\n  \x0c\n", b"\x0cx\n\x0c\n  \x0c\n"),
            ("s = '\u2028\x85é\U0001f40d'; a\t \n\n\n".encode(), "s = '\u2028\x85é\U0001f40d'; x\t \n\n\n".encode()),
            (b"if 1:\n\ta\n        # tab\n", b"if 1:\n\tx\n        # tab\n"),
            (b"b = 1 + \\\r\n  a\r\n", b"b = 1 + \\\r\n  x\r\n"),
        ],
    )
    def test_around_an_edit(self, fixed, before: bytes, after: bytes) -> None:
        mended = fixed(before, replacing(r"\ba\b", "x"))
        assert (mended.data, mended.unfixed) == (after, None)

    @pytest.mark.parametrize(
        ("text", "place", "content", "after"),
        [
            ("a(\r\n1)\r\n", edit(1, 1, 3, "b(\n2)", 2), "b(\n2)", "b(\r\n2)\r\n"),
            ("a\r\nb\n", edit(1, 1, 1, "import c\n"), "", "import c\r\na\r\nb\n"),
            ("a\nb(1,\r\n2)\n", edit(2, 3, 3, "\n0,\n"), "", "a\nb(\r\n0,\r\n1,\r\n2)\n"),
            ("a\rb", edit(2, 1, 2, "c\nd"), "", "a\rc\rd"),
            ("a(1,\r\n2,\n3)\n", edit(1, 3, 2, "1,\n2,\n4", 3), "", "a(1,\r\n2,\n4)\n"),
        ],
    )
    def test_new_lines_end_as_those_in_their_place(self, text: str, place: Edit, content: str, after: str) -> None:
        document = Document.read(text.encode())
        assert document.changed([document.change(place)]).text == after

    def test_what_the_encoding_lacks_is_refused(self, fixed) -> None:
        data = "# coding: latin-1\na\n".encode("latin-1")
        mended = fixed(data, replacing("^a", "'漢'"))
        assert mended.data == data
        assert mended.unfixed == "nothing was fixed: its new text cannot be written in its encoding, iso-8859-1"

    def test_an_encoding_that_does_not_come_back_is_refused(self) -> None:
        # the same text has another, shorter form
        with pytest.raises(UnfixableError, match="byte by byte"):
            Document.read(b"# coding: utf-7\nx = '+AGE-'\n")

    def test_an_edit_must_not_move_the_declaration_of_the_encoding(self, fixed) -> None:
        data = "# a\n# coding: latin-1\ns = 'é'\n".encode("latin-1")

        def rule(text: str) -> list[Finding]:
            return [finding(edit(1, 1, 1, "import b\n"))] if "import" not in text else []

        assert fixed(data, rule).data == data
        assert fixed(data, rule).unfixed is not None


class TestDiff:
    """What is printed instead of written."""

    def test_a_patch_takes_it(self) -> None:
        before, after = b"a\nb\r\n\xe9\nc", b"a\nx\r\n\xe9\nc\n"
        assert unified("p/f.py", before, after) == (
            b"--- p/f.py\n+++ p/f.py\n@@ -1,4 +1,4 @@\n a\n-b\r\n+x\r\n \xe9\n-c\n\\ No newline at end of file\n+c\n"
        )

    @pytest.mark.parametrize(
        ("name", "head"),
        [
            ("é.py", "é.py"),
            ("a b.py", "a b.py\t"),
            ("n\nl.py", '"n\\012l.py"'),
            ('q"\t.py', '"q\\042\\011.py"'),
            ("back\\slash.py", '"back\\134slash.py"'),
        ],
    )
    def test_a_patch_finds_the_file(self, name: str, head: str) -> None:
        assert unified(name, b"a\n", b"b\n").startswith(f"--- {head}\n+++ {head}\n@@ ".encode())

    def test_nothing_is_no_diff(self) -> None:
        assert unified("f.py", b"a", b"a") == b""


LAYOUTS = {
    "brackets around the receiver stay": (
        "y = (a + 1).to(device) * 2\nz = (\n    a\n    + 1\n).to(device)[0]\n",
        "y = (a + 1) * 2\nz = (\n    a\n    + 1\n)[0]\n",
    ),
    "a continued line": ("y = a \\\n    .to(device) + 1\n", "y = a + 1\n"),
    "comments between": (
        "y = (\n    a  # one\n    + 1\n).sum().to(device)  # two\n",
        "y = (\n    a  # one\n    + 1\n).sum()  # two\n",
    ),
    "a comment that would be lost": ("y = (\n    a  # one\n    .to(device)\n)\n", None),
    "the inside of an f-string": ("y = f'{a.to(device)}'\n", None),
    "around an f-string": ("y = a.to(device).view(f'{n}')\n", "y = a.view(f'{n}')\n"),
    "tabs": ("if a:\n\ty = a.to(device)\t# x\n", "if a:\n\ty = a\t# x\n"),
    "two in a chain": ("y = a.to(device).to(device)\n", "y = a\n"),
    "wide characters": ("y = 'é漢\U0001f40d', a.to(device), 'é'\n", "y = 'é漢\U0001f40d', a, 'é'\n"),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_real_fix_keeps_the_layout(name: str, newline: str) -> None:
    before, after = LAYOUTS[name]
    head = "import torch\n\n\ndef f(device, n):\n    a = torch.ones(n, device=device)\n"
    text, wanted = ((head + textwrap.indent(body, "    ")).replace("\n", newline) for body in (before, after or before))
    config = Config(rule_layers=(RuleLayer(("DVL201",)),))
    mended = ApplyFixes(True).rewrite(text.encode(), Analyzer("a.py", config))
    assert (mended.data.decode(), mended.unfixed) == (wanted, None)
    assert bool(mended.gone) is (after is not None)
