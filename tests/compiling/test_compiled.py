"""A compiled wheel is built from a checkout, and finds what the sources find."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import devlint
from tests.benchmarks.compiled import missing
from tools.compiling.build import CompilingError, build
from tools.compiling.selected import modules

ROOT = Path(devlint.__file__).parents[1]
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
COPIED = ("devlint", "tests", "fixtures", "tools", "docs", "pyproject.toml", "README.md", "LICENSE", "CONTRIBUTING.md")
pytestmark = pytest.mark.slow
REAL = ("accelerate", "ignite", "lightning", "torchmetrics")
"""Projects that the tests install."""


def run(*command: str | Path, folder: Path, timeout: int = 600, **variables: str) -> subprocess.CompletedProcess[str]:
    """Python, for which ``folder`` is where devlint is."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "DEVLINT_NO_CACHE": "1", **variables}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", folder, ROOT],
        env={**os.environ, "HATCH_BUILD_HOOK_ENABLE_CUSTOM": "1"}, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    if "No matching distribution found" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def compiled(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository, with what the wheel has in the place of its ``devlint``."""
    folder = tmp_path_factory.mktemp("compiled")
    for name in COPIED:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, folder / name)
    shutil.rmtree(folder / "devlint")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_the_wheel_has_both_and_is_for_this_python_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("devlint/**/*.py")]
    selected = [path.relative_to(ROOT).as_posix() for path in modules(ROOT)]
    libraries = {name for name in names if name.endswith(SUFFIX)}
    assert names.issuperset(sources)
    assert libraries == {f"{name.removesuffix('.py')}{SUFFIX}" for name in selected} | {f"devlint__mypyc{SUFFIX}"}
    assert f"-cp{sys.version_info[0]}{sys.version_info[1]}-" in wheel.name
    assert "none-any" not in wheel.name


def test_it_says_that_it_is_compiled(compiled: Path) -> None:
    assert run("-m", "devlint", "--version", folder=compiled).stdout == f"devlint {devlint.__version__} (compiled)\n"
    assert run("-m", "devlint", "--version", folder=ROOT).stdout == f"devlint {devlint.__version__}\n"


def test_the_sources_in_the_wheel_are_those_that_people_wrote(compiled: Path) -> None:
    for path in modules(ROOT):
        assert (compiled / path.relative_to(ROOT)).read_bytes() == path.read_bytes()


def test_it_passes_the_tests_of_the_linter(compiled: Path) -> None:
    parts = ["tests/flow", "tests/rules", "tests/check", "tests/test_fixtures.py"]
    done = run("-m", "pytest", "-q", "-n", "auto", "-m", "", *parts, folder=compiled, timeout=900)
    assert done.returncode == 0, done.stdout[-5000:]
    assert "compiled modules call each other" in done.stdout, "these tests did not run with the compiled devlint"


def test_it_finds_the_same_in_real_code(compiled: Path, tmp_path: Path) -> None:
    specs = [importlib.util.find_spec(name) for name in REAL]
    folders = [os.path.dirname(spec.origin) for spec in specs if spec is not None and spec.origin]
    assert len(folders) == len(REAL)
    command = ["-m", "devlint", "check", "--isolated", "--select", "ALL", "--output-format", "json", "-j", "2"]
    wanted = run(*command, *folders, folder=ROOT)
    found = run(*command, *folders, folder=compiled)
    assert wanted.returncode == found.returncode == 1, wanted.stderr + found.stderr
    assert len(json.loads(wanted.stdout)) > 100
    assert json.loads(found.stdout) == json.loads(wanted.stdout)


DEEP = {
    "a sum": "    return " + "+".join(["x"] * 2_900),
    "calls": "    return x" + ".cuda()" * 2_900,
    "attributes": "    return x" + ".a" * 2_900,
    "items": "    return x" + "[0]" * 2_900,
    "negations": "    return " + "not " * 2_900 + "x",
    "choices": "    return " + "x if x else " * 2_900 + "x",
    "functions": "    return " + "lambda: " * 2_900 + "x.cuda()",
    "branches": "    if x: y = 1\n" + "".join(f"    elif x is {n}: y = x.cuda()\n" for n in range(900)),
    "brackets": "    return " + "[" * 90 + "x.cuda()" + "]" * 90,
    "too much": "    return " + "+".join(["x"] * 30_000),
}


@pytest.mark.parametrize("code", DEEP.values(), ids=DEEP)
def test_code_that_nests_deeply_does_not_end_it(compiled: Path, tmp_path: Path, code: str) -> None:
    file = tmp_path / "deep.py"
    file.write_text(f"import torch\n\n\ndef f(x, device):\n    x = x.to(device)\n{code}\n")
    command = ["-m", "devlint", "check", "--isolated", "--select", "ALL", "--output-format", "concise", str(file)]
    found, wanted = (run(*command, folder=folder) for folder in (compiled, ROOT))
    if sys.version_info[:2] == (3, 12) and "nested too deeply" in found.stdout:
        # it stops compiled code earlier, with an error that says so
        return
    assert (found.returncode, found.stdout, found.stderr) == (wanted.returncode, wanted.stdout, wanted.stderr)
    assert found.returncode in (0, 1)


@pytest.mark.parametrize(
    ("variables", "line"),
    [({"CC": "no-compiler"}, "No such file or directory: 'no-compiler'"), ({"CC": "false"}, "Command '['false', ")],
)
def test_a_build_that_fails_says_why_in_one_line(tmp_path: Path, variables: dict[str, str], line: str) -> None:
    done = run("-m", "tools.compiling", str(tmp_path / "made"), folder=ROOT, **variables)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: devlint cannot be compiled: ")
    assert line in done.stderr
    assert len(done.stderr) < 300
    assert done.stderr.count("\n") == 1


def test_a_build_finds_what_pip_installs_for_it_alone(tmp_path: Path) -> None:
    """Where a build needs a package, pip puts it into a folder of that build, and the folder into this variable."""
    (tmp_path / "mypyc").mkdir()
    (tmp_path / "mypyc/__init__.py").touch()
    (tmp_path / "mypyc/build.py").write_text("raise ImportError('this is that of the build')")
    searched = os.pathsep.join([str(ROOT), str(tmp_path)])
    done = run("-m", "tools.compiling", str(tmp_path / "made"), folder=ROOT, PYTHONPATH=searched)
    assert done.stderr == "error: devlint cannot be compiled: this is that of the build\n"


def test_sources_that_cannot_be_rewritten_stop_a_build_with_the_reason(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "devlint", tmp_path / "devlint", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "devlint/sites/base.py").open("a") as file:
        file.write("\n\n@dataclass(order=True)\nclass Ordered:\n    x: int\n")
    with pytest.raises(
        CompilingError, match=r"^devlint cannot be compiled: what a dataclass does with order is not known"
    ):
        build(tmp_path / "made", tmp_path)


def test_nothing_that_is_there_is_compiled_into(tmp_path: Path) -> None:
    (tmp_path / "devlint").mkdir()
    done = run("-m", "tools.compiling", str(tmp_path), folder=ROOT)
    assert (done.returncode, done.stdout) == (1, "")
    assert "exists" in done.stderr
    assert list((tmp_path / "devlint").iterdir()) == []
