"""What is checked again: whatever hangs on a change, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from devlint.check.project import content
from tests.check.cache.conftest import Run

LOW = "import torch\n\n\ndef mask(size):\n    return torch.ones(size)\n"
MOVED = "import torch\n\n\ndef mask(size):\n    return torch.ones(size).cuda()\n"
USE = """\
import torch
from {module} import mask


def use(x: torch.Tensor, device):
    return x.to(device) + mask(3)
"""


@pytest.fixture
def project(tree, run: Run, checked: list[str]):
    """``a`` imports from ``mid``, which has it from ``low``; ``b`` and ``alone`` do not."""
    tree({"a.py": USE.format(module="mid"), "mid.py": "from low import mask\n", "low.py": LOW})
    tree({"b.py": "import torch\nx = torch.ones(3).cuda()\n", "alone.py": "y = 1\n"})
    run(".", "--isolated", code=1)
    assert sorted(checked) == ["a.py", "alone.py", "b.py", "low.py", "mid.py"]
    checked.clear()

    def again(*arguments: str) -> list[str]:
        run(".", "--isolated", *arguments)
        found = sorted(checked)
        checked.clear()
        return found

    return again


def test_nothing_has_changed(project) -> None:
    assert project() == project("--output-format", "json") == project("--fail-on", "info") == []


def test_a_dependency_has_changed(project) -> None:
    Path("low.py").write_text(MOVED, encoding="utf-8")
    assert project() == ["a.py", "low.py"]
    assert project() == []
    Path("mid.py").write_text("from low import mask  # as it is\n", encoding="utf-8")
    assert project() == ["a.py", "mid.py"]
    Path("b.py").write_text("", encoding="utf-8")
    assert project() == ["b.py"]


def test_a_dependency_is_gone_and_comes_back(project) -> None:
    os.rename("low.py", "kept.txt")
    assert project() == ["a.py"]
    os.rename("kept.txt", "low.py")
    assert project() == ["a.py", "low.py"]
    assert project() == []


def test_a_module_appears_that_was_looked_for(tree, project) -> None:
    tree({"c.py": USE.format(module="lacking")})
    assert project() == ["c.py"]
    tree({"unrelated.py": "z = 1\n"})
    assert project() == ["unrelated.py"]
    tree({"lacking.py": LOW})
    assert project() == ["c.py", "lacking.py"]
    # now two files could be meant
    tree({"src/lacking.py": LOW})
    assert project() == ["c.py", "src/lacking.py"]


def test_a_package_begins_to_hand_on_a_function(tree, run: Run) -> None:
    tree({"pkg/__init__.py": "", "pkg/mask.py": LOW, "a.py": USE.format(module="pkg")})
    assert run("a.py", "--isolated").exit_code == 0
    tree({"pkg/__init__.py": "from .mask import mask\n"})
    assert run("a.py", "--isolated").exit_code == 1


def test_the_root_of_the_project_moves(tree, run: Run) -> None:
    tree({"scripts/a.py": USE.format(module="lib.low"), "src/lib/low.py": LOW})
    assert run("scripts", "--isolated").exit_code == 0
    tree({"setup.py": ""})
    assert run("scripts", "--isolated").exit_code == 1


def test_a_new_time_alone_changes_nothing(project) -> None:
    for name in ("a.py", "low.py"):
        Path(name).touch()
    assert project() == []


@pytest.mark.skipif(os.name != "posix", reason="elsewhere the time of a change is that of its creation")
def test_a_time_that_was_set_back_deceives_nobody(project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_SETTLED", 0)
    Path("alone.py").touch()
    project()
    assert project() == []
    status = os.stat("alone.py")
    Path("alone.py").write_text("y = 2\n", encoding="utf-8")
    os.utime("alone.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert project() == ["alone.py"]


def test_a_file_that_has_just_been_written_is_read_again(project, monkeypatch: pytest.MonkeyPatch) -> None:
    # on a file system with a coarse clock, two changes in a row leave one time
    monkeypatch.setattr(content, "stamp_of", lambda _: content.Stamp(1, 1, 1))
    monkeypatch.setattr("devlint.check.cache.results.stamp_of", lambda _: content.Stamp(1, 1, 1))
    monkeypatch.setattr("time.time_ns", lambda: 2)
    Path("alone.py").write_text("y = 2\n", encoding="utf-8")
    assert project() == ["alone.py"]
    Path("alone.py").write_text("y = 3\n", encoding="utf-8")
    assert project() == ["alone.py"]


def test_a_file_that_has_settled_is_not_read_again(project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_SETTLED", 0)
    project()
    monkeypatch.setattr("devlint.check.cache.results.examine", lambda name: pytest.fail(name))
    assert project() == []


@pytest.mark.parametrize(
    "arguments",
    [("--select", "ALL"), ("--ignore", "DVL101"), ("--target-torch", "2.0"), ("--extend-select", "DVL401")],
)
def test_other_rules_are_other_results(project, arguments: tuple[str, ...]) -> None:
    assert len(project(*arguments)) == 5
    assert project(*arguments) == project() == []


def test_another_configuration_is_another_result(tree, run: Run, checked: list[str]) -> None:
    tree(
        {
            "src/a.py": "import torch\n\n\ndef go(a: torch.Tensor, device):\n    a.to(device)\n",
            "pyproject.toml": "[tool.devlint]\n",
        }
    )
    run("src", code=1)
    for table in ('severity = { DVL1 = "info" }', 'per-file-ignores = { "src/**" = ["DVL1", "DVL2"] }'):
        checked.clear()
        tree({"pyproject.toml": f"[tool.devlint]\n{table}\n"})
        run("src", code=0)
        run("src", code=0)
        assert checked == ["src/a.py"]


def test_a_path_that_is_written_differently_is_shown_so(project, run: Run, tmp_path: Path) -> None:
    for path in ("b.py", str(tmp_path / "b.py"), "../" + tmp_path.name + "/b.py"):
        for _ in range(2):
            (line,) = run(path, "--isolated", "--output-format", "concise", "--select", "DVL601").stdout.splitlines()
            assert line.startswith(f"{os.path.normpath(path)}:2:")


def test_other_files_are_named_from_where_one_stands(tree, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree({"pyproject.toml": "[tool.devlint]\n", "a/use.py": USE.format(module="x.low"), "x/low.py": LOW})
    (root / "y").mkdir()
    for folder, shown in (("x", "low.py"), ("y", os.path.join("..", "x", "low.py")), ("x", "low.py")):
        monkeypatch.chdir(root / folder)
        assert f"::: {shown}:5:" in run(os.path.join("..", "a", "use.py"), code=1).stdout


def test_a_file_that_could_not_be_read_is_tried_again(tree, run: Run) -> None:
    tree({"a.py": b"x = 1\n", "b.py": "y = 1\n"})
    run(".", "--isolated", code=0)
    os.unlink("b.py")
    os.mkdir("b.py")
    run("a.py", "b.py", "--isolated", code=0)
    assert run("a.py", "missing.py", "--isolated").exit_code == 2
    tree({"missing.py": "x = 1\n"})
    run("a.py", "missing.py", "--isolated", code=0)
