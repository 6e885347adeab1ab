"""Of a copy of another project, which keeps its licence, only errors are told to those who select no rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_cli import run

OLD = """\
import torch
from torch.cuda.amp import autocast

x = torch.ones(3, 3)
x.cuda()
with autocast():
    print(x @ x)
"""


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "LICENSE").write_text("MIT\n")
    folder = tmp_path / "application" / "yolo"
    (folder / "models").mkdir(parents=True)
    (folder / "README.md").write_text("# Yolo\n")
    (folder / "LICENSE.txt").write_text("GPL\n")
    (folder / "models" / "old.py").write_text(OLD)
    return folder


def codes(*options: str) -> list[str]:
    shown = run("--output-format", "concise", *options).stdout
    return [line.split()[1] for line in shown.splitlines() if ".py:" in line]


def test_what_warns_in_a_copy_is_for_those_who_select_the_rule(copy: Path) -> None:
    """Seen in MQBench: a whole detector, as an example of what it quantizes."""
    assert codes(".") == ["DVL102"]
    assert codes("--select", "DVL701", ".") == ["DVL701"]


def test_what_can_be_installed_is_a_copy_if_somebody_else_licenses_it(copy: Path) -> None:
    """Seen in Llama-AVSR: a whole toolkit, with its setup.py."""
    (copy / "setup.py").write_text("setup()\n")
    assert codes(".") == ["DVL102"]


def test_what_alone_has_a_licence_is_a_copy(copy: Path) -> None:
    (copy.parents[1] / "LICENSE").unlink()
    assert codes(".") == ["DVL102"]


@pytest.mark.parametrize(("name", "told"), [("yolo-main", False), ("yolo-master", False), ("yolo-v2", True)])
def test_what_was_downloaded_into_a_project_is_a_copy(copy: Path, name: str, told: bool) -> None:
    """Seen in a benchmark of generators for tables: each of them in a folder called as its archive is."""
    (copy / "LICENSE.txt").unlink()
    copy.rename(copy.parent / name)
    assert codes(".") == (["DVL102", "DVL701"] if told else ["DVL102"])


def test_a_project_that_was_downloaded_itself_is_no_copy(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = copy.parents[1]
    (root / "LICENSE").unlink()
    (root / ".git").rmdir()
    (copy / "LICENSE.txt").unlink()
    here = copy.rename(copy.parent / "yolo-main")
    monkeypatch.chdir(here)
    assert codes(".") == ["DVL102", "DVL701"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("LICENSE", " MIT\n\n"),
        ("license.py", "GPL = 3\n"),
        ("COPYING", "Apache\nCopyright 2021 The Example Authors\n"),
    ],
)
def test_what_has_the_same_licence_or_the_same_holder_is_no_copy(copy: Path, name: str, text: str) -> None:
    (copy.parents[1] / "LICENSE").write_text("MIT\n" if name != "COPYING" else "MIT\nCopyright (c) 2023 Example Lab\n")
    (copy / "LICENSE.txt").unlink()
    (copy / name).write_text(text)
    assert codes(".") == ["DVL102", "DVL701"]


def test_a_repository_of_its_own_is_no_copy(copy: Path) -> None:
    (copy / ".git").mkdir()
    assert codes(".") == ["DVL102", "DVL701"]


OWN_SETUP = 'from setuptools import setup\n\nsetup(name="diffusers", packages=["diffusers"])\n'


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "super-resolution"
    (project / "src/diffusers/pipelines").mkdir(parents=True)
    monkeypatch.chdir(project)
    (project / "README.md").write_text("# Super-resolution\n\n    pip install -e .\n")
    (project / "src/diffusers/__init__.py").write_text("")
    (project / "src/diffusers/pipelines/old.py").write_text(OLD)
    return project


def test_of_a_whole_library_nothing_is_told(library: Path) -> None:
    """Seen in RollingDepth and InvSR, where its own setup.py lies as well."""
    assert codes(".") == []
    (library / "setup.py").write_text(OWN_SETUP)
    assert codes(".") == []
    assert codes("--select", "DVL102", ".") == ["DVL102"]


def test_the_library_itself_is_told_all(library: Path) -> None:
    (library / "setup.py").write_text(OWN_SETUP)
    (library / "README.md").write_text("# Diffusers\n\n    pip install --upgrade diffusers[torch]\n")
    assert sorted(codes(".")) == ["DVL102", "DVL701"]


def test_a_fork_is_told_all(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fork = library.rename(library.parent / "diffusers-fast")
    monkeypatch.chdir(fork)
    assert sorted(codes(".")) == ["DVL102", "DVL701"]


def test_a_folder_that_is_no_package_is_no_library(library: Path) -> None:
    """Seen in Large-Scale-Medical: what uses the library is in a folder of its name."""
    (library / "src/diffusers/__init__.py").unlink()
    assert sorted(codes(".")) == ["DVL102", "DVL701"]
