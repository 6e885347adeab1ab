"""The compiled devlint is built where it can be, and only what it does itself is measured as its own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tests.benchmarks import __main__ as command
from tests.benchmarks import compiled, corpora, kept, tools
from tests.benchmarks.kept import ALONE, AST, COLD, COMPILED, WARM
from tests.benchmarks.measure import CommandFailedError

pytestmark = pytest.mark.slow
NEVER_LOADED = f"devlint/server/protocol{EXTENSION_SUFFIXES[0]}"
"""``devlint check`` has no use for this module: nothing happens if a file that is no library stands for it."""
posix = pytest.mark.skipif(os.name != "posix", reason="elsewhere a compiler is looked for by setuptools")
wait4 = pytest.mark.skipif(not hasattr(os, "wait4"), reason="this platform does not say what a child process cost")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the compiled devlint is looked for; what is there was not compiled, and looks as if it had been."""
    made = compiled.place(tmp_path / "cache" / "environments")
    shutil.copytree(compiled.REPOSITORY / "devlint", made / "devlint", ignore=shutil.ignore_patterns("__pycache__"))
    (made / NEVER_LOADED).touch()
    return made


def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """What the benchmark of the compiled devlint exits with, on two lines."""
    monkeypatch.setattr(kept, "FIGURES", tmp_path / "figures")
    options = ["--only", "small", "--tools", "compiled", "--rounds", "1", "--cache", str(tmp_path / "cache")]
    monkeypatch.setattr(sys, "argv", ["x", *options])
    return command.main()


def shares(environments: Path) -> tools.Tool:
    (found,) = (tool for tool in tools.tools(environments, 2) if tool.name == COMPILED.format(ALONE.format(2)))
    return found


@wait4
def test_what_is_measured_is_the_devlint_of_the_folder(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert measured(tmp_path, monkeypatch) == 0
    assert [row.tool for row in kept.load("small")] == [AST, COMPILED.format(COLD), COMPILED.format(WARM)]
    tool = shares(folder.parent)
    (tmp_path / "two.py").write_text(corpora.TWO_LINES, encoding="utf-8")
    tool.cost(corpora.Corpus("x", tmp_path / "two.py", 1, 2), tmp_path)
    assert tool.after is not None
    tool.after()
    # the same, if it finds the devlint of the repository
    astray = replace(tool, variables={**tool.variables, "PYTHONPATH": str(compiled.REPOSITORY)})
    astray.cost(corpora.Corpus("x", tmp_path / "two.py", 1, 2), tmp_path)
    with pytest.raises(CommandFailedError, match=f"but {compiled.REPOSITORY / 'devlint'}$"):
        tool.after()


@wait4
def test_a_library_that_this_python_does_not_load_is_noticed(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "devlint" / "flow" / "engine" / "engine.cpython-27-other.so").touch()
    assert measured(tmp_path, monkeypatch) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "error: not the compiled devlint was measured, but engine.py"
    assert kept.load("small") == []


@wait4
def test_nothing_compiled_is_noticed(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / NEVER_LOADED).unlink()
    assert measured(tmp_path, monkeypatch) == 2


@posix
@wait4
def test_without_a_compiler_the_rest_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -pthread")
    assert measured(tmp_path, monkeypatch) == 2
    complaint, *rest = capsys.readouterr().err.splitlines()
    reason = "there is no C compiler (no-such-compiler)"
    assert complaint == f"error: devlint cannot be compiled: {reason}; the rest is measured"
    assert len(rest) == 3
    assert [row.tool for row in kept.load("small")] == [AST]
    assert not (tmp_path / "cache" / "environments").exists()


def builder(tmp_path: Path, code: str) -> Callable[[], None]:
    """A build with a program in the place of the compiler."""
    (tmp_path / "tools" / "compiling").mkdir(parents=True)
    for package in ("tools", "tools/compiling"):
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "tools" / "compiling" / "__main__.py").write_text(f"import pathlib, sys\n{code}\n", encoding="utf-8")
    return lambda: compiled.build(tmp_path / "environments")


def test_it_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "REPOSITORY", tmp_path)
    monkeypatch.setattr(compiled, "missing", str)
    build = builder(tmp_path, "pathlib.Path(sys.argv[1]).mkdir(); open('log', 'a').write('built')")
    build()
    build()
    assert list((tmp_path / "environments").iterdir()) == [compiled.place(tmp_path / "environments")]
    assert (tmp_path / "log").read_text(encoding="utf-8") == "built"


def test_a_build_that_fails_leaves_nothing_and_gives_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "REPOSITORY", tmp_path)
    monkeypatch.setattr(compiled, "missing", str)
    failing = "import subprocess; pathlib.Path(sys.argv[1]).mkdir()\n"
    failing += "subprocess.run([sys.executable, '-c', 'raise OSError(\"Python.h is missing\")'], check=True)"
    with pytest.raises(CommandFailedError, match=r"^devlint cannot be compiled: OSError: Python.h is missing$"):
        builder(tmp_path, failing)()
    assert list((tmp_path / "environments").iterdir()) == []


def test_the_reason_of_a_build_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "REPOSITORY", tmp_path)
    monkeypatch.setattr(compiled, "missing", str)
    failing = "sys.exit('error: devlint cannot be compiled: x.c:1: error: no')"
    with pytest.raises(CommandFailedError, match=r"^devlint cannot be compiled: x.c:1: error: no$"):
        builder(tmp_path, failing)()


@pytest.mark.parametrize("changed", ["devlint/flow/x.py", "devlint/table.json", "tools/compiling/build.py"])
def test_other_sources_are_compiled_again(tmp_path: Path, changed: str) -> None:
    for path in (changed, "devlint/__init__.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("1", encoding="utf-8")

    def name() -> str:
        compiled.place.cache_clear()
        return compiled.place(tmp_path, tmp_path).name

    before = name()
    for by_the_way in ("devlint/__pycache__/x.cpython-311.pyc", "devlint/flow/x.so", "tools/other.py"):
        (tmp_path / by_the_way).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / by_the_way).touch()
    assert name() == before
    (tmp_path / changed).write_text("2", encoding="utf-8")
    assert name() != before
