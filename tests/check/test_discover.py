"""Which files are checked."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from devlint.check.discovery.walk import discover
from devlint.config.load import Resolver
from devlint.config.schema import Config
from devlint.rules.selection import validate
from tests.growth import QUADRATIC, Work, growth_of_time


def found(*paths: str, **config: object) -> list[str]:
    resolver = Resolver(validate, Config(root=os.getcwd(), **config))  # type: ignore[arg-type]  # by name
    result = discover(paths or (".",), resolver)
    assert result.errors == []
    return [target.path for target in result.targets]


def test_only_python_files_and_notebooks_in_order(tree) -> None:
    tree({"b.py": "", "a/z.py": "", "a/y.pyi": "", "a/n.ipynb": "", "a/.hidden.py": "", "README.md": "", "x.PY": ""})
    assert sorted(found()) == ["a/.hidden.py", "a/n.ipynb", "a/z.py", "b.py"]
    assert found("a") == ["a/.hidden.py", "a/n.ipynb", "a/z.py"]
    assert found("a", extend_exclude=("*.ipynb",)) == ["a/.hidden.py", "a/z.py"]


def test_a_named_file_is_checked_whatever_it_is_called(tree) -> None:
    tree({"script": "", "build/x.py": "", "ignored.py": "", ".gitignore": "ignored.py"})
    assert found("script", "build/x.py", "ignored.py") == ["script", "build/x.py", "ignored.py"]


def test_no_file_twice(tree) -> None:
    root = tree({"a/x.py": ""})
    assert found("a", "a/x.py", "./a/../a", str(root / "a" / "x.py")) == ["a/x.py"]


def test_other_peoples_directories_are_left_out(tree) -> None:
    names = [".git", ".venv", "venv", "node_modules", "build", "dist", "__pycache__", ".eggs", "site-packages", ".tox"]
    tree({**{f"{name}/x.py": "" for name in names}, "src/build/y.py": "", "src/builder/z.py": ""})
    assert found() == ["src/builder/z.py"]
    assert found("site-packages") == ["site-packages/x.py"]


def test_exclude_replaces_and_extend_exclude_adds(tree) -> None:
    tree({"build/x.py": "", "gen/a.py": "", "src/gen/b.py": "", "src/c_pb2.py": "", "src/d.py": ""})
    assert found(extend_exclude=("gen",)) == ["src/c_pb2.py", "src/d.py"]
    assert found(extend_exclude=("/gen/", "*_pb2.py")) == ["src/d.py", "src/gen/b.py"]
    assert found(extend_exclude=("src/gen/*.py",)) == ["gen/a.py", "src/c_pb2.py", "src/d.py"]
    assert found(exclude=("src",)) == ["build/x.py", "gen/a.py"]


@pytest.mark.parametrize(
    ("kind", "left_out"),
    [
        ("tests", ["conftest.py", "src/test_a.py", "tests/help.py"]),
        ("notebooks", ["a.ipynb"]),
        ("examples", ["examples/run.py"]),
        ("vendored", ["old/net.py", "src/third_party/net.py"]),
    ],
)
def test_kinds_of_files_are_left_out_by_their_usual_names(tree, kind: str, left_out: list[str]) -> None:
    names = ["a.ipynb", "a.py", "conftest.py", "examples/run.py", "src/test_a.py", "src/third_party/net.py"]
    tree(dict.fromkeys([*names, "old/net.py", "tests/help.py"], ""))
    every = found(extend_exclude=())
    assert set(every) - set(found(exclude_kinds=(kind,))) == set(left_out)


def test_force_exclude_reaches_named_files(tree) -> None:
    tree({"gen/deep/a.py": "", "b.py": ""})
    assert found("gen/deep/a.py", "b.py", extend_exclude=("gen",)) == ["gen/deep/a.py", "b.py"]
    assert found("gen/deep/a.py", "b.py", "gen", extend_exclude=("gen",), force_exclude=True) == ["b.py"]


def test_gitignore_nested_negated_anchored(tree) -> None:
    tree(
        {
            ".gitignore": "*_gen.py\n/top.py\nout/\n",
            "top.py": "",
            "a_gen.py": "",
            "out/x.py": "",
            "sub/top.py": "",
            "sub/b_gen.py": "",
            "sub/.gitignore": "!b_gen.py\nsecret.py\n",
            "sub/secret.py": "",
            "secret.py": "",
        }
    )
    assert found() == ["secret.py", "sub/b_gen.py", "sub/top.py"]
    assert "out/x.py" in found(respect_gitignore=False)


def test_gitignore_above_counts_up_to_the_root_of_the_repository(tree) -> None:
    tree(
        {
            ".gitignore": "*.py\n",
            "repo/.git/info/exclude": "private.py\n",
            "repo/.gitignore": "gen_*.py\nbuilt/\n",
            "repo/pkg/gen_a.py": "",
            "repo/pkg/a.py": "",
            "repo/pkg/private.py": "",
            "repo/built/b.py": "",
        }
    )
    assert found("repo/pkg") == ["repo/pkg/a.py"]
    assert found("repo/built") == ["repo/built/b.py"], "whoever names an ignored directory means it"
    assert found("repo") == ["repo/pkg/a.py"]


def test_a_broken_gitignore_pattern_costs_only_itself(tree) -> None:
    tree({".gitignore": b"!\n\xff\xfe\n[z-a]\n///\ngen.py\n", "gen.py": "", "a.py": ""})
    assert found() == ["a.py"]


def test_a_directory_called_like_a_file(tree) -> None:
    tree({"x.py/inner.py": "", "y.py": ""})
    assert found() == ["y.py", "x.py/inner.py"]
    assert found("x.py") == ["x.py/inner.py"]


def test_links(tree, tmp_path: Path) -> None:
    tree({"pkg/a.py": "", "elsewhere.txt": ""})
    os.symlink(tmp_path, tmp_path / "pkg" / "loop")
    os.symlink("loop2", tmp_path / "pkg" / "loop2")
    os.symlink("a.py", tmp_path / "pkg" / "again.py")
    os.symlink("../elsewhere.txt", tmp_path / "pkg" / "linked.py")
    os.symlink("user@host.1", tmp_path / "pkg" / ".#a.py")
    os.symlink(tmp_path / "pkg", tmp_path / "dir.py")
    assert found() == ["pkg/a.py", "pkg/linked.py"]


def test_a_link_that_leads_nowhere_is_an_error(tree, tmp_path: Path) -> None:
    tree({"a.py": ""})
    os.symlink("gone.py", tmp_path / "broken.py")
    os.symlink("self.py", tmp_path / "self.py")
    result = discover(["."], Resolver(validate, Config()))
    assert [target.path for target in result.targets] == ["a.py"]
    assert result.errors[0] == "broken.py: No such file or directory"
    assert result.errors[1].startswith("self.py: Too many levels")


def test_what_is_no_regular_file_is_not_opened(tree, tmp_path: Path) -> None:
    tree({"a.py": ""})
    os.mkfifo(tmp_path / "pipe.py")
    assert found() == ["a.py"]
    for path in ("pipe.py", "/dev/null"):
        result = discover([path], Resolver(validate, Config()))
        assert result.targets == []
        assert [line.partition(" (")[0] for line in result.errors] == [f"{path}: neither a file nor a directory"]


def test_a_pipe_called_like_an_ignore_file_or_a_configuration_is_not_opened(tree, tmp_path: Path) -> None:
    tree({"a.py": ""})
    os.mkfifo(tmp_path / ".gitignore")
    os.mkfifo(tmp_path / "pyproject.toml")
    assert [target.path for target in discover(["."], Resolver(validate)).targets] == ["a.py"]


def test_an_empty_path_is_no_directory(tree) -> None:
    tree({"a.py": ""})
    result = discover([""], Resolver(validate, Config()))
    assert (result.targets, result.errors) == ([], ["'': No such file or directory"])


def test_dots_behind_a_link_lead_where_the_link_leads(tree, tmp_path: Path) -> None:
    tree({"a.py": "", "b/a.py": "", "b/c/d.py": ""})
    os.symlink("b/c", tmp_path / "link")
    assert found("link/../a.py") == [str(tmp_path / "b" / "a.py")]
    assert found("b/../a.py") == ["a.py"]
    assert discover(["gone/../a.py"], Resolver(validate, Config())).errors == [
        "gone/../a.py: No such file or directory"
    ]


def test_of_several_links_to_one_file_one_is_taken(tree, tmp_path: Path) -> None:
    tree({"elsewhere.txt": ""})
    for name in ("x.py", "y.py", "named.py"):
        os.symlink("elsewhere.txt", tmp_path / name)
    assert found() == ["named.py"]
    assert found("y.py", ".") == ["y.py"]


def test_many_links_take_time_in_proportion(tree, tmp_path: Path) -> None:
    def work(size: int) -> Work:
        folder = f"pkg{size}"
        if not (tmp_path / folder).exists():
            tree({f"{folder}/f{number}.py": "" for number in range(size)})
            for number in range(size):
                os.symlink(f"f{number}.py", tmp_path / folder / f"link{number}.py")

        def discover_all() -> None:
            assert len(found(folder)) == size

        return discover_all

    assert growth_of_time(work, 100, 800) < QUADRATIC


def test_a_byte_order_mark_in_an_ignore_file(tree) -> None:
    tree({".git/HEAD": "", ".gitignore": "\ufeffa.py\n", "a.py": "", "b.py": ""})
    assert found() == ["b.py"]


def test_a_directory_whose_name_begins_with_two_dots_is_inside(tree) -> None:
    tree({"..data/a.py": "", "..data/b.py": ""})
    assert found(extend_exclude=("/..data/a.py",)) == ["..data/b.py"]


def test_missing_paths_are_errors_and_the_rest_goes_on(tree) -> None:
    tree({"a.py": ""})
    result = discover(["nope", "a.py/x", "a.py", "nul\0"], Resolver(validate, Config()))
    assert [target.path for target in result.targets] == ["a.py"]
    assert result.errors[:2] == ["nope: No such file or directory", "a.py/x: Not a directory"]
    assert "null" in result.errors[2]


def test_an_unreadable_directory_is_an_error(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree({"a.py": "", "closed/b.py": ""})
    scandir = os.scandir

    def refuse(path: str):
        if os.path.basename(path) == "closed":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    result = discover(["."], Resolver(validate, Config()))
    assert [target.path for target in result.targets] == ["a.py"]
    assert result.errors == ["closed: Permission denied"]


def test_a_file_whose_directory_cannot_be_entered_is_an_error(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree({"a.py": "", "b.py": ""})
    scandir = os.scandir

    class Refused:
        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name, self.is_dir, self.is_symlink = entry.name, entry.is_dir, entry.is_symlink
            self.is_file = entry.is_file

        def stat(self) -> os.stat_result:
            raise PermissionError(13, "Permission denied", self.name)

    @contextmanager
    def refuse(path: str):
        with scandir(path) as entries:
            yield [Refused(entry) if entry.name == "a.py" else entry for entry in entries]

    monkeypatch.setattr(os, "scandir", refuse)
    result = discover(["."], Resolver(validate, Config()))
    assert [target.path for target in result.targets] == ["b.py"]
    assert result.errors == ["a.py: Permission denied"]


def test_deep_directories(tree, tmp_path: Path) -> None:
    deep = "/".join(["d"] * 400)
    tree({f"{deep}/x.py": ""})
    assert found() == [f"{deep}/x.py"]


def test_the_nearest_configuration_holds(tree) -> None:
    tree(
        {
            "pyproject.toml": '[tool.devlint]\nextend-exclude = ["skip.py"]\n',
            "skip.py": "",
            "sub/pyproject.toml": "[tool.devlint]\n",
            "sub/skip.py": "",
            "other/pyproject.toml": "[tool.ruff]\n",
            "other/skip.py": "",
        }
    )
    result = discover(["."], Resolver(validate))
    assert [target.path for target in result.targets] == ["sub/skip.py"]


def test_a_broken_configuration_below_costs_its_directory_and_says_so(tree) -> None:
    tree({"a.py": "", "sub/pyproject.toml": "[tool.devlint]\nselct = []\n", "sub/b.py": "", "z/c.py": ""})
    result = discover(["."], Resolver(validate))
    assert [target.path for target in result.targets] == ["a.py", "z/c.py"]
    assert "did you mean 'select'" in result.errors[0]
