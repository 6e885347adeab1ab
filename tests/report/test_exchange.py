"""The formats for CI systems and viewers, as their readers take them."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import junitparser
import pytest
from click.testing import CliRunner, Result

from devlint.check.analysis import check_source
from devlint.cli import main
from devlint.config.schema import OUTPUT_FORMATS
from devlint.finding import Failure, Severity
from devlint.report.base import Report
from devlint.report.formats import render
from tests.report import consumers

pytestmark = pytest.mark.usefixtures("stub_rules")
EXCHANGED = ("json", "json-lines", "github", "gitlab", "sarif", "junit", "rdjson")
# The first call stands behind characters that take two units of UTF-16, and four bytes of UTF-8.
DECISIVE = ("NO_COLOR", "FORCE_COLOR", "FORCE_HYPERLINK", "VTE_VERSION", "TERM_PROGRAM", "KONSOLE_VERSION")
WIDE = 'x = "\N{SNAKE}\N{SNAKE}"; dropped(x)\n'


def check(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["check", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def output(form: str, *paths: str) -> str:
    return check("--output-format", form, *paths).stdout


def test_every_format_has_a_module_and_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")
    for form in OUTPUT_FORMATS:
        assert list(render(Report([], 1), form))[:1] or form in ("concise", "github", "json-lines")
        assert f"`{form}`" in text, form


@pytest.mark.parametrize("form", OUTPUT_FORMATS)
def test_what_could_not_be_done_is_in_every_format(form: str, tree) -> None:
    tree({"a.py": "dropped()", "broken.py": "def (:\n"})
    check("--output-format", form, "--output-file", "report", "a.py", "broken.py", "nope.py")
    text = Path("report").read_text(encoding="utf-8")
    assert "nope.py: No such file or directory" in text
    assert "DVL900" in text
    assert "DVL102" in text


@pytest.mark.parametrize("form", EXCHANGED)
@pytest.mark.skipif(os.name == "nt", reason="names there are text")
def test_odd_names_and_characters_can_be_read_back(form: str, tree) -> None:
    """A name that is no UTF-8, and code with what JSON, XML and UTF-8 cannot hold."""
    report = Report(
        check_source("dropped('\\udcff'); dropped('\x07')\n", "caf\udce9, 100%.py"),
        failures=[Failure("a\udcff,b:c%\n.py", "no\r\nway \x1b[0m")],
    )
    pieces = "\n".join(render(report, form))
    assert pieces.encode("utf-8")
    if form == "junit":
        suites = junitparser.JUnitXml.fromstring(pieces)
        assert (suites.errors, suites.failures) == (1, 2)
    elif form == "github":
        names = [properties["file"] for _, properties, _ in consumers.github(pieces)]
        assert [os.path.basename(name) for name in names] == ["a?,b:c%\n.py", *["caf?, 100%.py"] * 2]
    else:
        for document in pieces.splitlines() if form == "json-lines" else [pieces]:
            json.loads(document)


@pytest.mark.parametrize("form", EXCHANGED)
def test_nothing_found_is_a_report_too(form: str, tree) -> None:
    tree({"a.py": "x"})
    text = output(form, "a.py")
    if form in ("github", "json-lines"):
        assert text == ""
    elif form == "junit":
        (suite,) = junitparser.JUnitXml.fromstring(text)
        (case,) = suite
        assert case.is_passed
    elif form == "sarif":
        assert consumers.sarif(text)["results"] == []
    elif form == "rdjson":
        assert consumers.rdjson(text) == {"source": {"name": "devlint"}, "diagnostics": []}
    else:
        assert json.loads(text) == []


def test_json_lines_are_the_objects_of_json(tree) -> None:
    tree({"a.py": "dropped(); mismatch()", "b.py": "hint()"})
    lines = output("json-lines", ".", "nope.py").splitlines()
    assert list(map(json.loads, lines)) == json.loads(output("json", ".", "nope.py"))
    assert len(lines) == 4


class TestGitHub:
    def test_a_command_for_each_finding(self, tree) -> None:
        root = tree({"a.py": "x = dropped(y)\nmismatch(\n)\nhint()"})
        first, second, third = consumers.github(output("github", "a.py"))
        assert first == (
            "warning",
            {
                "title": "devlint (DVL102)",
                "file": str(root / "a.py"),
                "line": "1",
                "col": "5",
                "endLine": "1",
                "endColumn": "15",
            },
            "a.py:1:5: DVL102 `dropped` was called\nhelp: call something else",
        )
        # The runner refuses columns where the lines differ.
        assert second[0] == "error"
        assert second[1].keys() == {"title", "file", "line", "endLine"}
        assert (second[1]["line"], second[1]["endLine"]) == ("2", "3")
        assert third[0] == "notice"

    def test_one_line_each_whatever_is_in_it(self, tree) -> None:
        text = "\n".join(render(Report(check_source("dropped()", "a::b,c%0A=d.py")), "github"))
        assert len(text.splitlines()) == 1
        ((_, properties, message),) = consumers.github(text)
        assert properties["file"] == os.path.abspath("a::b,c%0A=d.py")
        assert message.startswith("a::b,c%0A=d.py:1:1: DVL102")

    def test_the_file_of_a_failure_is_annotated(self, tree) -> None:
        root = tree({})
        ((name, properties, message),) = consumers.github(output("github", "nope.py"))
        assert (name, properties["file"]) == ("error", str(root / "nope.py"))
        assert message == "nope.py: No such file or directory"


class TestGitLab:
    def test_entries(self, tree) -> None:
        tree({"repo/.git/HEAD": "", "repo/src/a.py": "mismatch()\nhint()"})
        os.chdir("repo/src")
        first, second = consumers.gitlab(output("gitlab", "a.py"))
        assert first["location"] == {
            "path": "src/a.py",
            "positions": {"begin": {"line": 1, "column": 1}, "end": {"line": 1, "column": 11}},
        }
        assert (first["check_name"], first["severity"]) == ("DVL101", "critical")
        assert second["severity"] == "info"

    def test_fingerprints_are_unique_and_survive_moved_lines(self, tree) -> None:
        code = "def f():\n    dropped(x)\n    dropped(x)\n\ndef g():\n    dropped(x)\n    dropped(y)\n"
        tree({"a.py": code, "b.py": code, "broken.py": "def (:"})
        before = consumers.gitlab(output("gitlab", ".", "nope.py", "gone.py"))
        names = {(entry["location"]["path"], entry["fingerprint"]) for entry in before}
        assert len({entry["fingerprint"] for entry in before}) == len(before) == 11
        moved = "import os\n\n" + code.replace("dropped(x)\n\n", "dropped( x )  # moved\n\n\n").replace("(y)", "(\ny)")
        tree({"a.py": moved})
        after = consumers.gitlab(output("gitlab", ".", "nope.py", "gone.py"))
        assert {(entry["location"]["path"], entry["fingerprint"]) for entry in after} == names
        tree({"a.py": code.replace("def g", "def h")})
        changed = consumers.gitlab(output("gitlab", "a.py"))
        assert len({entry["fingerprint"] for entry in changed} - {entry["fingerprint"] for entry in before}) == 2


def applied(text: str, edits: list[tuple[tuple[int, int], tuple[int, int], str]], encoding: str) -> str:
    """The text after edits whose columns count units of an encoding."""
    size = 2 if encoding == "utf-16-le" else 1
    lines = [line.encode(encoding) for line in text.splitlines(keepends=True)]
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    data = b"".join(lines)
    for start, end, content in sorted(edits, reverse=True):
        first, last = (starts[row - 1] + (column - 1) * size for row, column in (start, end))
        data = data[:first] + content.encode(encoding) + data[last:]
    return data.decode(encoding)


class TestSarif:
    def result(self, *paths: str) -> dict[str, Any]:
        (result,) = consumers.sarif(output("sarif", *paths))["results"]
        found: dict[str, Any] = result
        return found

    def test_a_result(self, tree) -> None:
        tree({"a.py": "def f():\n    dropped(y)\n"})
        result = self.result("a.py")
        (place,) = result["locations"]
        assert place["physicalLocation"]["region"] == {
            "startLine": 2,
            "startColumn": 5,
            "endLine": 2,
            "endColumn": 15,
        }
        assert place["logicalLocations"] == [{"fullyQualifiedName": "f"}]
        assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("DVL102", 0, "warning")
        # GitHub shows a related place only where the message links to it.
        (related,) = result["relatedLocations"]
        assert related["message"] == {"text": "from here"}
        assert related["physicalLocation"]["region"]["startColumn"] == 13
        assert result["message"]["text"] == "`dropped` was called\nhelp: call something else\n[from here](1)"
        assert related["id"] == 1

    def test_the_rules_are_described(self, tree) -> None:
        tree({"a.py": "mismatch(); dropped(); dropped(); hint()"})
        run = consumers.sarif(output("sarif", "a.py"))
        driver = run["tool"]["driver"]
        assert [rule["id"] for rule in driver["rules"]] == ["DVL101", "DVL102", "DVL601"]
        for result in run["results"]:
            assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        first = driver["rules"][0]
        assert first["name"] == "DeviceMismatch"
        assert first["shortDescription"]["text"] == "Fires on `mismatch()`."
        assert first["help"]["markdown"] == "Fires on `mismatch()`."
        assert [rule["defaultConfiguration"]["level"] for rule in driver["rules"]] == ["error", "warning", "note"]

    def test_fixes_change_what_devlint_would_change(self, tree) -> None:
        """Columns count UTF-16, as it is declared."""
        tree({"a.py": WIDE})
        run = consumers.sarif(output("sarif", "a.py"))
        assert run["columnKind"] == "utf16CodeUnits"
        (change,) = run["results"][0]["fixes"][0]["artifactChanges"]
        edits = []
        for replacement in change["replacements"]:
            region = replacement["deletedRegion"]
            start, end = (region["startLine"], region["startColumn"]), (region["endLine"], region["endColumn"])
            edits.append((start, end, replacement["insertedContent"]["text"]))
        assert applied(WIDE, edits, "utf-16-le") == WIDE.replace("dropped", "mended")

    def test_paths_are_relative_to_the_repository(self, tree) -> None:
        root = tree({"re po/.git": "gitdir: elsewhere", "re po/src/ä#1.py": "dropped()", "b.py": "dropped()"})
        os.chdir("re po/src")
        run = consumers.sarif(output("sarif", ".", "../../b.py"))
        base = run["originalUriBaseIds"]["%SRCROOT%"]["uri"]
        found = []
        for result in run["results"]:
            artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
            uri = urljoin(base, artifact["uri"]) if artifact.get("uriBaseId") == "%SRCROOT%" else artifact["uri"]
            found.append((artifact["uri"], unquote(urlsplit(uri).path)))
        outside, inside = found
        assert outside[1] == str(root / "b.py")
        assert inside == ("src/%C3%A4%231.py", str(root / "re po" / "src" / "ä#1.py"))

    def test_what_failed_is_a_notification(self, tree) -> None:
        tree({"a.py": "x"})
        (invocation,) = consumers.sarif(output("sarif", "a.py", "nope.py"))["invocations"]
        assert invocation["executionSuccessful"] is False
        (note,) = invocation["toolExecutionNotifications"]
        assert (note["level"], note["message"]["text"]) == ("error", "nope.py: No such file or directory")
        assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "nope.py"
        (invocation,) = consumers.sarif(output("sarif", "a.py"))["invocations"]
        assert invocation == {"executionSuccessful": True, "toolExecutionNotifications": []}

    def test_code_in_a_message_is_no_link(self, tree) -> None:
        report = Report([], failures=["`self.heads[0](x)` and x[1]"])
        (text,) = [
            note["message"]["text"]
            for note in consumers.sarif("".join(render(report, "sarif")))["invocations"][0][
                "toolExecutionNotifications"
            ]
        ]
        assert text == r"`self.heads\[0](x)` and x[1]"

    def test_the_standard_input_has_no_address(self) -> None:
        result = CliRunner().invoke(main, ["check", "-", "--output-format", "sarif"], input="dropped()")
        (found,) = consumers.sarif(result.stdout)["results"]
        assert "uri" not in found["locations"][0]["physicalLocation"]["artifactLocation"]


class TestJUnit:
    def test_what_fails_the_run_fails_a_test(self, tree) -> None:
        tree({"a.py": "def f():\n    dropped(x)\n    dropped(x)\nhint()", "b.py": "mismatch()"})
        suites = junitparser.JUnitXml.fromstring(output("junit", ".", "nope.py"))
        assert (suites.tests, suites.failures, suites.errors) == (5, 3, 1)
        failed, first, second = suites
        assert [case.result[0].message for case in failed] == ["nope.py: No such file or directory"]
        assert [(case.name, case.classname) for case in first] == [
            ("DVL102 discarded-move in f", "a.py"),
            ("DVL102 discarded-move in f (2)", "a.py"),
            ("DVL601 hardcoded-cuda-call", "a.py"),
        ]
        assert [case.is_passed for case in first] == [False, False, True]
        assert "2 |     dropped(x)\n  |     ^^^^^^^^^^ this call" in next(iter(first)).result[0].text
        assert [case.result[0].type for case in second] == ["error"]

    def test_the_least_severity_that_fails_is_heeded(self, tree) -> None:
        tree({"a.py": "dropped(); mismatch()"})
        found = check_source("dropped(); mismatch()", "a.py")
        text = "".join(render(Report(found, fail_on=Severity.ERROR), "junit"))
        assert junitparser.JUnitXml.fromstring(text).failures == 1
        result = check("a.py", "--output-format", "junit", "--fail-on", "error")
        assert junitparser.JUnitXml.fromstring(result.stdout).failures == 1


class TestRdjson:
    def test_diagnostics(self, tree) -> None:
        tree({"a.py": "x\n" + WIDE})
        document = consumers.rdjson(output("rdjson", "a.py"))
        (found,) = document["diagnostics"]
        assert document["severity"] == found["severity"] == "WARNING"
        assert found["code"] == {"value": "DVL102"}
        # `x = "`, two snakes of four bytes, and `"; `
        assert found["location"]["range"]["start"] == {"line": 2, "column": 5 + 8 + 4}
        assert found["related_locations"][0]["message"] == "from here"
        (suggestion,) = found["suggestions"]
        start, end = ((place["line"], place["column"]) for place in suggestion["range"].values())
        assert applied("x\n" + WIDE, [(start, end, suggestion["text"])], "utf-8") == "x\n" + WIDE.replace(
            "dropped", "mended"
        )

    def test_a_fix_of_several_edits_is_one_suggestion(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = Path.cwd()
        monkeypatch.undo()  # this takes a rule that is there
        monkeypatch.chdir(folder)
        code = (
            "from torch.utils.data import DataLoader\n\n\ndef train(model, dataset, device):\n"
            "    model.to('cuda')\n    for x in DataLoader(dataset):\n        y = x.to('cuda')\n        model(y)\n"
        )
        Path("a.py").write_text(code, encoding="utf-8")
        document = consumers.rdjson(output("rdjson", "--select", "DVL301", "a.py"))
        ((suggestion,),) = (found["suggestions"] for found in document["diagnostics"])
        start, end = ((place["line"], place["column"]) for place in suggestion["range"].values())
        assert start[0] < end[0]
        mended = applied(code, [(start, end, suggestion["text"])], "utf-8")
        check("--select", "DVL301", "--fix", "--unsafe-fixes", "a.py")
        assert Path("a.py").read_text(encoding="utf-8") == mended != code


class TestOutputFile:
    def test_the_report_goes_there_and_nowhere_else(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        tree({"a.py": "dropped()"})
        shown = check("a.py").stdout
        monkeypatch.setenv("FORCE_COLOR", "1")
        result = check("a.py", "--output-file", "report.txt")
        assert (result.exit_code, result.output) == (1, "")
        assert Path("report.txt").read_text(encoding="utf-8") == shown

    @pytest.mark.parametrize(
        ("file", "message"),
        [
            ("", "no file is named"),
            ("folder", "folder: Is a directory"),
            ("gone/report", "gone: No such directory"),
            ("/dev/null", "/dev/null: Is no regular file"),
            ("a.py", "a.py: holds code, which would be lost"),
            ("known.json", "known.json: is read by this very run, and would be lost"),
        ],
    )
    def test_what_cannot_be_written_is_said_at_once(self, file: str, message: str, tree) -> None:
        tree({"a.py": "dropped()", "folder/x": "", "known.json": "{}"})
        tree({"pyproject.toml": "[tool.devlint]\nbaseline = 'known.json'"})
        result = check("a.py", "--fix", "--unsafe-fixes", "--output-file", file)
        assert (result.exit_code, result.output) == (2, f"error: --output-file: {message}\n")
        assert Path("a.py").read_text() == "dropped()"

    def test_a_report_that_fails_leaves_the_old_one(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        tree({"a.py": "dropped()", "report": "old"})

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        result = check("a.py", "--output-file", "report")
        assert (result.exit_code, result.output) == (2, "error: --output-file: report: No space left on device\n")
        assert {path.name for path in Path().iterdir()} == {"a.py", "report"}
        assert Path("report").read_text() == "old"

    def test_it_goes_with_a_fixed_standard_input(self, tree) -> None:
        tree({})
        arguments = ["check", "-", "--fix", "--unsafe-fixes", "--output-file", "report"]
        result = CliRunner().invoke(main, arguments, input="dropped(); mismatch()")
        assert result.output == "mended(); mismatch()"
        assert "DVL101" in Path("report").read_text()

    def test_what_it_cannot_go_with(self, tree) -> None:
        tree({"a.py": "dropped()"})
        assert "--diff makes none" in check("a.py", "--diff", "--output-file", "report").stderr
        refused = check("a.py", "--statistics", "--output-format", "sarif")
        assert refused.stderr == "error: --statistics has no sarif format, only text or json\n"


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
class TestColours:
    """On a terminal and in a pipe; the variables decide where they speak."""

    def shown(self, terminal: bool, **variables: str) -> str:
        import subprocess
        import sys

        (leader, follower) = os.openpty()
        environment = {
            name: value
            for name, value in os.environ.items()
            if name
            not in ("NO_COLOR", "FORCE_COLOR", "FORCE_HYPERLINK", "VTE_VERSION", "TERM_PROGRAM", "KONSOLE_VERSION")
        }
        done = subprocess.Popen(
            [sys.executable, "-m", "devlint", "check", "--isolated", "a.py"],
            stdout=follower if terminal else subprocess.PIPE,
            env={**environment, "PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "xterm-256color", **variables},
        )
        os.close(follower)
        if not terminal:
            text = done.communicate(timeout=60)[0].decode()
        else:
            read = io.BytesIO()
            while chunk := self.read(leader):
                read.write(chunk)
            text = read.getvalue().decode()
            done.wait(timeout=60)
        os.close(leader)
        assert done.returncode == 1
        assert "parse-error" in text
        return text

    def read(self, leader: int) -> bytes:
        try:
            return os.read(leader, 4096)
        except OSError:  # Linux's word for the other side being closed
            return b""

    @pytest.mark.parametrize(
        ("terminal", "variables", "colored"),
        [
            (True, {}, True),
            (True, {"NO_COLOR": "1"}, False),
            (True, {"TERM": "dumb"}, False),
            (False, {}, False),
            (False, {"FORCE_COLOR": "1"}, True),
            (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ],
        ids=str,
    )
    def test_where_they_are(self, terminal: bool, variables: dict[str, str], colored: bool, tree) -> None:
        tree({"a.py": "def (:"})
        assert ("\x1b[1;31m" in self.shown(terminal, **variables)) is colored

    def test_places_are_links_where_the_terminal_knows_them(self, tree) -> None:
        root = tree({"a b.py": "", "a.py": "def (:"})
        link = f"\x1b]8;;{(root / 'a.py').as_uri()}\x1b\\a.py:1:5\x1b]8;;\x1b\\"
        assert link in self.shown(True, VTE_VERSION="7600")
        assert "\x1b]8" not in self.shown(True)
        assert "\x1b]8" not in self.shown(True, VTE_VERSION="7600", NO_COLOR="1")
        assert "\x1b]8" in self.shown(False, FORCE_HYPERLINK="1")
        assert "\x1b]8" not in self.shown(True, VTE_VERSION="7600", FORCE_HYPERLINK="0")
        text = self.shown(False, VTE_VERSION="7600", FORCE_COLOR="1")
        assert not re.search(r"\x1b\]", text)
