"""What comes out of the cache is, byte for byte, what a run without it finds."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from devlint.config.schema import OUTPUT_FORMATS
from tests.check.cache.conftest import Run
from tests.notebooks import notebook

FIXTURES = Path(__file__).parents[3] / "fixtures"
PROJECTS = sorted(path.name for path in (FIXTURES / "projects").iterdir() if path.is_dir())
VIEWS = [*(("--output-format", name) for name in OUTPUT_FORMATS), ("--statistics",)]
HELPER = """\
import torch


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.ones(3)

    def forward(self, x):
        return x * self.scale


def {name}(*arguments, **more):
    return torch.ones(3)
"""


def same(run: Run, *arguments: str, times: int = 1) -> str:
    """The report of a run, which is the same with the cache and without."""
    without = run(*arguments, "--no-cache")
    for _ in range(times):
        within = run(*arguments)
        assert (within.stdout, within.stderr, within.exit_code) == (without.stdout, without.stderr, without.exit_code)
    return without.stdout


@pytest.mark.slow
def test_every_fixture(run: Run, tmp_path: Path, checked: list[str]) -> None:
    shutil.copytree(FIXTURES / "rules", tmp_path / "rules", dirs_exist_ok=True)
    assert len(same(run, "rules", "--isolated", "--select", "ALL", times=2)) > 100_000
    without = run("rules", "--isolated", "--output-format", "json", "--no-cache").stdout
    checked.clear()
    assert run("rules", "--isolated", "--output-format", "json").stdout == without
    assert not checked


@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
def test_every_format(run: Run, tmp_path: Path, tree, checked: list[str], view: tuple[str, ...]) -> None:
    for rule in ("DVL102_discarded_move", "DVL301_missing_pin_memory"):
        shutil.copytree(FIXTURES / "rules" / rule, tmp_path / rule)
    tree({"cells.ipynb": notebook("import torch\n\nx = torch.ones(3)\n", "x.cuda()\n"), "broken.py": "def f(:\n"})
    assert "DVL102" in same(run, ".", "--isolated", *view, times=2)
    checked.clear()
    run(".", "--isolated", *view)
    assert not checked


def test_what_narrows_a_report(run: Run, tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "rules" / "DVL102_discarded_move", tmp_path / "rules")
    same(run, "rules", "--fail-on", "info")
    run("rules", "--select", "DVL102", "--baseline", "known.json", "--update-baseline")
    assert "No problems" in same(run, "rules", "--baseline", "known.json")
    (bad,) = (tmp_path / "rules").glob("bad.py")
    text = bad.read_text(encoding="utf-8")
    bad.write_text(f"{text}\n\ndef more(x: torch.Tensor):\n    x.cuda()\n", encoding="utf-8")
    assert "Found 1 problem" in same(run, "rules", "--baseline", "known.json", "--select", "DVL102")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_what_changed_since_a_revision(run: Run, tree, checked: list[str]) -> None:
    code = "import torch\n\n\ndef go(x: torch.Tensor):\n    x.cuda()\n"
    tree({"a.py": code, "b.py": code, "run.sh": "go more\n", ".gitignore": ".devlint_cache\n"})
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "--quiet"], ["add", "-A"], ["commit", "--quiet", "-m", "x"]):
        subprocess.run(["git", *identity, *command], check=True, timeout=60)
    assert same(run, ".", "--isolated", "--output-format", "concise").count("DVL102") == 2
    tree({"a.py": f"{code}\n\ndef more(x: torch.Tensor):\n    x.cpu()\n"})
    checked.clear()
    assert run(".", "--isolated", "--since", "HEAD", "--output-format", "concise").stdout.count("DVL102") == 1
    assert checked == ["a.py"]
    assert same(run, ".", "--isolated", "--since", "HEAD", "--output-format", "concise").count("DVL102") == 1
    assert same(run, ".", "--isolated", "--output-format", "concise").count("DVL102") == 3


@pytest.mark.slow
@pytest.mark.parametrize("project", PROJECTS)
def test_whatever_happens_to_a_file_of_a_project(run: Run, tmp_path: Path, project: str) -> None:
    root = tmp_path / project
    shutil.copytree(FIXTURES / "projects" / project, root)
    arguments = (project, "--isolated", "--select", "ALL", "--output-format", "json")
    before = same(run, *arguments)
    reports = set()
    for file in sorted(root.rglob("*.py")):
        for _ in _mishaps(file):
            reports.add(same(run, *arguments))
        assert same(run, *arguments) == before
    assert len(reports) > 1


def test_modules_that_were_missing_appear(run: Run, tmp_path: Path, checked: list[str]) -> None:
    root = tmp_path / "project"
    shutil.copytree(FIXTURES / "projects" / "package", root)
    arguments = ("project", "--isolated", "--output-format", "json")
    before = same(run, *arguments)
    names = sorted({path.stem for path in root.rglob("*.py")} - {"__init__"})
    for folder in sorted({path.parent for path in root.rglob("*.py")}):
        for new in [folder / f"{name}.py" for name in names] + [folder / "__init__.py", folder / "pyproject.toml"]:
            if not new.exists():
                new.write_text("" if new.suffix == ".toml" else HELPER.format(name=new.stem), encoding="utf-8")
                same(run, *arguments)
                new.unlink()
        for name in names:
            if not (folder / name).exists():
                (folder / name).mkdir()
                (folder / name / "__init__.py").write_text(HELPER.format(name=name), encoding="utf-8")
                same(run, *arguments)
                shutil.rmtree(folder / name)
    assert same(run, *arguments) == before


def _mishaps(file: Path) -> Iterator[None]:
    """Change a file in one way after the other; it is as before in the end."""
    data, status = file.read_bytes(), file.stat()
    for changed in (
        b"def broken(:\n",
        data + b"\nimport torch\ntorch.set_default_device('cuda')\n",
        data.replace(b"cpu", b"mps").replace(b"cuda", b"cpu ").replace(b"torch.ones", b"torch.rand"),
    ):
        file.write_bytes(changed)
        # whoever sets the time back, as some programs do that copy files, deceives nobody
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        yield
    file.unlink()
    yield
    file.mkdir()
    yield
    file.rmdir()
    moved = file.with_name("elsewhere.py")
    moved.write_bytes(data)
    yield
    moved.rename(file)


def test_what_few_ask_for_is_named_again(tree, run: Run) -> None:
    tree({"a.py": "import torch\n\ndef f(x):\n    return x.cuda()\n"})
    for _ in range(2):
        assert "DVL601 hardcoded-cuda-call: a.py:4" in same(run, ".")
    assert same(run, ".", "--output-format", "json").strip() == "[]"
    assert "few want" not in same(run, ".", "--select", "DVL601", "--exit-zero")
