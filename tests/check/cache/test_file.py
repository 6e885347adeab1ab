"""The cache on the disk: where it lies, who may spoil it, and how it goes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import devlint
from devlint import _about
from devlint.check.analysis import Analyzer
from devlint.check.cache import identity as identities
from devlint.check.cache import place, store
from devlint.check.cache.identity import identity
from devlint.cli import main
from devlint.finding import Applicability, Context, Edit, Finding, Fix, Place, Severity, Span
from tests.check.cache.conftest import Run

ROOT = Path(devlint.__file__).parents[1]
BAD = "import torch\n\n\ndef go(x: torch.Tensor, model: torch.nn.Module):\n    x.cuda()\n    return model.cuda()(x)\n"


def results(directory: str = place.DIRECTORY) -> list[Path]:
    return sorted(Path(directory).glob("results-*"))


class TestPlace:
    """Where results are kept, and when none are."""

    def test_it_hides_from_git_and_from_backups(self, tree, run: Run) -> None:
        tree({"a.py": BAD})
        run("a.py", code=1)
        assert sorted(os.listdir(place.DIRECTORY)) == [".gitignore", "CACHEDIR.TAG", results()[0].name]
        assert (Path(place.DIRECTORY) / ".gitignore").read_text(encoding="utf-8").endswith("\n*\n")
        tag = (Path(place.DIRECTORY) / "CACHEDIR.TAG").read_text(encoding="utf-8")
        assert tag.startswith("Signature: 8a477f597d28d172789f06886806bc55\n")

    def test_a_directory_of_somebody_gets_no_ignore_file(self, tree, run: Run) -> None:
        tree({"a.py": BAD, "theirs/notes.txt": "mine"})
        run("a.py", "--cache-dir", "theirs", code=1)
        assert sorted(os.listdir("theirs")) == ["notes.txt", results("theirs")[0].name]
        assert not os.path.exists(place.DIRECTORY)

    def test_it_lies_at_the_root_of_the_configuration(self, tree, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        root = tree({"a.py": BAD, "pkg/b.py": BAD, "pyproject.toml": "[tool.devlint]\n"})
        monkeypatch.chdir(root / "pkg")
        run(".", code=1)
        assert not os.path.exists(place.DIRECTORY)
        assert len(results(str(root / place.DIRECTORY))) == 1

    @pytest.mark.parametrize("how", ["key", "variable", "option"])
    def test_it_can_lie_elsewhere(self, tree, run: Run, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
        root = tree({"pkg/a.py": BAD, "pyproject.toml": "[tool.devlint]\n"})
        options: tuple[str, ...] = ()
        if how == "key":
            # from where the configuration lies
            tree({"pyproject.toml": '[tool.devlint]\ncache-dir = "build/kept"\n'})
            monkeypatch.chdir(root / "pkg")
        elif how == "variable":
            monkeypatch.setenv("DEVLINT_CACHE_DIR", "build/kept")
        else:
            options = ("--cache-dir", "build/kept")
        run(".", *options, code=1)
        assert len(results(str(root / "build" / "kept"))) == 1
        assert not (root / place.DIRECTORY).exists()

    @pytest.mark.parametrize("how", ["key", "variable", "option"])
    def test_it_can_be_done_without(self, tree, run: Run, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
        tree({"a.py": BAD, "pyproject.toml": f"[tool.devlint]\nno-cache = {str(how == 'key').lower()}\n"})
        if how == "variable":
            monkeypatch.setenv("DEVLINT_NO_CACHE", "1")
        run(".", *(["--no-cache"] if how == "option" else []), code=1)
        assert not os.path.exists(place.DIRECTORY)

    @pytest.mark.parametrize(
        "options",
        [("--fix", "--unsafe-fixes"), ("--diff",), ("--add-suppressions",), ("-",), ("--stdin-filename", "a.py")],
    )
    def test_nothing_is_kept_of_what_is_changed_or_piped(self, tree, run: Run, options: tuple[str, ...]) -> None:
        tree({"a.py": BAD})
        run(*options, stdin=BAD)
        assert not os.path.exists(place.DIRECTORY)

    def test_what_was_fixed_is_found_to_be(self, tree, run: Run) -> None:
        tree({"a.py": BAD})
        assert run("a.py", code=1).stdout.count("DVL102") == 1
        run("a.py", "--fix", "--unsafe-fixes", "--select", "DVL102", code=0)
        assert run("a.py", code=0).stdout.count("DVL102") == 0

    def test_wrong_keys_are_said_in_a_line(self, tree, run: Run) -> None:
        for line, wrong in (('no-cache = "yes"', "no-cache: expected true or false"), ("cache-dir = 1", "cache-dir: ")):
            tree({"a.py": "", "pyproject.toml": f"[tool.devlint]\n{line}\n"})
            assert wrong in run("a.py", code=2).stderr


class TestSpoiled:
    """Whatever the file holds, the report is what it is without it."""

    @pytest.fixture
    def report(self, tree, run: Run) -> str:
        tree({"a.py": BAD, "b.py": "from a import go\n\ngo(1, 2)\n"})
        return run(".", code=1).stdout

    @pytest.mark.parametrize("at", [0, 16, 60, -1])
    @pytest.mark.parametrize("how", ["cut", "turned", "longer"])
    def test_it_is_damaged(self, run: Run, report: str, checked: list[str], at: int, how: str) -> None:
        (file,) = results()
        data = bytearray(file.read_bytes())
        if how == "cut":
            del data[at:]
        elif how == "turned":
            data[at] ^= 0x55
        else:
            data[at:at] = b"\xc1"
        file.write_bytes(data)
        assert run(".", code=1).stdout == report
        assert len(checked) == 2
        assert run(".", code=1).stdout == report
        assert len(checked) == 2

    @pytest.mark.parametrize(
        "contents",
        [
            store.Contents(results={"a.py": [store.Result("a.py", "", [7], [])]}),
            store.Contents(folders=[], facts=[store.Fact(0, "a.py", None)]),
            store.Contents(stamps={3: (1, 1, 1)}),
            {"findings": []},
            [[], [], [], {}, {"a.py": [["a.py", "", [-1], []]]}],
            None,
        ],
    )
    def test_it_is_another_program_s(self, run: Run, report: str, contents: object) -> None:
        import zlib

        (file,) = results()
        body = msgspec.msgpack.encode(contents)
        file.write_bytes(store._HEAD % (store.FORMAT, zlib.crc32(body)) + body)
        assert run(".", code=1).stdout == report

    def test_a_severity_that_does_not_exist(self, run: Run, report: str, monkeypatch: pytest.MonkeyPatch) -> None:
        (file,) = results()
        kept = store.Store(str(file))
        for known in kept.contents.results.values():
            for result in known:
                result.findings[:] = [replace(one, severity=77) for one in result.findings]
        kept.write(os.getcwd())
        assert run(".", code=1).stdout == report

    def test_it_is_no_file(self, run: Run, report: str) -> None:
        (file,) = results()
        file.unlink()
        file.mkdir()
        assert run(".", code=1).stdout == report

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user who may not do everything")
    def test_it_may_not_be_written(self, run: Run, report: str, tree) -> None:
        os.chmod(place.DIRECTORY, 0o500)
        tree({"c.py": ""})
        assert " in 3 files.\n" in run(".", code=1).stdout
        os.chmod(place.DIRECTORY, 0o700)

    def test_a_file_stands_in_the_place_of_the_directory(self, tree, run: Run) -> None:
        tree({"a.py": BAD, place.DIRECTORY: "mine", "other": "mine"})
        assert run("a.py", code=1).stderr == ""
        assert run("a.py", "--cache-dir", "other", code=1).stderr.startswith("warning: ")
        assert run("a.py", "--cache-dir", "other", "-q", code=1).stderr == ""
        assert Path("other").read_text(encoding="utf-8") == "mine"


class TestShared:
    """Runs that use the same cache."""

    def test_each_keeps_what_the_other_has_found(self, tree, run: Run, checked: list[str], monkeypatch) -> None:
        tree({"a.py": BAD, "b.py": BAD})
        prepared = place.prepare

        def another_run_first(directory):
            monkeypatch.setattr(place, "prepare", prepared)
            run("b.py", code=1)
            prepared(directory)

        monkeypatch.setattr(place, "prepare", another_run_first)
        run("a.py", code=1)
        checked.clear()
        run("a.py", code=1)
        run("b.py", code=1)
        assert checked == []

    def test_many_at_once(self, tree) -> None:
        root = tree({f"f{number}.py": BAD for number in range(12)})
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "DEVLINT_NO_CACHE": "0"}
        command = [sys.executable, "-m", "devlint", "check", "--isolated", "--output-format", "concise", "-q"]
        runs = [
            subprocess.Popen([*command, f"f{number}.py", "f0.py"], cwd=root, env=environment, stdout=subprocess.PIPE)
            for number in range(6)
        ]
        for number, process in enumerate(runs):
            out, _ = process.communicate(timeout=60)
            assert out.count(b"DVL102") == (2 if number else 1)
        assert [path.suffix for path in results(str(root / place.DIRECTORY))] == [".msgpack"]

    def test_results_of_one_file_do_not_pile_up(self, tree, run: Run) -> None:
        tree({"a.py": BAD})
        for code in ("DVL101", "DVL102", "DVL103", "DVL104", "DVL105", "DVL106"):
            run("a.py", "--select", code)
        (file,) = results()
        (kept,) = store.Store(str(file)).contents.results.values()
        assert [result.setting.count("DVL106") for result in kept] == [1, 0, 0, 0]

    def test_files_that_are_gone_are_forgotten(self, tree, run: Run) -> None:
        tree({"a.py": BAD, "lib.py": BAD, "use.py": "from lib import go\n\ngo(1, 2)\n"})
        run(".", code=1)
        os.unlink("use.py")
        os.unlink("lib.py")
        tree({"new.py": ""})
        run(".", code=1)
        kept = store.Store(str(results()[0])).contents
        assert sorted(kept.results) == ["a.py", "new.py"]

    def test_what_was_so_once_is_forgotten(self, tree, run: Run, checked: list[str]) -> None:
        for number in range(9):
            tree({"a.py": BAD, "b.py": f"x = {number}\n"})
            run(".", code=1)
        assert len(store.Store(str(results()[0])).contents.facts) <= 4
        assert checked.count("a.py") == 1

    def test_old_files_are_removed(self, tree, run: Run) -> None:
        tree(
            {
                "a.py": BAD,
                f"{place.DIRECTORY}/results-old.msgpack": "",
                f"{place.DIRECTORY}/results-x.msgpack.7.tmp": "",
            }
        )
        tree({f"{place.DIRECTORY}/results-other.msgpack": ""})
        for name, age in (("results-old.msgpack", 40 * 86400), ("results-x.msgpack.7.tmp", 3600)):
            os.utime(os.path.join(place.DIRECTORY, name), (time.time() - age, time.time() - age))
        run("a.py", code=1)
        left = {path.name for path in results()}
        assert len(left) == 2
        assert "results-other.msgpack" in left


class TestIdentity:
    """Another devlint does not believe this one."""

    def test_the_code_counts_where_somebody_works_on_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("devlint/rules/a.py", "devlint/flow/table.json", "devlint/auditor/b.py"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("1", encoding="utf-8")
        monkeypatch.setattr(_about, "PACKAGE", str(tmp_path / "devlint"))
        seen = {identity()}
        (tmp_path / "devlint/auditor/b.py").write_text("2", encoding="utf-8")
        assert identity() in seen
        for name in ("devlint/rules/a.py", "devlint/flow/table.json", "devlint/rules/new.py"):
            (tmp_path / name).write_text("2", encoding="utf-8")
            assert identity() not in seen
            seen.add(identity())
        record = tmp_path / f"devlint-{devlint.__version__}.dist-info" / "RECORD"
        record.parent.mkdir()
        for line in ("devlint/rules/a.py,sha256=1,1", "devlint/rules/a.py,sha256=2,1"):
            record.write_text(f"{line}\n../../../bin/devlint,sha256={len(seen)},2\n", encoding="utf-8")
            assert identity() not in seen
            seen.add(identity())
        record.write_text(f"../bin/devlint,sha256=9,2\n{line}\n", encoding="utf-8")
        assert identity() in seen

    @pytest.mark.parametrize("what", ["sys.version", "devlint._about.__version__"])
    def test_the_version_counts(self, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
        before = identity()
        assert before == identity()
        monkeypatch.setattr(what, "3.99")
        assert identity() != before

    def test_the_release_of_libcst_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert identities._libcst().startswith("libcst-")
        before = identity()
        monkeypatch.setattr(identities, "_libcst", lambda: "libcst-99.dist-info")
        assert identity() != before

    def test_another_devlint_checks_again(self, tree, run: Run, checked: list[str], monkeypatch) -> None:
        tree({"a.py": BAD})
        run("a.py", code=1)
        monkeypatch.setattr(_about, "__version__", "99.0")
        run("a.py", code=1)
        assert checked == ["a.py", "a.py"]


class TestClean:
    """``devlint clean``."""

    def clean(self, *arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["clean", *arguments])
        return result.exit_code, result.output

    def test_all_here_and_below(self, tree, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        root = tree({"a.py": BAD, "sub/pyproject.toml": "[tool.devlint]\n", "sub/b.py": BAD})
        run("a.py", code=1)
        run("sub", code=1)
        assert self.clean() == (0, f"Removed {place.DIRECTORY}\nRemoved {os.path.join('sub', place.DIRECTORY)}\n")
        assert sorted(path.name for path in root.rglob("*")) == ["a.py", "b.py", "pyproject.toml", "sub"]
        assert self.clean() == (0, "There is no cache.\n")

    def test_the_one_of_the_configuration(self, tree, run: Run) -> None:
        tree({"a.py": BAD, "pyproject.toml": '[tool.devlint]\ncache-dir = "kept"\n'})
        run("a.py", code=1)
        assert self.clean() == (0, "Removed kept\n")
        assert not os.path.exists("kept")

    def test_no_name_is_no_choice(self, tree, run: Run) -> None:
        tree({"a.py": BAD})
        run("a.py", "--cache-dir", "", code=1)
        assert self.clean("--cache-dir", "") == (0, f"Removed {place.DIRECTORY}\n")

    def test_nothing_of_anybody_else(self, tree, run: Run) -> None:
        tree({"a.py": BAD, "theirs/.gitignore": "*.log\n", "theirs/results.txt": ""})
        run("a.py", "--cache-dir", "theirs", code=1)
        assert self.clean("--cache-dir", "theirs") == (0, "Removed theirs\n")
        assert sorted(os.listdir("theirs")) == [".gitignore", "results.txt"]
        assert self.clean("--cache-dir", ".") == (0, "There is no cache.\n")
        assert os.path.exists("a.py")


def test_a_finding_comes_back_as_it_was() -> None:
    span = Span(1, 2, 3, 4, 5)
    fix = Fix("message", (Edit(span, "new"),), Applicability.SAFE)
    places = (Place(span, "here", "b.py"), Place(span, "there"))
    finding = Finding(
        "DVL1",
        "name",
        Severity.ERROR,
        "message",
        "a.py",
        span,
        "label",
        places,
        "help",
        fix,
        Context("f", "x", (7, 8)),
        True,
        cause="one",
        design="all",
        shared="much",
        selected=True,
        implied=True,
        minor=True,
        unproven=Severity.WARNING,
    )
    (again,) = msgspec.msgpack.decode(msgspec.msgpack.encode([finding]), type=list[Finding])
    for part in (finding, span, places[0], fix, fix.edits[0], finding.context):
        for field in fields(part):
            # a field that is new has to be kept, too; evidence is only added to what a run has found, and what others
            # say as well has gone before
            assert field.name in ("evidence", "covers") or getattr(part, field.name) != field.default, field.name
    for field in fields(finding):
        assert getattr(again, field.name) == getattr(finding, field.name)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are text there")
def test_a_name_that_is_no_text_is_checked_each_time(tree, run: Run, checked: list[str], tmp_path: Path) -> None:
    tree({"a.py": BAD})
    with open(os.fsencode(tmp_path) + b"/\xff.py", "w", encoding="utf-8") as stream:
        stream.write(BAD)
    for _ in range(2):
        assert "in 2 files" in run(".", code=1).stdout
    assert sorted(checked) == ["a.py", "\udcff.py", "\udcff.py"]


def test_what_was_found_before_an_interruption_is_kept(tree, run: Run, checked: list[str], monkeypatch) -> None:
    tree({"a.py": BAD, "b.py": BAD})
    original = Analyzer.considered

    def interrupted(analyzer, data):
        if analyzer.filename == "b.py":
            raise KeyboardInterrupt
        return original(analyzer, data)

    monkeypatch.setattr(Analyzer, "considered", interrupted)
    assert run(".").exit_code == 130
    monkeypatch.setattr(Analyzer, "considered", original)
    checked.clear()
    run(".", code=1)
    assert checked == ["b.py"]


CONFIGURATION = """\
[tool.devlint]
extend-select = ["DVL103", "hardcoded-cuda-call"]
ignore = ["DVL2"]
baseline = "known.json"
[tool.devlint.per-file-ignores]
"tests/**" = ["DVL6"]
[tool.devlint.severity]
DVL601 = "error"
"""


def test_a_run_that_finds_all_results_loads_nothing_that_reads_code(tree, run: Run) -> None:
    tree({"a.py": BAD, "tests/b.py": BAD, "pyproject.toml": CONFIGURATION})
    run(".", "--select", "DVL1", "--update-baseline", code=0)
    (Path("c.py")).write_text(BAD, encoding="utf-8")
    run(".", "--select", "DVL1", code=1)
    code = (
        "import sys\nfrom devlint.cli import main\n"
        "try: main(['check', '.', '--select', 'DVL1'])\nexcept SystemExit as end: assert end.code == 1\n"
        "heavy = [name for name in sys.modules if name.startswith(('libcst', 'torch', 'rich', 'multiprocessing',"
        " 'devlint.rules.base', 'devlint.flow', 'devlint.check.project.project', 'devlint.check.analysis',"
        " 'devlint.check.suppressions'))]\n"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Found " in done.stdout
    # the guard itself: without the cache these are what a run needs
    environment["DEVLINT_NO_CACHE"] = "1"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, timeout=60)
    assert b"devlint.rules.base" in done.stderr


def test_an_unknown_rule_is_refused_however_often(tree, run: Run) -> None:
    tree({"a.py": "", "pyproject.toml": '[tool.devlint]\nselect = ["DVL1"]\n'})
    run("a.py", code=0)
    run("a.py", "--ignore", "DVL1", code=0)
    for _ in range(2):
        assert "unknown rule 'DVL777'" in run("a.py", "--ignore", "DVL777", code=2).stderr
    tree({"pyproject.toml": '[tool.devlint]\nselect = ["DVL1", "DVL777"]\n'})
    for _ in range(2):
        assert "unknown rule 'DVL777'" in run("a.py", code=2).stderr
