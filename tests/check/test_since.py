"""Only what concerns the lines that have changed since a git revision."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_cli import run

pytestmark = [
    pytest.mark.usefixtures("stub_rules"),
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
]

OLD = "import torch\n\ndropped()\n\n\ndef f(x):\n    mismatch(\n        x,\n        1,\n    )\n    return hint()\n"


@pytest.fixture(autouse=True)
def _no_git_of_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


def git(*arguments: str, cwd: Path | None = None) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tree):
    """A repository with a commit of the files."""

    def make(files: dict[str, str | bytes]) -> Path:
        root = tree(files)
        git("init", "--quiet", "-b", "main")
        commit()
        return root

    return make


def commit() -> None:
    git("add", "-A")
    git("commit", "--quiet", "--allow-empty", "-m", "x")


def found(*arguments: str, since: str = "HEAD") -> list[str]:
    result = run("--since", since, "--output-format", "concise", "--fail-on", "info", *arguments)
    assert result.exit_code == int(bool(result.stdout)), result.output
    return [line.partition(" `")[0].removesuffix(" invalid syntax") for line in result.stdout.splitlines()]


def error(*arguments: str) -> str:
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.output
    return result.stderr.removeprefix("error: ").strip()


def test_nothing_has_changed(repository) -> None:
    repository({"a.py": OLD})
    assert found() == []
    assert run("--since", "HEAD").output == "No Python file has changed since HEAD.\n"
    assert run("--since", "HEAD", "-q").output == ""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("import torch\n", "import torch\nimport os\n", []),
        ("dropped()", "dropped(1)", ["a.py:3:1: DVL102"]),
        ("dropped()", "dropped()  # why", ["a.py:3:1: DVL102"]),
        ("        1,\n", "        2,\n", ["a.py:7:5: DVL101"]),
        ("        1,\n", "", ["a.py:7:5: DVL101"]),
        ("import torch\n\n", "", []),
        ("    return hint()\n", "    y = 1\n    return hint()\n", []),
        ("return hint()", "return dropped()", ["a.py:11:12: DVL102"]),
        ("def f(x)", "def f(y)", []),
    ],
)
def test_a_finding_counts_if_a_line_of_its_statement_changed(repository, before, after, expected) -> None:
    root = repository({"a.py": OLD, "same.py": "dropped()\nfrom a import f\nused = f\n"})
    (root / "a.py").write_text(OLD.replace(before, after))
    assert found() == expected
    git("add", "a.py")
    assert found() == expected, "staged or not"
    commit()
    assert found(since="HEAD~1") == expected
    assert found() == []


def test_a_finding_counts_if_what_explains_it_changed(repository) -> None:
    """In the stub rules a call is explained by its arguments; here the last of them is on another line."""
    from devlint.check.filters.revision import Since, _Rows
    from devlint.finding import Context, Finding, Place, Severity, Span

    since = Since(os.getcwd(), frozenset({"a.py"}), frozenset(), {"a.py": _Rows({2})})
    step = Place(Span(2, 1, 2, 5), "made here")
    finding = Finding("DVL101", "n", Severity.ERROR, "m", "a.py", Span(9, 1, 9, 5), context=Context("", "x", (9, 9)))
    assert since.concerned([finding]) == []
    from dataclasses import replace

    assert since.concerned([replace(finding, related=(step,))])
    assert not since.concerned([replace(finding, related=(replace(step, filename="b.py"),))])


def test_new_files_are_new_altogether(repository) -> None:
    root = repository({"a.py": "x\n", ".gitignore": "ignored.py\n"})
    for name in ("untracked.py", "staged.py", "intended.py", "ignored.py"):
        (root / name).write_text("dropped()\n")
    git("add", "staged.py")
    git("add", "--intent-to-add", "intended.py")
    assert found() == ["intended.py:1:1: DVL102", "staged.py:1:1: DVL102", "untracked.py:1:1: DVL102"]
    assert found("ignored.py") == ["ignored.py:1:1: DVL102"]


def test_a_renamed_file_is_the_same_file(repository) -> None:
    root = repository({"old.py": OLD * 3})
    git("mv", "old.py", "new.py")
    assert found() == []
    (root / "new.py").write_text(OLD * 3 + "hint()\n")
    assert found() == ["new.py:34:1: DVL601"]
    git("config", "diff.renames", "false")
    assert found() == ["new.py:34:1: DVL601"]


def test_a_file_that_does_not_parse_counts_if_it_changed(repository) -> None:
    root = repository({"a.py": "def f(:\n\nx = 1\n", "b.py": "def f(:\n"})
    assert found() == []
    (root / "a.py").write_text("def f(:\n\nx = 2\n")
    assert found() == ["a.py:1:7: DVL900"]


def test_only_files_that_changed_are_analysed(repository) -> None:
    root = repository({"fails.py": "fails()", "a.py": "x"})
    (root / "a.py").write_text("y")
    result = run("--since", "HEAD")
    assert (result.exit_code, result.output) == (0, "No problems in 1 file.\n")


def test_the_usual_choice_of_files_holds(repository) -> None:
    root = repository({"pyproject.toml": "[tool.devlint]\nextend-exclude = ['gen']", "gen/a.py": "x", "src/a.py": "x"})
    for name in ("gen/a.py", "src/a.py"):
        (root / name).write_text("dropped()\n")
    assert found() == ["src/a.py:1:1: DVL102"]
    assert found("gen/a.py") == ["gen/a.py:1:1: DVL102"]
    assert found("src", "--select", "DVL6") == []


def test_a_script_without_the_suffix_can_be_named(repository) -> None:
    root = repository({"train": "x\ny\n"})
    (root / "train").write_text("x\ndropped()\n")
    assert found("train") == ["train:2:1: DVL102"]


NAMES = [
    "with space.py",
    "é漢.py",
    'quo"te.py',
    "tab\there.py",
    "new\nline.py",
    "back\\slash.py",
    "-dash.py",
    ":(top).py",
]


@pytest.mark.skipif(os.name != "posix", reason="names that Windows has not")
@pytest.mark.parametrize("name", NAMES)
def test_any_name(repository, name: str) -> None:
    root = repository({f"dir é/{name}": "x\n" * 9})
    assert found() == []
    (root / f"dir é/{name}").write_text("x\n" * 8 + "dropped()\n")
    for quoting in ("true", "false"):
        git("config", "core.quotePath", quoting)
        assert len(found()) == 1
        assert ":9:1:" in found()[0]


def test_a_name_that_is_no_text(repository) -> None:
    root = repository({"a.py": ""})
    path = os.fsencode(root) + b"/\xff.py"
    for text in (b"x\n", b"x\ndropped()\n"):
        with open(path, "wb") as stream:
            stream.write(text)
        if text == b"x\n":
            commit()
    assert len(found()) == 1


def test_from_a_subdirectory_and_from_outside(repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = repository({"src/a.py": "x\n", "b.py": "x\n"})
    (root / "src/a.py").write_text("dropped()\n")
    (root / "b.py").write_text("dropped()\n")
    monkeypatch.chdir(root / "src")
    assert found() == ["a.py:1:1: DVL102"]
    assert found("..") == ["../b.py:1:1: DVL102", "../src/a.py:1:1: DVL102"]
    monkeypatch.chdir("/")
    assert len(found(str(root))) == 2
    assert len(found(str(root / "src" / "a.py"))) == 1


def test_the_point_where_a_branch_began(repository) -> None:
    """What others did on the main branch meanwhile is not ours."""
    root = repository({"a.py": "hint()\nx\nx\nx\nx\n", "b.py": "x\n"})
    git("checkout", "--quiet", "-b", "work")
    (root / "b.py").write_text("dropped()\n")
    commit()
    git("checkout", "--quiet", "main")
    (root / "a.py").write_text("mended\nx\nx\nx\nx\n")
    commit()
    git("checkout", "--quiet", "work")
    assert found(since="main") == ["b.py:1:1: DVL102"]
    git("checkout", "--quiet", "--detach")
    assert found(since="main") == ["b.py:1:1: DVL102"]


def test_revisions_of_every_kind(repository) -> None:
    root = repository({"a.py": "x\n"})
    git("tag", "-a", "v1", "-m", "x")
    (root / "a.py").write_text("dropped()\n")
    commit()
    for revision in (
        "v1",
        "HEAD~1",
        "HEAD^",
        git("rev-parse", "--short", "HEAD~1"),
        "main~1",
        "main@{1}",
        "v1^{commit}",
    ):
        assert found(since=revision) == ["a.py:1:1: DVL102"], revision


@pytest.mark.parametrize(
    "revision", ["nope", "", "--output=stolen", "-p", "HEAD..main", "^HEAD", "HEAD:a.py", "HEAD^{tree}", "a b", "a.py"]
)
def test_what_is_no_revision_is_one_line(repository, revision: str) -> None:
    root = repository({"a.py": "dropped()\n"})
    commit()
    assert error(f"--since={revision}") == f"--since: there is no revision {revision!r} in this git repository"
    assert not (root / "stolen").exists()


def test_what_is_no_repository_is_one_line(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree({"a.py": "dropped()\n", "repo/b.py": "dropped()\n"})
    assert error("--since", "HEAD").startswith("--since: not a git repository")
    git("init", "--quiet", cwd=root / "repo")
    assert error("--since", "HEAD", "repo").startswith("--since: there is no revision 'HEAD'"), "it has no commit yet"
    git("commit", "--quiet", "--allow-empty", "-m", "x", cwd=root / "repo")
    assert "a.py is not in the git repository" in error("--since", "HEAD", "repo", "a.py")
    assert "not a git repository" in error("--since", "HEAD", str(root / "nowhere" / "at" / "all.py"))
    monkeypatch.setenv("PATH", "")
    assert error("--since", "HEAD", "repo") == "--since: git is not installed"


def test_combinations_that_make_no_sense(repository) -> None:
    repository({"a.py": "dropped()\n"})
    for more in (["-"], ["--fix"], ["--diff"], ["--update-baseline", "--baseline", "b.json"]):
        assert error("--since", "HEAD", *more).startswith("--since ")


def test_with_a_baseline(repository) -> None:
    root = repository({"a.py": "dropped()\ndropped(1)\n", "b.py": "hint()\n"})
    assert run("--baseline", "base.json", "--update-baseline").exit_code == 0
    (root / "a.py").write_text("dropped()\ndropped(1)  # touched\ndropped(2)\n")
    assert found("--baseline", "base.json") == ["a.py:3:1: DVL102"]
    (root / "a.py").write_text("dropped(1)\n")
    assert run("--since", "HEAD", "--baseline", "base.json").stderr == (
        "warning: 1 entry of the baseline no longer occurs; run --update-baseline\n"
    ), "of the files that changed, and of these all lines"


def test_submodules_are_no_changes(repository, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "c.py").write_text("dropped()\n")
    git("init", "--quiet", cwd=other)
    git("add", "-A", cwd=other)
    git("commit", "--quiet", "-m", "x", cwd=other)
    root = repository({"a.py": "x\n"})
    git("submodule", "--quiet", "add", str(other), "lib/sub")
    assert found() == []
    (root / "lib/sub/c.py").write_text("mismatch()\n")
    (root / "lib/own.py").write_text("hint()\n")
    assert found() == ["lib/own.py:1:1: DVL601"]


def test_worktrees_and_shallow_clones(repository, tmp_path_factory: pytest.TempPathFactory, monkeypatch) -> None:
    root = repository({"a.py": "x\n"})
    (root / "a.py").write_text("dropped()\n")
    commit()
    place = tmp_path_factory.mktemp("place")
    git("worktree", "add", "--quiet", str(place / "tree"))
    monkeypatch.chdir(place / "tree")
    assert found(since="HEAD~1") == ["a.py:1:1: DVL102"]
    git("clone", "--quiet", "--depth=1", f"file://{root}", str(place / "shallow"))
    monkeypatch.chdir(place / "shallow")
    assert error("--since", "HEAD~1").endswith("of which only a part was cloned: `git fetch` it")
    assert found() == []
    (place / "shallow" / "a.py").write_text("dropped()\nhint()\n")
    assert found() == ["a.py:2:1: DVL601"]


def test_histories_without_a_common_commit(repository) -> None:
    root = repository({"a.py": "dropped()\nx\n"})
    git("checkout", "--quiet", "--orphan", "other")
    (root / "a.py").write_text("dropped()\nhint()\n")
    commit()
    assert found(since="main") == ["a.py:2:1: DVL601"]


def test_what_the_user_configured_changes_nothing(repository, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository({"a.py": "x\n" * 20, "b.py": "x\n", ".gitattributes": "b.py -diff\na.py diff=odd\n"})
    (root / "a.py").write_text("x\n" * 18 + "dropped()\n++ b.py\nhint()\n")
    (root / "b.py").write_text("x\ndropped()\n")
    for key, value in (
        ("diff.external", "false"), ("color.ui", "always"), ("diff.mnemonicPrefix", "true"), ("diff.noprefix", "true"),
        ("diff.context", "9"), ("diff.interHunkContext", "9"), ("diff.relative", "true"), ("diff.odd.textconv", "tac"),
        ("diff.wordRegex", "."), ("diff.algorithm", "patience"), ("core.pager", "false"), ("color.diff.new", "blue"),
        ("diff.odd.command", "false"), ("diff.suppressBlankEmpty", "true"), ("diff.colorMoved", "zebra"),
    ):  # fmt: skip
        git("config", key, value)
    monkeypatch.setenv("GIT_DIFF_OPTS", "-u9")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    expected = ["a.py:19:1: DVL102", "a.py:21:1: DVL601", "b.py:2:1: DVL102"]
    assert found() == expected


def test_line_ends_of_windows(repository) -> None:
    root = repository({"a.py": b"dropped()\r\nx\r\n"})
    (root / "a.py").write_bytes(b"dropped()\r\nhint()\r\n")
    assert found() == ["a.py:2:1: DVL601"]


def test_a_hooks_environment(repository, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository({"src/a.py": "x\n"})
    (root / "src/a.py").write_text("dropped()\n")
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    assert found("src") == ["src/a.py:1:1: DVL102"]


def test_links_are_followed_to_what_changed(repository) -> None:
    root = repository({"real.txt": "x\n"})
    (root / "link.py").symlink_to("real.txt")
    commit()
    assert found() == []
    (root / "real.txt").write_text("dropped()\n")
    assert found("link.py") == ["link.py:1:1: DVL102"]


def test_a_suppression_is_used_by_what_is_not_reported(repository) -> None:
    used, unused = "dropped()  # devlint: ignore[DVL102]\n", "x  # devlint: ignore[DVL102]\n"
    root = repository({"a.py": f"{used}{unused}\n"})
    (root / "a.py").write_text(f"{used}{unused}{used}{unused}")
    assert [line.split()[:2] for line in found()] == [["a.py:4:4:", "DVL901"]], "of the new lines alone"
    assert found("--select", "DVL6,DVL901") == []


def test_a_path_that_does_not_exist(repository) -> None:
    root = repository({"a.py": "x\n"})
    (root / "a.py").write_text("dropped()\n")
    result = run("--since", "HEAD", "nowhere/b.py", "a.py", "--output-format", "concise")
    assert (result.exit_code, result.stderr) == (2, "error: nowhere/b.py: No such file or directory\n")
    assert result.stdout.startswith("a.py:1:1: DVL102")


def test_a_conflict_that_is_not_resolved(repository) -> None:
    root = repository({"a.py": "x\n", "b.py": "x\n"})
    git("checkout", "--quiet", "-b", "work")
    (root / "a.py").write_text("y\n")
    commit()
    git("checkout", "--quiet", "main")
    (root / "a.py").write_text("z\n")
    (root / "b.py").write_text("dropped()\n")
    commit()
    with pytest.raises(subprocess.CalledProcessError):
        git("merge", "work")
    assert [line.split()[1] for line in found()] == ["DVL900"]
    assert [line.split()[1] for line in found(since="HEAD~1")] == ["DVL900", "DVL102"]
