"""Notebooks: checked cell by cell, fixed without touching anything else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlint import check_source
from devlint.config.schema import OUTPUT_FORMATS
from devlint.finding import Span
from devlint.source.notebook.cells import read, written
from devlint.source.notebook.magics import Plain, SkippedCell, plain
from devlint.source.notebook.script import Script
from tests.notebooks import cell, document, notebook, sources
from tests.test_cli import ROOT, run

IMPORTS = "import torch\nfrom torch import nn"
MISMATCH = "print(1)\nz = x + y"
X, Y = "x = torch.ones(3, 3)", "y = torch.ones(3, 3).cuda()"


def places(*cells: str | dict[str, Any], **more: Any) -> list[tuple[str, int, int, int]]:
    """What is found: code, cell, row, column."""
    found = check_source(notebook(*cells, **more), "a.ipynb")
    return [(finding.code, finding.span.cell, finding.span.row, finding.span.column) for finding in found]


def mismatches(*cells: str | dict[str, Any], **more: Any) -> list[tuple[str, int, int, int]]:
    return [place for place in places(*cells, **more) if place[0] in ("DVL101", "DVL900")]


class TestFindings:
    def test_state_goes_from_cell_to_cell(self) -> None:
        found = check_source(notebook(IMPORTS, cell("# text", "markdown"), X, Y, MISMATCH), "a.ipynb")
        (finding,) = [finding for finding in found if finding.code == "DVL101"]
        assert finding.span == Span(2, 5, 2, 10, cell=5)
        assert {(place.span.cell, place.span.row, place.label) for place in finding.related} >= {
            (3, 1, "created on the CPU here")
        }
        assert finding.context is not None
        assert finding.context.rows == (2, 2)

    def test_cells_of_other_kinds_do_not_count(self) -> None:
        assert mismatches(IMPORTS, X, Y, cell("x = x.cuda()", "raw"), cell("x = x.cuda()", "markdown"), MISMATCH) == [
            ("DVL101", 6, 2, 5)
        ]

    def test_cells_in_other_languages_do_not_count(self) -> None:
        other = cell("x = x.cuda()", metadata={"vscode": {"languageId": "julia"}})
        assert mismatches(IMPORTS, X, Y, "%%bash\nx = x.cuda()", other, "%%python\nx = x.cuda()", MISMATCH) == [
            ("DVL101", 7, 2, 5)
        ]

    def test_a_notebook_in_another_language_is_left_alone(self, tree) -> None:
        other = {"kernelspec": {"language": "julia", "name": "j", "display_name": "J"}}
        tree({"r.ipynb": notebook("x = (", metadata=other), "a.py": ""})
        assert run(".").stdout == "No problems in 2 files.\n"
        named = run("r.ipynb")
        assert (named.exit_code, named.stderr) == (2, "error: r.ipynb: its cells are in julia, not in Python\n")

    def test_a_version_or_a_language_that_is_not_said_is_what_it_is_everywhere(self) -> None:
        said = document(IMPORTS, X, Y, MISMATCH)
        spec = {"kernelspec": {"language": "python"}, "language_info": {"name": "plaintext"}}
        for bare in ({"cells": said["cells"]}, {"cells": said["cells"], "metadata": spec}):
            found = check_source(json.dumps(bare).encode(), "a.ipynb")
            assert "DVL101" in [finding.code for finding in found]
        spec["kernelspec"]["language"] = "julia"
        assert read(json.dumps({"cells": [], "metadata": spec}).encode()).language == "julia"

    def test_a_cell_that_is_no_python_costs_only_itself(self) -> None:
        assert mismatches(IMPORTS, X, Y, "a = 1\nx = x.cuda(\n", MISMATCH) == [
            ("DVL900", 4, 2, 11),
            ("DVL101", 5, 2, 5),
        ]

    def test_a_bracket_does_not_swallow_the_next_cell(self) -> None:
        assert [place[:2] for place in mismatches(IMPORTS, X, Y, "a = (1,", "b = 2)", MISMATCH)] == [
            ("DVL900", 4),
            ("DVL900", 5),
            ("DVL101", 6),
        ]

    def test_columns_count_characters(self) -> None:
        assert mismatches(IMPORTS, X, Y, "s = '😀é'; z = x + y") == [("DVL101", 4, 1, 15)]

    def test_one_string_instead_of_lines(self) -> None:
        joined = {**cell(""), "source": f"{X}\n{Y}\nz = x + y"}
        assert mismatches(IMPORTS, joined) == [("DVL101", 2, 3, 5)]

    def test_await_at_the_top_level(self) -> None:
        assert mismatches(IMPORTS, X, Y, "await f()\nasync with g():\n    pass\nz = x + y") == [("DVL101", 4, 4, 5)]

    def test_a_coding_comment_is_only_a_comment(self) -> None:
        assert mismatches(f"# coding: utf-16\n{IMPORTS}", "# é", X, Y, MISMATCH) == [("DVL101", 5, 2, 5)]


class TestMagics:
    @pytest.mark.parametrize(
        "line",
        [
            "%matplotlib inline",
            "!pip install 'torch",
            "!ls \\\n  -l (",
            "x?",
            "?x",
            "torch.ones??",
            "%timeit -n 10 f(",
            "files = !ls",
            "out = %sql select 'x",
            "if files:\n    %run other.py\n    !echo done",
            "%time",
            ",f a b",
            ";f a b",
            "/f a, b",
        ],
    )
    def test_lines_of_ipython_do_not_disturb(self, line: str) -> None:
        after = line.count("\n") + 1
        assert mismatches(IMPORTS, X, Y, f"{line}\nz = x + y") == [("DVL101", 4, after + 1, 5)]

    @pytest.mark.parametrize("line", ["ls /content/checkpoints/", "cd ..\n", "pip install -q torch", "  ls -l *.pt"])
    def test_a_magic_may_lack_its_sign_in_a_cell_of_one_line(self, line: str) -> None:
        assert mismatches(IMPORTS, X, Y, line, MISMATCH) == [("DVL101", 5, 2, 5)]
        found = mismatches(IMPORTS, X, Y, f"{line.rstrip()}\nz = x + y")
        assert [place[:2] for place in found] == [("DVL900", 4)]

    @pytest.mark.parametrize("line", ["x y", "ls = = 3", "ls (", "lsx a b"])
    def test_other_words_are_no_magic(self, line: str) -> None:
        assert [place[:2] for place in mismatches(IMPORTS, line)] == [("DVL900", 2)]

    @pytest.mark.parametrize("magic", ["%%time", "%%capture out --no-stderr", "\n%%timeit -n 1"])
    def test_cells_whose_text_is_python(self, magic: str) -> None:
        assert mismatches(IMPORTS, X, Y, f"{magic}\nz = x + y") == [("DVL101", 4, magic.count("\n") + 2, 5)]

    @pytest.mark.parametrize("mark", ["pass  # \x1fdevlint cell 1;", "!ls  # \x1fdevlint 1;"])
    def test_what_looks_like_the_work_of_devlint_costs_only_its_cell(self, tree, mark: str) -> None:
        assert mismatches(IMPORTS, X, Y, f"!ls\n{mark}", MISMATCH) == [("DVL900", 4, 2, 1), ("DVL101", 5, 2, 5)]
        tree({"a.ipynb": notebook(IMPORTS, f"x = torch.ones(3)\n{mark}", "x = torch.ones(3)\nx.cuda()")})
        run("a.ipynb", "--fix", "--unsafe-fixes")
        assert sources(Path("a.ipynb").read_bytes())[1:] == [
            f"x = torch.ones(3)\n{mark}", "x = torch.ones(3)\nx = x.cuda()"
        ]  # fmt: skip

    def test_a_timed_statement_is_read(self) -> None:
        assert mismatches(IMPORTS, X, Y, "%time z = x + y") == [("DVL101", 4, 1, 11)]
        assert mismatches(IMPORTS, X, Y, "%time x = x.cuda()\nz = x + y") == []

    @pytest.mark.parametrize(
        "magic", ["%timeit ", "%timeit -n 10 -r3 -q ", "%timeit\t-o ", "%memit -r 1 ", "%prun -l 5 "]
    )
    def test_a_timed_expression_is_read(self, magic: str) -> None:
        assert mismatches(IMPORTS, X, Y, f"{magic}x + y") == [("DVL101", 4, 1, 1 + len(magic))]

    def test_what_timeit_assigns_is_lost(self) -> None:
        assert mismatches(IMPORTS, X, Y, "%timeit x = x.cuda()\nz = x + y") == [("DVL101", 4, 2, 5)]

    def test_what_is_timed_is_used(self, tree) -> None:
        tree({"a.ipynb": notebook(IMPORTS, X, "%timeit x @ x", "x = x.cuda()", "%timeit x @ x")})
        assert "DVL203" not in run("a.ipynb", "--select", "DVL203").output

    def test_a_cell_may_begin_further_in(self) -> None:
        assert mismatches(IMPORTS, f"  {X}\n  {Y}", "\n    %timeit x\n    z = x + y\nx + y") == [
            ("DVL101", 3, 3, 9), ("DVL101", 3, 4, 1)
        ]  # fmt: skip
        (failure,) = mismatches(IMPORTS, X, "    z = 1\n  z = 2")
        assert failure[:3] == ("DVL900", 3, 2)

    @pytest.mark.parametrize("text", ["a = (7\n% 3\n)", "s = '''\n!ls\n%time\nx?\n'''", "b = 7 \\\n% 3", "f(\n'%'\n)"])
    def test_what_is_python_stays_python(self, text: str) -> None:
        found = plain(text, count())
        assert found == Plain(text, {})

    def test_what_is_python_stays_python_beside_magics(self) -> None:
        found = plain("!ls\na = (7\n% 3\n)\ns = '''\n!ls\n'''", count())
        assert isinstance(found, Plain)
        assert list(found.replaced.values()) == ["!ls"]
        assert found.text.split("\n")[1:] == ["a = (7", "% 3", ")", "s = '''", "!ls", "'''"]


LINES = st.sampled_from(
    ["x = 1", "", "  ", "%matplotlib inline", "!ls", "x?", "if x:\n    y = 2\n    !ls", "a = (1,\n 2)", "# c",
     "z = %who", "%time f(x)  # why", "!a \\\n b", "s = '''\n%x\n'''", "\u2028'é'", "def f():\n    return 1\n",
     "'\\\n'", "    b = 1", "    %timeit -n 3 x", "%timeit -r3 x  # y", "%memit x = 1", "%time f(", "%time x = 1"]
)  # fmt: skip


@given(st.lists(st.lists(LINES, max_size=6).map("\n".join), max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_a_script_leads_back_to_its_cells(texts: list[str], newline: str) -> None:
    cells = [(number, text.replace("\n", newline)) for number, text in enumerate(texts, 1)]
    script = Script.of(cells)
    known = dict(cells)
    assert script.texts() == {number: known[number] for number in script.cells}
    assert script.with_text(script.text).texts() == script.texts()
    rows = script.text.replace("\r\n", "\n").split("\n")
    for number in script.cells:
        for row, line in enumerate(known[number].replace("\r\n", "\n").split("\n"), 1):
            at = script.row(number, row)
            assert at is not None
            assert script.in_cell(Span(at, 1, at, 2)) == Span(row, 1, row, 2, number)
            assert rows[at - 1] == line or "\x1fdevlint" in rows[at - 1]


class TestWriting:
    def test_nothing_to_fix_leaves_every_byte(self, tree) -> None:
        odd = b'\xef\xbb\xbf{"nbformat":4,\n "cells" : [ {"source":["%x\\n","y = \\u00e9"],"cell_type":"code"} ] }'
        tree({"a.ipynb": odd, "b.ipynb": notebook(IMPORTS, "!ls", indent=4, end="")})
        before = {name: Path(name).read_bytes() for name in ("a.ipynb", "b.ipynb")}
        assert run(".", "--fix", "--unsafe-fixes").exit_code == 0
        assert {name: Path(name).read_bytes() for name in before} == before
        assert before["a.ipynb"] == odd

    @pytest.mark.parametrize("indent", [1, 4, None])
    @pytest.mark.parametrize("end", ["\n", ""])
    def test_a_fix_changes_its_line_alone(self, tree, indent: int | None, end: str) -> None:
        loop = "%time n = 1\nfor x, in DataLoader(data, num_workers=4):\n    print('é')\n    model(x.to(device))"
        data = notebook(
            f"{IMPORTS}\nfrom torch.utils.data import DataLoader\n%matplotlib inline",
            cell("é # text", "markdown"),
            "device = torch.device('cuda')\nmodel = nn.Linear(3, 3).to(device)",
            loop,
            "!ls",
            indent=indent,
            end=end,
        )
        tree({"a.ipynb": data})
        assert run("a.ipynb", "--fix", "--select", "DVL301").exit_code == 0
        after = Path("a.ipynb").read_bytes()
        fixed = loop.replace("num_workers=4", "num_workers=4, pin_memory=True")
        fixed = fixed.replace("x.to(device)", "x.to(device, non_blocking=True)")
        assert sources(after)[3] == fixed
        old, new = data.decode(), after.decode()
        # as text: the two lines in their place, and all else as it was
        assert new == old.replace("num_workers=4", "num_workers=4, pin_memory=True").replace(
            "x.to(device)", "x.to(device, non_blocking=True)"
        )

    def test_a_fix_in_a_cell_that_begins_further_in(self, tree) -> None:
        text = "  x = torch.ones(3)\n  x.cuda()\n  %timeit -n 3 f(torch.ones(3).to(d))"
        tree({"a.ipynb": notebook(f"{IMPORTS}\nd = torch.device('cuda')", text, "!ls")})
        run("a.ipynb", "--fix", "--unsafe-fixes", "--select", "DVL102,DVL203")
        fixed = "  x = torch.ones(3)\n  x = x.cuda()\n  %timeit -n 3 f(torch.ones(3, device=d))"
        assert sources(Path("a.ipynb").read_bytes())[1:] == [fixed, "!ls"]

    def test_an_import_comes_with_a_fix(self, tree) -> None:
        device = 'device = "cuda" if cuda.is_available() else "cpu"'
        data = notebook(f"!ls\nfrom torch import cuda, nn\n{device}", "x = cuda.FloatTensor(3)\n!ls")
        tree({"a.ipynb": data})
        run("a.ipynb", "--fix", "--unsafe-fixes", "--select", "DVL7")
        first, second = sources(Path("a.ipynb").read_bytes())
        assert first == f"!ls\nimport torch\nfrom torch import cuda, nn\n{device}"
        assert second == "x = torch.empty(3, dtype=torch.float32, device=device)\n!ls"

    @pytest.mark.parametrize(
        ("raw", "text", "expected"),
        [
            ('["a\\n", "b"]', "a\nc", '["a\\n", "c"]'),
            ('["a\\n",\n   "b"]', "a\nnew\nb", '["a\\n",\n   "new\\n",\n   "b"]'),
            ('[\n  "a"\n ]', "a\nb", '[\n  "a\\n",\n  "b"\n ]'),
            ('["a"]', "a\nb", '["a\\n", "b"]'),
            ('["\\u0061\\n", "b"]', "a\nc", '["\\u0061\\n", "c"]'),
            ('["a\\n",\n "b\\n",\n "c"]', "a\nc", '["a\\n",\n "c"]'),
            ('"a\\nb"', "a\nc", '"a\\nc"'),
            ('"a"', "é", '"\\u00e9"'),
            ('["a"]', "", "[]"),
            ("[]", "a", '["a"]'),
            ('["a", "b"]', "abc", '["abc"]'),
        ],
    )
    def test_the_json_keeps_its_look(self, raw: str, text: str, expected: str) -> None:
        whole = '{"nbformat": 4, "cells": [{"cell_type": "code", "source": %s, "outputs": [1e5]}]}\n'
        assert written(read((whole % raw).encode()), {1: text}).decode() == whole % expected

    def test_a_diff_that_patch_takes(self, tree) -> None:
        data = notebook(IMPORTS, "x = torch.ones(3)\nx.cuda()\nprint(x)")
        tree({"a.ipynb": data})
        diff = run("a.ipynb", "--diff", "--unsafe-fixes")
        assert diff.exit_code == 1
        assert '-    "x.cuda()\\n",\n+    "x = x.cuda()\\n",\n' in diff.stdout
        assert Path("a.ipynb").read_bytes() == data

    def test_the_standard_input(self) -> None:
        data = notebook(IMPORTS, "x = torch.ones(3)\nx.cuda()\nprint(x)")
        concise = run("-", "--stdin-filename", "n/a.ipynb", "--output-format", "concise", stdin=data)
        assert concise.stdout.startswith("n/a.ipynb:cell 2:2:1: DVL102 ")
        fixed = run("-", "--stdin-filename", "a.ipynb", "--fix", "--unsafe-fixes", stdin=data)
        assert sources(fixed.stdout.encode()) == [IMPORTS, "x = torch.ones(3)\nx = x.cuda()\nprint(x)"]

    def test_the_text_shows_the_cells(self, tree) -> None:
        tree({"a.ipynb": notebook(IMPORTS, X, Y, MISMATCH)})
        shown = run("a.ipynb", "--select", "DVL101").stdout
        assert " --> a.ipynb:cell 4:2:5\n  |\n2 | z = x + y\n  |     ^^^^^ " in shown
        assert " ::: a.ipynb:cell 2:1:5\n  |\n1 | x = torch.ones(3, 3)\n  |     ---" in shown

    def test_the_json_names_the_cells(self, tree) -> None:
        tree({"a.ipynb": notebook(IMPORTS, X, Y, MISMATCH)})
        (found,) = json.loads(run("a.ipynb", "--select", "DVL101", "--output-format", "json").stdout)
        assert (found["cell"], found["location"]) == (4, {"row": 2, "column": 5})
        assert found["filename"] == os.path.abspath("a.ipynb")
        assert {(place["cell"], place["filename"]) for place in found["related"]} == {(2, found["filename"])} | {
            (3, found["filename"])
        }
        assert all(edit["cell"] in (2, 4) for edit in (found["fix"] or {"edits": []})["edits"])


class TestSuppressions:
    def test_in_the_cell(self) -> None:
        assert mismatches(IMPORTS, X, Y, "z = x + y  # devlint: ignore[DVL101]") == []
        assert mismatches(IMPORTS, X, Y, "# devlint: ignore[DVL101]\nz = x + y") == []
        assert mismatches(IMPORTS, "# devlint: ignore-file[DVL101]", X, Y, MISMATCH) == []

    def test_not_in_the_next_one(self) -> None:
        found = places(IMPORTS, X, f"{Y}\n# devlint: ignore[DVL101]", "z = x + y")
        assert ("DVL101", 4, 1, 5) in found
        assert ("DVL901", 3, 2, 1) in found

    def test_what_was_never_run_beside_what_was_is_a_note(self) -> None:
        """Seen in proxylessnas: printed numbers in a cell of code."""
        note = cell("[-5.80 4.12]", "code") | {"execution_count": None, "outputs": []}
        assert mismatches(IMPORTS, note, X, Y, MISMATCH) == [("DVL101", 5, 2, 5)]
        fresh = [one | {"execution_count": None, "outputs": []} for one in map(cell, (IMPORTS, X, Y))]
        assert [place[:2] for place in mismatches(*fresh, note)] == [("DVL900", 4)]

    def test_of_a_cell_that_is_no_python(self) -> None:
        assert mismatches(IMPORTS, "x = (") == [("DVL900", 2, 1, 5)]
        assert mismatches(IMPORTS, "# devlint: ignore-file[DVL900]", "x = (") == []

    def test_they_are_added(self, tree) -> None:
        data = notebook(IMPORTS, X, Y, "!ls\n%time z = x + y\nw = x * y", "a = (")
        tree({"a.ipynb": data})
        run("a.ipynb", "--add-suppressions", "--select", "DVL101")
        after = Path("a.ipynb").read_bytes()
        assert sources(after)[3] == (
            "!ls\n%time z = x + y  # devlint: ignore[DVL101]\nw = x * y  # devlint: ignore[DVL101]"
        )
        assert after.decode().replace("  # devlint: ignore[DVL101]", "") == data.decode()
        left = run("a.ipynb", "--select", "DVL101", "--output-format", "concise").stdout
        assert left == "a.ipynb:cell 5:1:5: DVL900 '(' was never closed\n"

    def test_they_are_removed(self, tree) -> None:
        tree({"a.ipynb": notebook(IMPORTS, "# devlint: ignore[DVL101]", "x = 1")})
        run("a.ipynb", "--fix", "--unsafe-fixes", "--select", "ALL")
        assert sources(Path("a.ipynb").read_bytes()) == [IMPORTS, "", "x = 1"]


class TestNarrowing:
    def test_the_baseline(self, tree) -> None:
        tree({"a.ipynb": notebook(IMPORTS, X, Y, MISMATCH)})
        options = ("--baseline", "b.json", "--select", "DVL101")
        assert run(".", *options, "--update-baseline").exit_code == 0
        assert run(".", *options).exit_code == 0
        tree({"a.ipynb": notebook(cell("new", "markdown"), IMPORTS, X, Y, MISMATCH, "w = y - x")})
        shown = run(".", *options, "--output-format", "concise").stdout
        assert shown.startswith("a.ipynb:cell 6:1:5: DVL101 ")
        assert shown.count("DVL101") == 1

    @pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
    def test_since(self, tree) -> None:
        def git(*arguments: str) -> None:
            identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
            subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, timeout=60)

        tree({"a.ipynb": notebook(IMPORTS, X, Y, MISMATCH), "b.ipynb": notebook(IMPORTS, X, Y, MISMATCH)})
        git("init", "-q")
        git("add", "-A")
        git("commit", "-qm", "x")
        tree({"a.ipynb": notebook(IMPORTS, X, Y, "# é", MISMATCH, "w = y - x")})
        shown = run(".", "--since", "HEAD", "--select", "DVL101", "--output-format", "concise").stdout
        assert shown.startswith("a.ipynb:cell 6:1:5: DVL101 ")
        assert shown.count("DVL101") == 1

    def test_rules_for_some_files(self, tree) -> None:
        tree({"a.ipynb": notebook(IMPORTS, X, Y, MISMATCH, "x = ("), "pyproject.toml": ""})
        Path("pyproject.toml").write_text('[tool.devlint.per-file-ignores]\n"*.ipynb" = ["ALL"]\n')
        assert run(".").exit_code == 0


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"{", "1:1: DVL900 not a notebook: not valid JSON: Expecting property name enclosed in double quotes"),
        (b'{\n"cells": [\n', "3:1: DVL900 not a notebook: not valid JSON: Expecting value"),
        (b"[]", "1:1: DVL900 not a notebook: its JSON is no object"),
        (b"{}", "1:1: DVL900 not a notebook: it has no nbformat"),
        (b'{"nbformat": "4", "cells": []}', "1:1: DVL900 not a notebook: it has no nbformat"),
        (b'{"nbformat": 4}', "1:1: DVL900 not a notebook: it has no cells"),
        (b'{"nbformat": 4, "cells": [1]}', "1:1: DVL900 not a notebook: a cell is no object"),
        (b'{"nbformat": 4, "cells": [{}]}', "1:1: DVL900 not a notebook: cell 1 has no source"),
        (b'{"nbformat": 4, "cells": [{"source": [1]}]}', "1:1: DVL900 not a notebook: the source of cell 1 is no text"),
        (b'{"nbformat": 4, "cells": []} x', "1:1: DVL900 not a notebook: not valid JSON: Extra data"),
        (b'{"nbformat": 3, "worksheets": []}', "1:1: DVL900 the notebook is of format 3, and only 4 is read; "),
        (b"\xff", "1:1: DVL900 not a notebook: not valid UTF-8: invalid start byte"),
        (b'{"a":\n<<<<<<< HEAD\n', "2:1: DVL900 not a notebook: there are merge conflicts in it"),
        (b'{"a": ' + b"[" * 200_000, "1:1: DVL900 not a notebook: its JSON is nested too deeply"),
    ],
)
def test_a_broken_notebook_is_one_clear_line(tree, content: bytes, line: str) -> None:
    tree({"a.ipynb": content})
    for more in ((), ("--fix",)):
        result = run(".", "--output-format", "concise", *more)
        assert (result.exit_code, result.stderr) == (1, "")
        assert result.stdout.startswith(f"a.ipynb:{line}")
        assert result.stdout.count("\n") == 1
    assert Path("a.ipynb").read_bytes() == content
    assert run(".", "--add-suppressions").exit_code == 1
    assert Path("a.ipynb").read_bytes() == content


def test_a_pointer_of_git_lfs_is_told_to_those_who_ask(tree) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    tree({"a.ipynb": pointer, "b.py": pointer})
    for more in ((), ("--fix",)):
        assert (result := run(".", *more)).exit_code == 0, result.stdout
    told = run(".", "--output-format", "concise", "--select", "DVL900").stdout
    assert told.count("DVL900 a pointer of Git LFS stands in the place of the file") == 2
    assert Path("a.ipynb").read_bytes() == pointer


def test_places_in_the_file() -> None:
    """For formats that know no cells: the row and the column in the JSON."""
    data = notebook(IMPORTS, "a = 'é\"😀'\n\tx = 1", indent=1)
    found = read(data).in_file(Span(2, 2, 2, 3, cell=2))
    line = data.decode().split("\n")[found.row - 1]
    assert line[found.column - 1 : found.end_column - 1] == "x"
    first = read(data).in_file(Span(1, 9, 1, 10, cell=2))
    assert data.decode().split("\n")[first.row - 1][first.column - 1] == "'"
    escaped = data.decode().encode("ascii", "backslashreplace").decode()
    escaped = escaped.replace("\\xe9", "\\u00e9").replace("\\U0001f600", "\\ud83d\\ude00")
    place = read(escaped.encode()).in_file(Span(1, 9, 1, 10, cell=2))
    assert escaped.split("\n")[place.row - 1][place.column - 1] == "'"


def test_a_skipped_cell_says_so() -> None:
    with pytest.raises(SkippedCell):
        plain("%%html\n<b>", count())


@pytest.mark.parametrize("output_format", OUTPUT_FORMATS)
def test_every_format_tells_the_cell_and_the_line(tree, output_format: str) -> None:
    """Those that know no cells say it in the message, and point to the line of the file where that stands."""
    tree({"a.ipynb": notebook(IMPORTS, X, Y, MISMATCH)})
    shown = run("a.ipynb", "--select", "DVL101", "--output-format", output_format).stdout
    row = Path("a.ipynb").read_text().split("\n").index('    "z = x + y"') + 1
    if output_format in ("text", "concise", "junit"):
        assert "a.ipynb:cell 4:2:5" in shown
    elif output_format in ("json", "json-lines"):
        (found,) = json.loads(shown if output_format == "json" else f"[{shown}]")
        assert (found["cell"], found["location"]["row"]) == (4, 2)
    else:
        assert "cell 4, line 2: " in shown
        assert {
            "github": f",line={row},col=10,",
            "gitlab": f'"line": {row},\n          "column": 10',
            "sarif": f'"startLine": {row},\n                  "startColumn": 10',
            "rdjson": f'"line": {row},\n            "column": 10',
        }[output_format] in shown


def test_nothing_of_this_is_loaded_for_other_files(tree) -> None:
    tree({"a.py": "import torch\ntorch.ones(3).cuda()\n"})
    code = (
        "import sys\nfrom devlint.cli import main\n"
        "try:\n    main(['check', '--no-cache', '-q', '--exit-zero', '--select', 'DVL900', '.'])\n"
        "finally:\n    print([name for name in sys.modules if 'notebook' in name or name in ('pygls', 'lsprotocol')])"
    )
    environment = {**os.environ, "PYTHONPATH": ROOT}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    assert done.stdout == "[]\n"


def test_the_same_mistake_in_several_cells_is_told_once(tree) -> None:
    """Seen in BirdSet: a replacement gone wrong."""
    tree({"a.ipynb": notebook("x = 'a\n", "y = 1\n", "z = 'b\n", "w = (\n")})
    found = json.loads(run("--select", "DVL900", "--output-format", "json", "a.ipynb").stdout)
    assert [(one["code"], one["cell"], len(one["related"])) for one in found] == [("DVL900", 1, 1), ("DVL900", 4, 0)]


def test_an_empty_file_has_nothing_to_check(tree) -> None:
    tree({"a.ipynb": ""})
    assert run("a.ipynb").exit_code == 0
