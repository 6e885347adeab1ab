"""The baseline: what is known is not reported, whatever happens around it; what is new is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from devlint.check.filters.baseline import Baseline
from devlint.finding import Context, Finding, Severity, Span
from tests.growth import QUADRATIC, Work, growth_of_time
from tests.test_cli import run

pytestmark = pytest.mark.usefixtures("stub_rules")

CODE = """\
class A:
    def f(self, x):
        dropped(x, 'a')

    def g(self, x):
        mismatch(x)
"""


def found(*arguments: str, stdin: bytes | None = None) -> list[str]:
    """Where something is reported, with the baseline ``base.json``."""
    result = run("--baseline", "base.json", "--output-format", "concise", "--fail-on", "info", *arguments, stdin=stdin)
    assert result.exit_code == int(bool(result.stdout)), result.output
    return [" ".join(line.split()[:2]) for line in result.stdout.splitlines()]


def update(*arguments: str, file: str = "base.json") -> list[dict]:
    """The entries after an update."""
    result = run("--baseline", file, "--update-baseline", *arguments)
    assert result.exit_code == 0, result.output
    return entries(file)


def entries(file: str = "base.json") -> list[dict]:
    return json.loads(Path(file).read_text(encoding="utf-8"))["findings"]


def test_what_is_known_is_not_reported(tree) -> None:
    tree({"a.py": CODE, "pkg/b.py": "hint()\n"})
    assert update() == [
        {"path": "a.py", "code": "DVL101", "scope": "A.g", "text": "mismatch(x)"},
        {"path": "a.py", "code": "DVL102", "scope": "A.f", "text": 'dropped(x, "a")'},
        {"path": "pkg/b.py", "code": "DVL601", "scope": "", "text": "hint()"},
    ]
    assert found() == []
    assert run("--baseline", "base.json").stdout == "No problems in 2 files. The baseline holds 3.\n"
    for form in ("text", "concise", "json"):
        assert "DVL1" not in run("--baseline", "base.json", "--output-format", form).stdout
    assert run("--baseline", "base.json", "--statistics").stdout == ""
    assert run("--baseline", "base.json", "-j", "4").exit_code == 0


@pytest.mark.parametrize(
    "changed",
    [
        "\n\n# moved down\n" + CODE,
        CODE.replace("dropped(x, 'a')", 'dropped(\n            x,  # why\n            "a",\n        )'),
        CODE.replace(
            "    def f(self, x):", "    def before(self):\n        pass\n\n    @cached\n    def f(self, y, x=1):"
        ),
        CODE.replace("dropped(x, 'a')", "other = renamed(dropped(x, 'a'))"),
        CODE.replace("\n", "\r\n"),
        "\ufeff" + CODE,
        CODE.replace("        dropped", "        if x:\n            dropped"),
    ],
)
def test_it_survives_what_happens_around(tree, changed: str) -> None:
    root = tree({"a.py": CODE})
    update()
    (root / "a.py").write_bytes(changed.encode())
    assert found() == []


def test_one_more_of_the_same_is_new(tree) -> None:
    root = tree({"a.py": CODE})
    update()
    (root / "a.py").write_text(CODE.replace("dropped(x, 'a')", "dropped(x, 'a'); dropped(x, 'a')"))
    assert found() == ["a.py:3:26: DVL102"]
    assert [entry.get("count") for entry in update()] == [None, 2]
    assert found() == []


@pytest.mark.parametrize(
    "changed",
    [
        CODE.replace("dropped(x, 'a')", "dropped(y, 'a')"),
        CODE.replace("def f", "def renamed"),
        CODE.replace("dropped(x, 'a')", "x").replace("mismatch(x)", "mismatch(x); dropped(x, 'a')"),
    ],
)
def test_another_call_or_another_place_is_new(tree, changed: str) -> None:
    root = tree({"a.py": CODE})
    update()
    (root / "a.py").write_text(changed)
    assert [line.split()[-1] for line in found()] == ["DVL102"]


def test_a_moved_file_is_new(tree) -> None:
    root = tree({"a.py": "dropped()"})
    update()
    os.rename(root / "a.py", root / "b.py")
    assert found() == ["b.py:1:1: DVL102"]


STALE = "warning: {} of the baseline no longer occur; run --update-baseline\n"


def test_stale_entries_are_reported_and_do_not_fail(tree) -> None:
    root = tree({"a.py": "dropped()\ndropped()\nmismatch()\nhint()\n", "gone.py": "hint()\n"})
    update()
    (root / "a.py").write_text("dropped()\n")
    (root / "gone.py").unlink()
    result = run("--baseline", "base.json")
    assert (result.exit_code, result.stderr) == (0, STALE.format("4 entries"))
    assert run("--baseline", "base.json", "-q").stderr == ""
    assert update() == [{"path": "a.py", "code": "DVL102", "scope": "", "text": "dropped()"}]
    assert run("--baseline", "base.json").stderr == ""


def test_a_run_speaks_only_of_what_it_judged(tree) -> None:
    root = tree({"a/x.py": "dropped(); mismatch()\n", "b/x.py": "dropped()\n", "broken.py": "hint()\n"})
    before = update()
    for name in ("a/x.py", "b/x.py"):
        (root / name).write_text("pass\n")
    (root / "broken.py").write_text("def f(:\n")
    for arguments in (["a", "--select", "DVL601"], ["broken.py"]):
        assert "no longer occur" not in run("--baseline", "base.json", *arguments).output
    assert update("--select", "DVL6", "a") == before, "other rules than these"
    assert [entry["path"] for entry in update("--select", "DVL101", "a")] == ["a/x.py", "b/x.py", "broken.py"]
    assert [entry["path"] for entry in update("a")] == ["b/x.py", "broken.py"], "other paths than these"
    assert [(entry["path"], entry["code"]) for entry in update()] == [("broken.py", "DVL601"), ("broken.py", "DVL900")]
    assert found() == [], "a file that does not parse can be known, too"


def test_rules_ignored_in_a_file_did_not_judge_it(tree) -> None:
    root = tree({"a.py": "dropped()"})
    before = update()
    (root / "a.py").write_text("pass")
    (root / "pyproject.toml").write_text("[tool.devlint.per-file-ignores]\n'a.py' = ['DVL102']")
    assert update() == before


def test_an_unknown_rule_is_stale(tree) -> None:
    entry = '{"path": "a.py", "code": "DVL777", "scope": "", "text": "x"}'
    tree({"a.py": "x", "base.json": f'{{"devlint-baseline": 1, "findings": [{entry}]}}'})
    assert run("--baseline", "base.json").stderr == STALE.format("1 entry").replace("occur", "occurs")
    assert update() == []


def test_suppressions_are_used_before_the_baseline_is_asked(tree) -> None:
    root = tree({"a.py": "dropped()\n"})
    update()
    (root / "a.py").write_text("dropped()  # devlint: ignore[DVL102]\n")
    result = run("--baseline", "base.json")
    assert "DVL901" not in result.stdout
    assert "1 entry" in result.stderr


def test_paths_are_those_of_the_baselines_directory(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree({"pyproject.toml": "[tool.devlint]\nbaseline = '.github/base.json'", "src/a b.py": "dropped()"})
    (root / ".github").mkdir()
    assert run("--update-baseline").exit_code == 0
    assert [entry["path"] for entry in entries(".github/base.json")] == ["../src/a b.py"]
    monkeypatch.chdir(root / "src")
    assert run().output == "No problems in 1 file. The baseline holds 1.\n"
    assert run(str(root / "src" / "a b.py")).exit_code == 0
    assert run("--isolated").exit_code == 1
    assert run("--baseline", "other.json").stderr == (
        "error: other.json: there is no such baseline; `--update-baseline` makes one\n"
    )


def test_the_standard_input(tree) -> None:
    tree({"a.py": "dropped()"})
    update()
    assert found("-", "--stdin-filename", "a.py", stdin=b"x\ndropped( )\n") == []
    assert found("-", "--stdin-filename", "b.py", stdin=b"dropped()") == ["b.py:1:1: DVL102"]
    assert found("-", stdin=b"dropped()") == ["-:1:1: DVL102"]
    result = run("-", "--baseline", "base.json", "--update-baseline", stdin=b"x")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "--stdin-filename" in result.stderr


def test_the_file_is_sorted_stable_and_left_alone_where_it_is_current(tree) -> None:
    root = tree({"b.py": "dropped()", "a.py": "mismatch(); dropped()"})
    update()
    lines = (root / "base.json").read_text().splitlines()
    assert lines[0] == '{"devlint-baseline": 1, "findings": ['
    assert lines[-1] == "]}"
    assert [json.loads(line.rstrip(","))["path"] for line in lines[1:-1]] == ["a.py", "a.py", "b.py"]
    os.utime(root / "base.json", (1, 1))
    update()
    assert (root / "base.json").stat().st_mtime == 1
    (root / "base.json").write_bytes((root / "base.json").read_bytes().replace(b"\n", b"\r\n"))
    assert found() == [], "git may have given it other line ends"


def test_an_empty_baseline(tree) -> None:
    root = tree({"a.py": "x"})
    assert update() == []
    assert (root / "base.json").read_text() == '{"devlint-baseline": 1, "findings": [\n]}\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a baseline of devlint: not valid JSON"),
        ("[" * 100_000, "not a baseline of devlint: not valid JSON"),
        (b"\xff\xfe", "not a baseline of devlint: not valid JSON"),
        ("{\n<<<<<<< HEAD\n", "there are merge conflicts in it; take either side and run `--update-baseline`"),
        ("<<<<<<< HEAD\n", "there are merge conflicts in it"),
        ("[]", "not a baseline of devlint"),
        ('{"findings": []}', "not a baseline of devlint"),
        ('{"devlint-baseline": true, "findings": []}', "not a baseline of devlint"),
        ('{"devlint-baseline": 2, "findings": []}', "written by a newer devlint (format 2, this one reads 1)"),
        ('{"devlint-baseline": 1}', "not a baseline of devlint: it has no list of findings"),
        ('{"devlint-baseline": 1, "findings": [{"path": "a"}]}', "entry 1 is not understood"),
        (
            '{"devlint-baseline": 1, "findings": [{"path":"a","code":"b","scope":"","text":"","count":0}]}',
            "entry 1 is not understood",
        ),
    ],
)
def test_a_file_that_is_no_baseline_is_one_line(tree, content: str | bytes, message: str) -> None:
    tree({"a.py": "dropped()", "base.json": content})
    for more in ([], ["--update-baseline"]):
        result = run("--baseline", "base.json", *more)
        assert result.exit_code == 2
        assert result.stderr.startswith("error: base.json: ")
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""


def test_what_cannot_be_a_baseline(tree) -> None:
    root = tree({"a.py": "dropped()", "dir/x": "", "pyproject.toml": "[tool.devlint]\nbaseline = 1"})
    os.mkfifo(root / "pipe")
    for name in ("dir", "pipe", "nowhere/base.json", ""):
        for more in ([], ["--update-baseline"]):
            result = run("--isolated", "--baseline", name, *more)
            assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.stderr
    assert "baseline: expected the name of a file" in run().stderr
    assert "no baseline is named" in run("--isolated", "--update-baseline").stderr


def test_the_same_entry_twice_after_a_merge(tree) -> None:
    entry = '{"path": "a.py", "code": "DVL102", "scope": "", "text": "dropped()"}'
    tree({"a.py": "dropped(); dropped()", "base.json": f'{{"devlint-baseline": 1, "findings": [{entry},\n{entry}]}}'})
    assert found() == ["a.py:1:12: DVL102"]


@pytest.mark.skipif(os.name != "posix", reason="names that are no text")
def test_names_that_are_no_text(tree) -> None:
    root = tree({"é.py": "dropped('漢字')"})
    with open(os.fsencode(root) + b"/\xff.py", "wb") as stream:
        stream.write(b"dropped('\\ud800')")
    update()
    assert found() == []
    assert "漢字" in (root / "base.json").read_text(encoding="utf-8"), "it is to be read by people"


def test_what_cannot_be_checked_stays_known(tree) -> None:
    root = tree({"a.py": "dropped()", "b.py": "dropped()"})
    before = update()
    (root / "a.py").write_text("fails()")
    result = run("--baseline", "base.json", "--update-baseline")
    assert result.exit_code == 2
    assert entries() == before


def test_a_baseline_of_ten_thousand_findings_takes_time_in_proportion(tmp_path: Path) -> None:
    from devlint.check.filters.baseline import Judged

    file = str(tmp_path / "base.json")

    def work(size: int) -> Work:
        found = [
            Finding("DVL102", "n", Severity.INFO, "m", f"{tmp_path}/f{row % (size // 100)}.py", Span(row, 1, row, 2),
                    context=Context("f", f"x{row // 3}", (1, 1)))
            for row in range(1, size + 1)
        ]  # fmt: skip

        def update_and_read() -> None:
            baseline = Baseline(file, {}).updated(found, Judged())
            baseline.write()
            again = Baseline.read(file)
            assert again == baseline
            assert again.new(found) == []
            assert again.stale(found, Judged()) == 0

        return update_and_read

    assert growth_of_time(work, 1_250, 10_000) < QUADRATIC


def test_only_what_is_reported_is_fixed(tree) -> None:
    root = tree({"a.py": "dropped(1)\n"})
    update()
    (root / "a.py").write_text("dropped(1)\ndropped(2)\ndropped(1)\n")
    assert run("--baseline", "base.json", "--fix", "--unsafe-fixes").exit_code == 0
    assert (root / "a.py").read_text() == "dropped(1)\nmended(2)\nmended(1)\n"
    data = run(
        "-", "--stdin-filename", "a.py", "--baseline", "base.json", "--diff", "--unsafe-fixes", stdin=b"dropped(1)"
    )
    assert (data.exit_code, data.stdout) == (0, "")
