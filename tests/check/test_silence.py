"""Suppressions that devlint adds: the next run is silent, and nothing else has changed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from devlint.check.analysis import check_source
from tests.test_cli import run

pytestmark = pytest.mark.usefixtures("stub_rules")


def silence(tree, text: str | bytes, *arguments: str) -> str:
    """The file after comments were added, which silence it for all rules of the default."""
    root = tree({"a.py": text})
    before = ast.dump(ast.parse((root / "a.py").read_bytes()))
    result = run("--add-suppressions", *arguments)
    assert result.exit_code == 0, result.output
    after = (root / "a.py").read_bytes()
    assert check_source(after, "a.py") == []
    assert ast.dump(ast.parse(after)) == before
    run("--add-suppressions")
    assert (root / "a.py").read_bytes() == after, "a second time changes nothing"
    return after.decode("utf-8", "surrogateescape")


C = "# devlint: ignore[DVL102]"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dropped()", f"dropped()  {C}"),
        ("x = 1\n\ndropped()\n", f"x = 1\n\ndropped()  {C}\n"),
        ("dropped()\t \n", f"dropped()  {C}\n"),
        ("dropped()\r\nx\r\n", f"dropped()  {C}\r\nx\r\n"),
        ("dropped()\rx\r", f"dropped()  {C}\rx\r"),
        ("\ufeffdropped()\n", f"\ufeffdropped()  {C}\n"),
        ("\x0cdropped()\n", f"\x0cdropped()  {C}\n"),
        ("dropped(); dropped(1)\n", f"dropped(); dropped(1)  {C}\n"),
        ("dropped(); mismatch()\n", "dropped(); mismatch()  # devlint: ignore[DVL101, DVL102]\n"),
        ("dropped()  # why\n", f"dropped()  # why  {C}\n"),
        ("dropped()  # type: ignore \n", f"dropped()  # type: ignore  {C}\n"),
        ("dropped()  # noqa: E501\n", f"dropped()  # noqa: E501  {C}\n"),
        ("dropped()  #\n", f"dropped()  #  {C}\n"),
        ("x = f(\n    dropped(),\n    1,\n)\n", f"x = f(\n    dropped(),  {C}\n    1,\n)\n"),
        ("dropped(\n    1,\n)\n", f"dropped(  {C}\n    1,\n)\n"),
        ("dropped('''\n# no\n''')\n", f"dropped('''\n# no\n''')  {C}\n"),
        ("x = '''\n''' + dropped() + '''\n'''\n", f"x = '''\n''' + dropped() + '''\n'''  {C}\n"),
        ("dropped(f'''\n{x}\n''')\n", f"dropped(f'''\n{{x}}\n''')  {C}\n"),
        ("f'''\n{\ndropped()}\n'''\n", f"f'''\n{{\ndropped()}}\n'''  {C}\n"),
        ("x = 1 + \\\n    dropped() + \\\n    2\n", f"x = 1 + \\\n    dropped() + \\\n    2  {C}\n"),
        ("assert x, \\\n    dropped()\n", f"assert x, \\\n    dropped()  {C}\n"),
        ("dropped(x, # a \\\n  1)\n", f"dropped(x, # a \\  {C}\n  1)\n"),
        ("for x in dropped():\n    pass\n", f"for x in dropped():  {C}\n    pass\n"),
        ("if x: dropped()\n", f"if x: dropped()  {C}\n"),
        ("@dropped()\ndef f(): pass\n", f"@dropped()  {C}\ndef f(): pass\n"),
        ("@a\ndef f(\n    x=dropped(),\n): pass\n", f"@a\ndef f(\n    x=dropped(),  {C}\n): pass\n"),
        ("x = lambda: (\n    dropped())\n", f"x = lambda: (\n    dropped())  {C}\n"),
        ("class A:\n\tx = dropped()\n", f"class A:\n\tx = dropped()  {C}\n"),
        ("x = ['漢字', dropped()]\n", f"x = ['漢字', dropped()]  {C}\n"),
        ("'''doc\n'''; dropped('''\n''' '''\n''')\n", f"'''doc\n'''; dropped('''\n''' '''\n''')  {C}\n"),
    ],
)
def test_where_the_comment_stands(tree, before: str, after: str) -> None:
    if sys.version_info < (3, 12) and before.startswith("f'''"):
        pytest.skip("before 3.12 Python does not know where something stands in an f-string")
    assert silence(tree, before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# devlint: ignore[DVL101]", "# devlint: ignore[DVL101, DVL102] why"),
        ("# devlint:ignore[ DVL101, ] old", "# devlint:ignore[DVL101, DVL102] old; why"),
        ("# devlint: ignore[DVL101] that is why", "# devlint: ignore[DVL101, DVL102] that is why"),
        (
            "# noqa: E501  # devlint: ignore[DVL101] a # b",
            "# noqa: E501  # devlint: ignore[DVL101, DVL102] a; why  # b",
        ),
    ],
)
def test_a_suppression_that_is_there_is_extended(tree, before: str, after: str) -> None:
    root = tree({"a.py": f"mismatch(); dropped()  {before}\n"})
    result = run("--add-suppressions=why")
    assert (root / "a.py").read_text() == f"mismatch(); dropped()  {after}\n"
    assert result.output == "Added suppressions for 1 problem in 1 file.\nNo problems in 1 file.\n"


def test_the_reason(tree) -> None:
    root = tree({"a.py": "dropped()\n", "b.py": "mismatch()\nx\ndropped(); dropped()\n"})
    result = run("--add-suppressions=see #12: before 2.0", "-j", "2")
    assert result.exit_code == 0
    assert result.stderr == "Added suppressions for 4 problems in 2 files.\n"
    assert (root / "a.py").read_text() == f"dropped()  {C} see #12: before 2.0\n"
    assert (root / "b.py").read_text().count("see #12: before 2.0") == 2
    assert run().exit_code == 0


@pytest.mark.parametrize("reason", ["a\nb", "a\x1b[0m", "x # noqa", "# devlint: ignore", "noqa", "devlint: ignore"])
def test_a_reason_that_is_none(tree, reason: str) -> None:
    root = tree({"a.py": "dropped()\n"})
    result = run(f"--add-suppressions={reason}")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "--add-suppressions: the reason" in result.stderr
    assert (root / "a.py").read_text() == "dropped()\n"


def test_a_path_after_the_option_is_no_reason(tree) -> None:
    root = tree({"a.py": "dropped()\n", "b.py": "dropped()\n"})
    run("--add-suppressions", "a.py")
    assert (root / "a.py").read_text() == f"dropped()  {C}\n"
    assert (root / "b.py").read_text() == "dropped()\n"
    (root / "--add-suppressions").write_text("dropped()\n")
    assert run("--output-format", "concise", "--", "--add-suppressions").stdout.startswith("--add-suppressions:1")


def test_only_what_is_reported(tree) -> None:
    root = tree({"a.py": "dropped()\nmismatch()\n"})
    run("--baseline", "b.json", "--update-baseline")
    (root / "a.py").write_text("dropped()\nmismatch()\nhint()\n")
    run("--baseline", "b.json", "--add-suppressions")
    assert (root / "a.py").read_text() == "dropped()\nmismatch()\nhint()  # devlint: ignore[DVL601]\n"
    run("--add-suppressions", "--select", "DVL101")
    assert (root / "a.py").read_text().splitlines()[:2] == ["dropped()", "mismatch()  # devlint: ignore[DVL101]"]


def test_what_no_comment_can_silence_is_still_reported(tree) -> None:
    root = tree({"a.py": "def f(:\n", "b.py": "x = 1  # devlint: ignore[DVL102]\n", "c.py": "dropped()\n"})
    result = run("--add-suppressions", "--output-format", "concise")
    assert result.exit_code == 1
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["DVL900", "DVL901"]
    assert (root / "a.py").read_text() == "def f(:\n"
    assert (root / "c.py").read_text() == f"dropped()  {C}\n"


def test_encodings(tree) -> None:
    text = "# coding: latin-1\ns = 'é'; dropped()\n"
    root = tree({"a.py": text.encode("latin-1")})
    result = run("--add-suppressions=漢字")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: a.py: no suppression was added: its new text cannot be written in")
    assert (root / "a.py").read_bytes() == text.encode("latin-1")
    run("--add-suppressions=déjà")
    assert (root / "a.py").read_bytes() == text.replace("()", f"()  {C} déjà").encode("latin-1")
    assert run().exit_code == 0


def test_a_reason_cannot_change_how_the_file_is_read(tree) -> None:
    root = tree({"a.py": "dropped('é')\n"})
    run("--add-suppressions=coding: latin-1")
    assert run().exit_code == 0
    assert (root / "a.py").read_text(encoding="utf-8").startswith("dropped('é')  #")


def test_a_file_that_may_not_be_written(tree) -> None:
    root = tree({"a.py": "dropped()\n"})
    (root / "a.py").chmod(0o444)
    result = run("--add-suppressions")
    if Path("/").stat().st_uid == 0 and result.exit_code == 0:
        pytest.skip("root may write everywhere")
    assert "a.py: no suppression was added: Permission denied" in result.stderr


def test_nothing_to_add(tree) -> None:
    tree({"a.py": "x\n"})
    assert run("--add-suppressions").output == "Added suppressions for 0 problems.\nNo problems in 1 file.\n"
    assert run("--add-suppressions", "-q").output == ""


@pytest.mark.parametrize("more", [["--fix"], ["--diff"], ["-"], ["--update-baseline", "--baseline", "b"]])
def test_combinations_that_make_no_sense(tree, more: list[str]) -> None:
    root = tree({"a.py": "dropped()\n"})
    result = run("--add-suppressions", *more)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert (root / "a.py").read_text() == "dropped()\n"


def test_of_two_in_one_line_both_are_silenced_where_one_is_known(tree) -> None:
    tree({"a.py": "def f():\n    dropped(1)\n"})
    run("--baseline", "b.json", "--update-baseline")
    tree({"a.py": "def f():\n    dropped(1); dropped(2)\n    dropped(3)\n", "b.json": Path("b.json").read_text()})
    result = run("--baseline", "b.json", "--add-suppressions", "a.py")
    assert result.exit_code == 0, result.output
    assert Path("a.py").read_text() == f"def f():\n    dropped(1); dropped(2)  {C}\n    dropped(3)  {C}\n"
