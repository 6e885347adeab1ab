"""The command as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import devlint
from devlint.cli import main
from devlint.config.schema import OUTPUT_FORMATS
from tests.benchmarks.measure import interleaved

ROOT = str(Path(devlint.__file__).parents[1])


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(main, ["check", *arguments], input=stdin)
    assert "Traceback" not in result.output
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def process(*arguments: str, **more) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": ROOT, **more.pop("env", {})}
    return subprocess.run([sys.executable, "-m", "devlint", *arguments], capture_output=True, env=environment, **more)


@pytest.mark.usefixtures("stub_rules")
class TestCheck:
    """With rules that fire on a call's name."""

    def test_exit_codes(self, tree) -> None:
        tree({"clean.py": "x", "hint.py": "hint()", "warning.py": "dropped()", "error.py": "mismatch()"})
        assert run("clean.py").exit_code == 0
        assert run("hint.py").exit_code == 0
        assert run("warning.py").exit_code == 1
        assert run("error.py").exit_code == 1
        assert run("hint.py", "--fail-on", "info").exit_code == 1
        assert run("warning.py", "--fail-on", "error").exit_code == 0
        assert run("error.py", "--fail-on", "error").exit_code == 1
        assert run("error.py", "--exit-zero").exit_code == 0
        assert run("error.py", "nope.py", "--exit-zero").exit_code == 2
        assert "DVL102" in run("warning.py", "--fail-on", "error").stdout

    def test_text_is_the_default(self, tree) -> None:
        tree({"a.py": "x = dropped(y)\n"})
        assert run("a.py").stdout == (
            "warning[DVL102] discarded-move: `dropped` was called\n"
            " --> a.py:1:5\n"
            "  |\n"
            "1 | x = dropped(y)\n"
            "  |     ^^^^^^^^^^ this call\n"
            "  |             - from here\n"
            "  |\n"
            "  = help: call something else\n"
            "\n"
            "Found 1 problem (1 warning) in 1 file.\n"
            "1 fixable with `--fix --unsafe-fixes`.\n"
        )

    def test_no_path_is_the_current_directory(self, tree) -> None:
        tree({"pkg/a.py": "dropped()"})
        assert run("--output-format", "concise").stdout == "pkg/a.py:1:1: DVL102 `dropped` was called\n"
        assert run("--output-format", "concise", "./pkg/").stdout == "pkg/a.py:1:1: DVL102 `dropped` was called\n"

    def test_json(self, tree) -> None:
        tree({"a.py": "dropped()"})
        result = run("--output-format", "json", "a.py", "nope.py")
        failure, finding = json.loads(result.stdout)
        assert (failure["code"], failure["message"]) == (None, "nope.py: No such file or directory")
        assert finding["code"] == "DVL102"
        assert result.stderr == "error: nope.py: No such file or directory\n"
        assert result.exit_code == 2

    def test_statistics(self, tree) -> None:
        tree({"a.py": "dropped(); dropped(); mismatch()"})
        first, second = run("--statistics").stdout.splitlines()
        assert first == "2  warning  DVL102  discarded-move   in 1 file"
        assert second == "1  error    DVL101  device-mismatch  in 1 file"

    def test_quiet(self, tree) -> None:
        tree({"a.py": "x", "empty/README": ""})
        assert run("a.py").output == "No problems in 1 file.\n"
        assert run("a.py", "-q").output == ""
        assert run("empty", "--quiet").output == ""

    def test_no_python_files(self, tree) -> None:
        tree({"README.md": ""})
        result = run()
        assert result.exit_code == 0
        assert result.stderr == "warning: no Python files found under the given paths\n"
        assert run("--output-format", "json").stdout == "[]\n"

    def test_selection(self, tree) -> None:
        tree({"a.py": "dropped(); mismatch(); strict()", "pyproject.toml": "[tool.devlint]\nignore = ['DVL101']"})

        def codes(*arguments: str) -> list[str]:
            return [entry["code"] for entry in json.loads(run("--output-format", "json", *arguments).stdout)]

        assert codes() == ["DVL102"]
        assert codes("--select", "DVL101") == ["DVL101"]
        assert codes("--select", "DVL101,DVL102") == ["DVL102", "DVL101"]
        assert codes("--select", "ALL", "--ignore", "discarded-move") == ["DVL101", "DVL605"]
        assert codes("--extend-select", "DVL605") == ["DVL102", "DVL605"]
        assert codes("--isolated") == ["DVL102", "DVL101"]

    @pytest.mark.parametrize(
        ("arguments", "line"),
        [
            (["--select", "DVL777"], "--select: unknown rule 'DVL777'"),
            (["--ignore", "discarded-mov"], "--ignore: unknown rule 'discarded-mov' (did you mean 'discarded-move'?)"),
            (["--extend-select", "E501"], "--extend-select: unknown rule 'E501'"),
            (
                ["--output-format", "jsn"],
                f"--output-format: expected one of {', '.join(OUTPUT_FORMATS)}, not 'jsn' (did you mean",
            ),
            (["--fail-on", "warn"], "--fail-on: expected one of info, warning, error, not 'warn'"),
            (["--target-torch", "new"], "--target-torch: expected a torch version such as '2.4', not 'new'"),
            (["--config", "nope.toml"], "nope.toml: No such file or directory"),
            (["--exclude", "[z-a]"], "--exclude: '[z-a]' is not a file pattern"),
            (["-", "a.py"], "`-` is the standard input"),
        ],
    )
    def test_a_wrong_option_is_one_line(self, tree, arguments: list[str], line: str) -> None:
        tree({"a.py": "dropped()"})
        result = run(*arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"error: {line}")
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""

    def test_a_broken_configuration_is_one_line(self, tree) -> None:
        tree({"a.py": "", "pyproject.toml": "[tool.devlint]\nselct = []\n"})
        result = run()
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
        assert "did you mean 'select'" in result.stderr
        assert run("--isolated").exit_code == 0

    def test_config_names_a_file(self, tree) -> None:
        tree({"pkg/a.py": "dropped(); mismatch()", "other.toml": "select = ['DVL101']\noutput-format = 'concise'"})
        assert run("--config", "other.toml", "pkg").stdout == "pkg/a.py:1:12: DVL101 `mismatch` was called\n"

    def test_fail_on_and_format_from_the_configuration(self, tree) -> None:
        tree({"a.py": "dropped()", "pyproject.toml": "[tool.devlint]\nfail-on='error'\noutput-format='concise'"})
        result = run()
        assert (result.exit_code, result.stdout) == (0, "a.py:1:1: DVL102 `dropped` was called\n")
        assert run("--fail-on", "warning").exit_code == 1

    def test_exclude_is_meant_from_here(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        root = tree({"pyproject.toml": "[tool.devlint]", "sub/a/x.py": "dropped()", "sub/b/x.py": "dropped()"})
        monkeypatch.chdir(root / "sub")
        for pattern in ("a", "a/", "a/x.py", "a/*.py", "./a/x.py"):
            assert run("--output-format", "concise", "--exclude", pattern).stdout.count("DVL102") == 1, pattern
        assert run("--exclude", "a,b").stdout == ""

    def test_standard_input(self, tree) -> None:
        tree({"pyproject.toml": "[tool.devlint.per-file-ignores]\n'tests/*' = ['DVL102']"})
        found = run("-", "--output-format", "concise", stdin=b"dropped()")
        assert (found.exit_code, found.stdout) == (1, "-:1:1: DVL102 `dropped` was called\n")
        named = run("-", "--stdin-filename", "src/a.py", stdin=b"\xef\xbb\xbfx = dropped()\r\n")
        assert "--> src/a.py:1:5" in named.stdout
        assert "1 | x = dropped()" in named.stdout, "the frame shows what was read, not what is on the disk"
        assert run("-", "--stdin-filename", "tests/a.py", stdin=b"dropped()").exit_code == 0
        assert run("-", stdin=b"def f(:").stdout.startswith("error[DVL900]")
        assert run("-", stdin=b"").exit_code == 0
        assert run("-", stdin=b"fails()").exit_code == 2
        assert run("--stdin-filename", "a.py", stdin=b"dropped()").exit_code == 1
        with_path = run("a.py", "--stdin-filename", "b.py", stdin=b"dropped()")
        assert with_path.stderr == (
            "error: --stdin-filename names the standard input, `-`, which is not among the paths\n"
        )
        assert with_path.exit_code == 2

    def test_a_selection_of_nothing_is_an_error(self) -> None:
        for words in ("", ",", " , "):
            result = run("--select", words)
            assert (result.exit_code, result.stderr) == (2, "error: --select: no rule is named\n")

    def test_no_escape_sequence_of_a_name_reaches_the_terminal(self) -> None:
        assert run("\x1b[31mred\n.py").stderr == "error:  [31mred .py: No such file or directory\n"

    def test_a_failure_of_devlint_is_one_line_and_the_rest_is_printed(self, tree) -> None:
        tree({"a.py": "fails()", "b.py": "dropped()"})
        result = run("--output-format", "concise")
        assert result.exit_code == 2
        assert result.stdout == "b.py:1:1: DVL102 `dropped` was called\n"
        assert result.stderr.startswith("error: a.py: devlint failed on this file, please report it: KeyError")
        assert result.stderr.count("\n") == 1

    def test_everything_at_once(self, tree) -> None:
        """Issue after issue in one tree, and still everything else is reported."""
        root = tree(
            {
                "good.py": "dropped()",
                "empty.py": "",
                "latin.py": "# coding: latin-1\ns = 'é'; dropped()".encode("latin-1"),
                "bom.py": b"\xef\xbb\xbfdropped()",
                "crlf.py": b"dropped()\r\ndropped()\r\n",
                "formfeed.py": b"\x0c\ndropped()",
                "nul.py": b"x\0",
                "bytes.py": b"x = '\xff'",
                "python2.py": "print 'x'",
                "async.py": "x.cuda(async=True)",
                "deep.py": "(" * 2000 + ")" * 2000,
                "wide.py": "x = [" + "1, " * 350_000 + "dropped()]",
                "dir.py/inner.py": "dropped()",
            }
        )
        os.symlink(root, root / "loop")
        result = run("--output-format", "concise", "nope", ".")
        assert result.exit_code == 2
        assert result.stderr == "error: nope: No such file or directory\n"
        codes = sorted((line.split(":")[0], line.split()[1]) for line in result.stdout.splitlines())
        assert codes == [
            ("async.py", "DVL900"),
            ("bom.py", "DVL102"),
            ("bytes.py", "DVL900"),
            ("crlf.py", "DVL102"),
            ("crlf.py", "DVL102"),
            ("deep.py", "DVL900"),
            ("dir.py/inner.py", "DVL102"),
            ("formfeed.py", "DVL102"),
            ("good.py", "DVL102"),
            ("latin.py", "DVL102"),
            ("nul.py", "DVL900"),
            ("python2.py", "DVL900"),
            ("wide.py", "DVL102"),
        ]
        assert run().exit_code == 1

    def test_colours_only_where_wanted(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        tree({"a.py": "dropped()"})
        assert "\x1b" not in run().stdout
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert "\x1b[1;33m" in run().stdout
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in run().stdout


class TestRule:
    """`devlint rule`."""

    def test_by_code_and_by_name(self) -> None:
        by_code = CliRunner().invoke(main, ["rule", "dvl901"])
        by_name = CliRunner().invoke(main, ["rule", "unused-suppression"])
        assert by_code.exit_code == 0
        assert by_code.stdout == by_name.stdout
        assert by_code.stdout.startswith(
            "# DVL901 unused-suppression\n\nwarning, on by default, fix: safe or unsafe\n\nA suppression comment"
        )
        assert "## Why it matters" in by_code.stdout

    def test_all(self) -> None:
        lines = CliRunner().invoke(main, ["rule", "--all"]).stdout.splitlines()
        assert any(line.startswith("DVL900  parse-error") for line in lines)
        assert lines == sorted(lines)

    def test_json(self) -> None:
        one = json.loads(CliRunner().invoke(main, ["rule", "DVL900", "--output-format", "json"]).stdout)
        assert one["code"] == "DVL900"
        assert one["severity"] == "error"
        assert one["summary"] in one["explanation"]
        assert one["fixes"] == []
        assert next(iter(one["sections"])) == "What it does"
        assert one["sections"]["Fix safety"] == "There is no fix."
        every = json.loads(CliRunner().invoke(main, ["rule", "--all", "--output-format", "json"]).stdout)
        assert one in every

    def test_unknown(self) -> None:
        result = CliRunner().invoke(main, ["rule", "parse-eror"])
        assert (result.exit_code, result.stderr) == (
            2,
            "error: there is no rule 'parse-eror' (did you mean 'parse-error'?)\n",
        )
        assert CliRunner().invoke(main, ["rule"]).exit_code == 2
        assert CliRunner().invoke(main, ["rule", "DVL900", "--all"]).exit_code == 2


class TestProcess:
    """The program as it is started."""

    def test_version_and_module(self) -> None:
        assert process("--version").stdout == f"devlint {devlint.__version__}\n".encode()

    def test_the_version_loads_nothing_heavy(self) -> None:
        code = (
            "import sys\nfrom devlint.cli import main\n"
            "try: main(['--version'])\nexcept SystemExit: pass\n"
            "heavy = {'libcst', 'rich', 'pathspec', 'torch', 'devlint.rules.base', 'tomllib'} & set(sys.modules)\n"
            "sys.exit(repr(heavy) if heavy else 0)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, env={**os.environ, "PYTHONPATH": ROOT})
        assert done.returncode == 0, done.stderr

    def test_it_starts_fast(self, tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        # as installed: compiled once
        monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "compiled"))
        monkeypatch.setenv("PYTHONPATH", ROOT)
        root = tree({"a.py": "import torch\nx = torch.ones(3)\n"})
        commands = {
            "python": [sys.executable, "-c", "pass"],
            "version": [sys.executable, "-m", "devlint", "--version"],
            "check": [sys.executable, "-m", "devlint", "check", "--isolated", "a.py"],
        }
        found = {name: summary.fastest for name, summary in interleaved(commands, root, rounds=5).items()}
        # about 5 and 20 times as much as Python itself needs
        assert found["version"] < 8 * found["python"]
        assert found["check"] < 30 * found["python"]

    def test_check_loads_nothing_heavy_without_need(self, tree) -> None:
        tree({"a.py": "import torch\nx = torch.ones(3)\n"})
        code = (
            "import sys\nfrom devlint.cli import main\n"
            "try: main(['check', '--isolated', 'a.py'])\nexcept SystemExit: pass\n"
            "heavy = {'torch', 'rich', 'numpy', 'multiprocessing', 'pathspec', 'pathlib'} & set(sys.modules)\n"
            "sys.exit(repr(heavy) if heavy else 0)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, env={**os.environ, "PYTHONPATH": ROOT})
        assert done.stderr.strip() in (b"", b"0"), done.stderr

    def test_a_reader_that_goes_away_is_no_error(self, tree) -> None:
        tree({f"f{number}.py": "def f(:\n" for number in range(2000)})
        command = [sys.executable, "-m", "devlint", "check", "--isolated"]
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": ROOT}
        )
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        child.stderr.close()
        assert child.wait(30) == 1

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
    def test_a_report_that_cannot_be_written_is_a_failure(self, tree) -> None:
        tree({"a.py": "def f(:\n"})
        command = [sys.executable, "-m", "devlint", "check", "--isolated"]
        environment = {**os.environ, "PYTHONPATH": ROOT}
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment)
            assert done.stderr == b"error: the report cannot be written: No space left on device\n"
            assert done.returncode == 2
            assert subprocess.run([*command, "nope"], stderr=full, env=environment).returncode == 2
            assert subprocess.run([*command, "--diff"], stderr=full, env=environment).returncode == 0

    @pytest.mark.skipif(os.name != "posix", reason="a shell that closes streams")
    def test_closed_streams(self, tree) -> None:
        tree({"a.py": "def f(:\n"})

        def shell(words: str) -> tuple[int, bytes, bytes]:
            command = f'"{sys.executable}" -m devlint check --isolated --output-format concise {words}'
            done = subprocess.run(["sh", "-c", command], capture_output=True, env={**os.environ, "PYTHONPATH": ROOT})
            return done.returncode, done.stdout, done.stderr

        assert shell("a.py >&-") == (1, b"", b"")
        assert shell("a.py 2>&-")[0:3:2] == (1, b"")
        assert shell("nope.py 2>&-") == (2, b"", b"")
        assert shell("a.py <&-")[0] == 1
        assert shell("- <&-") == (2, b"", b"error: the standard input is closed\n")

    @pytest.mark.skipif(os.name != "posix", reason="removes the current directory")
    def test_a_current_directory_that_is_gone(self, tree) -> None:
        root = tree({"a.py": "x = 1\n", "gone/b.py": ""})
        command = f'rm -r ../gone; "{sys.executable}" -m devlint check "{root}/a.py"'
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, cwd=root / "gone", env={**os.environ, "PYTHONPATH": ROOT}
        )
        assert done.stderr == b"error: the current directory does not exist any more\n"
        assert done.returncode == 2

    def test_nothing_in_the_current_directory_is_run(self, tree) -> None:
        names = ("torch", "click", "ast", "libcst", "pathspec", "sitecustomize", "conftest", "re", "json", "stat")
        tree({f"{name}.py": "raise SystemExit('run')\n" for name in names})
        code = "from devlint.cli import main\nmain(['check', '.'])"
        # As the script `devlint` is run: without the current directory in the path.
        done = subprocess.run(
            [sys.executable, "-c", f"import sys\nsys.path.remove('')\n{code}"],
            capture_output=True,
            env={**os.environ, "PYTHONPATH": ROOT},
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout == b"No problems in 10 files.\n"

    def test_names_and_text_beyond_the_terminals_encoding(self, tree) -> None:
        root = tree({"é.py": "x = '漢字 \\ud800' (\n"})
        with open(os.fsencode(root) + b"/\xff.py", "wb") as stream:
            stream.write(b"def f(:\n")
        for encoding in ("ascii", "utf-8", "latin-1"):
            done = process("check", "--isolated", env={"PYTHONIOENCODING": encoding})
            assert done.returncode == 1
            assert done.stderr == b""
            assert done.stdout.count(b"DVL900") == 2
            done = process("check", "--isolated", "--output-format", "json", env={"PYTHONIOENCODING": encoding})
            assert len(json.loads(done.stdout)) == 2


def test_modules_of_the_checked_directory_are_not_imported(tmp_path: Path) -> None:
    for name in ("click.py", "ast.py", "devlint_plugin.py", "conftest.py", "torch.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')\n")
    (tmp_path / "train.py").write_text("import torch\n\nx = torch.zeros(3).cuda()\n")
    command = [
        sys.executable,
        "-m",
        "devlint",
        "check",
        "--isolated",
        "--select=DVL6",
        "--fail-on=info",
        "--output-format",
        "concise",
    ]
    path = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([*command, "train.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "DVL601" in done.stdout
