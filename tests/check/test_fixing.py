"""`devlint check --fix`, `--unsafe-fixes` and `--diff` as a user meets them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from devlint.check import engine
from devlint.check.engine import check_paths
from devlint.check.outcome import AnalysisError
from devlint.check.rewrite.fixes import ApplyFixes
from devlint.check.task import Destination, Task
from devlint.cli import main
from devlint.config.schema import Config, RuleLayer

MOVES = "import torch\n\n\ndef f(n, device):\n    a = torch.ones(n, device=device)\n    return a.to(device){}\n"
REDUNDANT, MENDED = MOVES.format(""), MOVES.format("").replace("a.to(device)", "a")
UNUSED = "x = 1  # devlint: ignore[DVL102]\n"
GUESS = "def f(x, device):\n    y = x.unsqueeze(0)\n    return y.cuda(), x.to(device)\n"
"""A finding whose fix is unsafe."""
GUESSED = f"import torch\n{GUESS}"


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(
        main, ["check", "--isolated", "--select", "ALL", "--fail-on", "info", *arguments], input=stdin
    )
    assert "Traceback" not in result.output
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_safe_fixes_are_written(tree) -> None:
    tree({"a.py": REDUNDANT, "b.py": UNUSED, "c.py": GUESSED, "d.py": "x = 1\n"})
    result = run("--fix")
    assert Path("a.py").read_text() == MENDED
    assert Path("b.py").read_text() == "x = 1\n"
    assert Path("c.py").read_text() == GUESSED
    assert result.exit_code == 1
    assert "Found 3 problems (2 fixed, 1 remaining) in 4 files.\n1 fixable with `--unsafe-fixes`.\n" in result.stdout
    assert "c.py:4:12" in result.stdout
    assert "a.py" not in result.stdout


def test_it_is_0_if_all_was_fixed(tree) -> None:
    tree({"a.py": REDUNDANT, "b.py": UNUSED})
    assert run("--fix", "a.py", "b.py", "--fail-on", "info").exit_code == 0
    assert run("--fix", "a.py", "b.py").stdout == "No problems in 2 files.\n"
    tree({"a.py": REDUNDANT})
    assert run("--fix", "a.py").stdout == "Found 1 problem (1 fixed, 0 remaining) in 1 file.\n"


def test_unsafe_fixes_too(tree) -> None:
    tree({"a.py": REDUNDANT, "c.py": GUESSED})
    assert run("--fix", "--unsafe-fixes").exit_code == 0
    assert Path("a.py").read_text() == MENDED
    assert Path("c.py").read_text() == GUESSED.replace("y.cuda()", "y.to(device)")


def test_without_fix_they_are_only_counted(tree) -> None:
    tree({"a.py": REDUNDANT, "c.py": GUESSED})
    assert run().stdout.endswith("1 fixable with `--fix` (1 more with `--unsafe-fixes`).\n")
    assert run("--unsafe-fixes").stdout.endswith("2 fixable with `--fix --unsafe-fixes`.\n")
    assert run("c.py").stdout.endswith("1 fixable with `--fix --unsafe-fixes`.\n")
    assert "fixable" not in run("-q").stdout
    assert Path("a.py").read_text() == REDUNDANT


def test_a_diff_changes_nothing(tree) -> None:
    tree({"b/a.py": REDUNDANT, "c.py": GUESSED, "d.py": "x = 1\n"})
    result = run("--diff")
    assert result.exit_code == 1
    assert result.stdout == (
        "--- b/a.py\n+++ b/a.py\n@@ -3,4 +3,4 @@\n \n def f(n, device):\n"
        "     a = torch.ones(n, device=device)\n-    return a.to(device)\n+    return a\n"
    )
    assert result.stderr == "Would fix 1 problem in 1 file.\n"
    assert run("--diff", "--fix").stdout == result.stdout
    assert run("--diff", "-q").stderr == ""
    assert run("--diff", "--exit-zero").exit_code == 0
    both = run("--diff", "--unsafe-fixes")
    assert both.stdout.startswith(result.stdout + "--- c.py\n")
    assert run("--diff", "c.py").exit_code == 0
    assert run("--diff", "c.py").output == "Would fix nothing.\n"
    assert Path("b/a.py").read_text() == REDUNDANT


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_diff_can_be_applied(tree) -> None:
    before = "# coding: latin-1\n" + REDUNDANT.replace("\n", "\r\n") + "s = 'é'"
    tree({"p/a.py": before.encode("latin-1"), "b.py": UNUSED.rstrip("\n")})
    diff = run("--diff").stdout_bytes
    subprocess.run(["git", "apply", "-p0", "-"], input=diff, check=True)
    written = [Path(name).read_bytes() for name in ("p/a.py", "b.py")]
    tree({"p/a.py": before.encode("latin-1"), "b.py": UNUSED.rstrip("\n")})
    run("--fix")
    assert written == [Path(name).read_bytes() for name in ("p/a.py", "b.py")]
    assert written[1] == b"x = 1"


def test_a_diff_for_a_person_is_coloured_and_harmless(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    tree({"a.py": "s = '\x1b[2J'" + "; x = 1  # noqa: DVL102\n"})
    out = run("--diff").stdout
    assert "\x1b[32m+s" in out
    assert "\x1b[2J" not in out


class TestStdin:
    """The fixed text goes to the standard output, all else to the standard error."""

    def test_fix(self) -> None:
        done = run("-", "--fix", "--stdin-filename", "a.py", stdin=(REDUNDANT + GUESS).replace("\n", "\r\n").encode())
        assert done.stdout_bytes == (MENDED + GUESS).replace("\n", "\r\n").encode()
        assert "a.py:9:12\n" in done.stderr
        assert "Found 2 problems (1 fixed, 1 remaining) in 1 file." in done.stderr
        assert done.exit_code == 1

    def test_diff(self) -> None:
        done = run("-", "--diff", stdin=REDUNDANT.encode())
        assert done.stdout.startswith("--- -\n+++ -\n@@ ")
        assert done.exit_code == 1

    @pytest.mark.parametrize("text", [b"x = 1", b"def f(:\r\n", b"", b"x = '\xff'\n"])
    def test_what_cannot_be_fixed_comes_out_as_it_went_in(self, text: bytes) -> None:
        assert run("-", "--fix", stdin=text).stdout_bytes == text

    def test_what_is_excluded_comes_out_too(self, tree) -> None:
        tree({"pyproject.toml": "[tool.devlint]\nexclude = ['a.py']\nforce-exclude = true\n"})
        command = ["check", "-", "--fix", "--stdin-filename", "a.py"]
        assert CliRunner().invoke(main, command, input=REDUNDANT).stdout == REDUNDANT

    def test_a_failure_of_the_analysis_costs_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(*_: object) -> list[object]:
            raise AnalysisError("KeyError")

        monkeypatch.setattr("devlint.check.analysis.Analyzer.findings_in_code", fails)
        done = run("-", "--fix", stdin=b"x = 1\n")
        assert (done.stdout_bytes, done.exit_code) == (b"x = 1\n", 2)
        assert done.stderr == "error: -: devlint failed on this file, please report it: KeyError\n"


class TestFiles:
    """Which files are written, and what stays of them."""

    def test_only_what_is_selected_and_not_silenced(self, tree) -> None:
        silenced = MOVES.format("  # devlint: ignore[DVL201]")
        tree({"a.py": silenced, "b.py": REDUNDANT})
        assert run("--fix", "a.py").exit_code == 0
        assert run("--fix", "--ignore", "DVL201").exit_code == 0
        assert [Path("a.py").read_text(), Path("b.py").read_text()] == [silenced, REDUNDANT]

    def test_what_is_not_changed_is_not_written(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        tree({"a.py": "x = 1\n", "b.py": GUESSED})
        monkeypatch.setattr("devlint.source.output.write", lambda *_: pytest.fail("written"))
        assert run("--fix").exit_code == 1

    def test_permissions_and_links_stay(self, tree) -> None:
        tree({"real/a.py": REDUNDANT})
        os.chmod("real/a.py", 0o754)
        os.symlink("real/a.py", "link.py")
        assert run("--fix", "link.py").exit_code == 0
        assert os.path.islink("link.py")
        assert Path("real/a.py").read_text() == MENDED
        assert os.stat("real/a.py").st_mode & 0o777 == 0o754
        assert sorted(os.listdir("real")) == ["a.py"]

    def test_a_file_under_several_names_is_fixed_once(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        tree({"real/a.py": REDUNDANT, "x.py": UNUSED})
        os.symlink("real/a.py", "link.py")
        os.symlink("real", "folder")
        result = run("--fix", "real/a.py", "./real/../real/a.py", "link.py", "folder/a.py", "x.py", "real")
        assert result.stdout == "Found 2 problems (2 fixed, 0 remaining) in 2 files.\n"
        assert run("--diff", "link.py", "real").exit_code == 0

    @pytest.mark.skipif(os.name != "posix", reason="permissions of another kind")
    def test_a_file_that_is_read_only_is_left_alone(self, tree) -> None:
        tree({"a.py": REDUNDANT, "b.py": UNUSED})
        os.chmod("a.py", 0o444)
        result = run("--fix")
        assert result.exit_code == 2
        assert result.stderr == "error: a.py: nothing was fixed: Permission denied\n"
        assert "a.py:6:12" in result.stdout
        assert "Found 2 problems (1 fixed, 1 remaining) in 2 files.\n" in result.stdout
        assert Path("a.py").read_text() == REDUNDANT
        assert Path("b.py").read_text() == "x = 1\n"

    def test_what_changed_meanwhile_is_left_alone(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        tree({"a.py": REDUNDANT})
        monkeypatch.setattr(ApplyFixes, "rewrite", lambda *given: (Path("a.py").write_text("y\n"), REWRITE(*given))[1])
        result = run("--fix")
        assert (result.exit_code, Path("a.py").read_text()) == (2, "y\n")
        assert "error: a.py: nothing was fixed: it was changed while devlint was at it" in result.stderr

    def test_a_disk_that_is_full(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        tree({"a.py": REDUNDANT})
        monkeypatch.setattr("os.fsync", full)
        result = run("--fix")
        assert result.stderr == "error: a.py: nothing was fixed: No space left on device\n"
        assert Path("a.py").read_text() == REDUNDANT
        assert os.listdir(".") == ["a.py"]

    def test_several_processes(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine, "BYTES_WORTH_A_PROCESS", 1)
        tree({f"f{number}.py": REDUNDANT for number in range(40)})
        diff = run("--diff", "-j", "4")
        assert diff.stdout == run("--diff", "-j", "1").stdout
        assert diff.stdout.count("+    return a\n") == 40
        assert run("--fix", "-j", "4").stdout == "Found 40 problems (40 fixed, 0 remaining) in 40 files.\n"
        assert {Path(name).read_text() for name in os.listdir(".")} == {MENDED}

    def test_a_file_that_does_not_parse_is_reported_all_the_same(self, tree) -> None:
        tree({"a.py": "def f(:\n"})
        assert "DVL900" in run("--fix").stdout
        assert Path("a.py").read_text() == "def f(:\n"

    def test_a_big_file(self, tree) -> None:
        many = "".join(REDUNDANT.replace("def f", f"def f{number}") for number in range(500))
        tree({"a.py": many})
        assert "(500 fixed, 0 remaining)" in run("--fix").stdout
        assert Path("a.py").read_text() == many.replace("a.to(device)", "a")


REWRITE = ApplyFixes.rewrite


def test_the_other_formats_tell_what_remains(tree) -> None:
    tree({"a.py": REDUNDANT + GUESS})
    (entry,) = json.loads(run("--fix", "--output-format", "json").stdout)
    assert (entry["code"], entry["location"]["row"], entry["fix"]["applicability"]) == ("DVL601", 9, "unsafe")
    assert run("--fix", "--statistics").stdout == "1  info     DVL601  hardcoded-cuda-call  in 1 file\n"


def test_from_python(tree) -> None:
    tree({"a.py": REDUNDANT, "b.py": UNUSED})
    config = Config(rule_layers=(RuleLayer(("ALL",)),))
    result = check_paths(["."], config, task=Task(ApplyFixes(), Destination.DIFF))
    assert (sum(result.gone), len(result.diffs), result.findings) == (2, 2, [])
    assert Path("a.py").read_text() == REDUNDANT
    assert sum(check_paths(["."], config, task=Task(ApplyFixes())).gone) == 2
    assert Path("a.py").read_text() == MENDED


def test_nothing_of_this_is_loaded_without_need(tree) -> None:
    tree({"a.py": REDUNDANT})
    code = (
        "import sys\nfrom devlint.cli import main\n"
        "try: main(['check', '--isolated', '-q', '--unsafe-fixes', '--select', 'DVL602', 'a.py'])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('devlint.check.rewrite')"
        " or name in ('devlint.source.output', 'libcst')])"
    )
    root = str(Path(engine.__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env={**os.environ, "PYTHONPATH": root})
    assert (done.stdout.strip(), done.stderr) == (b"[]", b"")
