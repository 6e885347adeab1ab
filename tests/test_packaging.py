"""What is built, what it needs, and that the README's commands are the ones that CI runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import devlint

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(devlint.__file__).parents[1]
TEST_COMMAND = "python -m pip install -c constraints.txt -e '.[test]' && python -m pytest -n auto"
SLOW_COMMAND = "python -m pytest -n auto -m slow"


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    with open(ROOT / "pyproject.toml", "rb") as stream:
        return tomllib.load(stream)["project"]


def name(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement)[0].lower().replace("_", "-")


def test_the_base_is_small_and_has_no_torch(project: dict[str, Any]) -> None:
    assert {name(requirement) for requirement in project["dependencies"]} == {
        "click",
        "libcst",
        "msgspec",
        "pathspec",
        "pyyaml",
        "rich",
        "tomli",
    }
    assert [name(requirement) for requirement in project["optional-dependencies"]["audit"]] == ["torch"]


def test_the_constraints_pin_all_that_is_asked_for(project: dict[str, Any]) -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {name(line): line.partition(";")[0].partition("==")[2].strip() for line in lines if "==" in line}
    assert pinned["torch"] == "2.13.0"
    assert pinned["libcst"] == "1.9.0"
    asked = {name(requirement) for requirement in project["dependencies"]}
    asked |= {name(requirement) for group in project["optional-dependencies"].values() for requirement in group}
    assert asked <= pinned.keys()


def test_ci_runs_exactly_the_readmes_test_commands(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count(TEST_COMMAND) == readme.count(SLOW_COMMAND) == 1
    # A stand-in for Python makes a virtual environment whose `python` only writes down what it was asked to do.
    log = tmp_path / "log"
    fake = tmp_path / "python3"
    fake.write_text(
        "#!/bin/sh\n"
        'mkdir -p "$3/bin"\n'
        f'printf \'#!/bin/sh\\necho "$@" >> {log}\\n\' > "$3/bin/python"\n'
        'chmod +x "$3/bin/python"\n'
        'printf "PATH=$3/bin:\\$PATH" > "$3/bin/activate"\n'
    )
    fake.chmod(0o755)
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    done = subprocess.run(
        [bash, ROOT / ".ci" / "run"], env={**os.environ, "PYTHON": str(fake)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"+ {TEST_COMMAND}\n+ {SLOW_COMMAND}\n"
    install, fast = "-m pip install -c constraints.txt -e .[test]", "-m pytest -n auto"
    assert log.read_text().splitlines() == [install, fast, f"{fast} -m slow"]


def test_the_wheel_has_the_data_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for entry in ("devlint", "tools", "pyproject.toml", "README.md", "LICENSE"):
        path = ROOT / entry
        if path.is_dir():
            shutil.copytree(path, source / entry, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source / entry)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", tmp_path, source],
        capture_output=True,
        text=True,
    )
    if "No matching distribution found" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("devlint-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(f"devlint-{devlint.__version__}.dist-info/METADATA").decode()
        entry_points = archive.read(f"devlint-{devlint.__version__}.dist-info/entry_points.txt").decode()
        archive.extractall(tmp_path / "installed")
    assert "devlint/py.typed" in names
    kinds = ("json", "jinja", "css", "js")
    data = {str(path.relative_to(ROOT)) for kind in kinds for path in ROOT.glob(f"devlint/**/*.{kind}")}
    assert {os.path.splitext(name)[1][1:] for name in data} == {*kinds}
    modules = {str(path.relative_to(ROOT)) for path in ROOT.glob("devlint/**/*.py")}
    assert data | modules <= set(names)
    assert {entry.split("/")[0] for entry in names} == {"devlint", f"devlint-{devlint.__version__}.dist-info"}
    assert "devlint = devlint.__main__:main" in entry_points
    assert "[pytest11]\ndevlint = devlint.testing\n" in entry_points
    assert "License-Expression: MIT" in metadata
    assert "device_audit(h2d_per_step=None" in markers(tmp_path / "installed")
    assert "Requires-Python: >=3.10" in metadata


def markers(installed: Path) -> str:
    """What pytest knows of markers where that devlint is installed, and nothing is said about plugins."""
    command = [sys.executable, "-m", "pytest", "--markers", "-c", os.devnull, "--rootdir", "."]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(command, cwd=installed, env=environment, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def test_every_package_is_found() -> None:
    """A folder without `__init__.py` would be left out of the registry without a word."""
    lost = [
        str(path.parent.relative_to(ROOT))
        for path in ROOT.glob("devlint/**/*.py")
        if not (path.parent / "__init__.py").exists()
    ]
    assert not lost
