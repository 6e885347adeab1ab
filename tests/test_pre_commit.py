"""The hooks, run by the real pre-commit program in a scratch git repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import devlint

yaml = pytest.importorskip("yaml", reason="comes with pre-commit")
pytest.importorskip("pre_commit")

ROOT = Path(devlint.__file__).parents[1]
# A finding that needs no rule but devlint's own.
BAD = "x = 1  # devlint: ignore[DVL900, nonsense]\n"


def manifest() -> list[dict[str, Any]]:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert isinstance(hooks, list)
    return hooks


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    repository = tmp_path / "scratch"
    repository.mkdir()
    git(repository, "init", "--quiet")
    return repository


def git(repository: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=repository, check=True, env=environment(), capture_output=True)


def environment() -> dict[str, str]:
    # Run from a git hook, these would point pre-commit at the wrong repository.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**kept, "PATH": os.pathsep.join([os.path.dirname(sys.executable), kept.get("PATH", "")])}


def pre_commit(repository: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", *arguments],
        cwd=repository,
        env={**environment(), "PRE_COMMIT_HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def test_the_manifest_says_what_pre_commit_needs() -> None:
    (hook,) = [hook for hook in manifest() if hook["id"] == "devlint"]
    assert hook["language"] == "python"
    assert hook["require_serial"] is True, "each batch would read the same imports again"
    assert hook["types_or"] == ["python", "jupyter"]
    assert hook["entry"].split()[:2] == ["devlint", "check"]


def test_the_hook_runs_once_over_what_is_staged(scratch: Path, tmp_path: Path) -> None:
    """The hook as its manifest describes it, with the devlint that is installed here."""
    (hook,) = [hook for hook in manifest() if hook["id"] == "devlint"]
    local = {**hook, "language": "system", "verbose": True, "entry": f"{sys.executable} -m {hook['entry']}"}
    config = {"repos": [{"repo": "local", "hooks": [local]}]}
    (scratch / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (scratch / "pyproject.toml").write_text('[tool.devlint]\nextend-exclude = ["generated"]\n')
    (scratch / "generated").mkdir()
    (scratch / "generated" / "a.py").write_text(BAD)
    for number in range(300):
        (scratch / f"clean{number}.py").write_text("x = 1\n")
    (scratch / "notes.txt").write_text(BAD)
    git(scratch, "add", ".")
    clean = pre_commit(scratch, tmp_path / "home", "run", "devlint", "--all-files")
    assert clean.returncode == 0, clean.stdout + clean.stderr
    assert clean.stdout.count("No problems in 300 files.") == 1, "one process over all files, not one per batch"

    (scratch / "bad.py").write_text(BAD)
    git(scratch, "add", "bad.py")
    dirty = pre_commit(scratch, tmp_path / "home", "run", "devlint")
    assert dirty.returncode == 1
    assert "bad.py:1:8" in dirty.stdout
    assert "generated" not in dirty.stdout
    assert "notes.txt" not in dirty.stdout


@pytest.mark.slow
@pytest.mark.network
def test_the_repository_can_be_tried(scratch: Path, tmp_path: Path) -> None:
    """`pre-commit try-repo` installs devlint from a clone of its repository, as any user's pre-commit does."""
    clone = tmp_path / "devlint"
    clone.mkdir()
    for entry in ("devlint", "tools", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        path = ROOT / entry
        if path.is_dir():
            shutil.copytree(path, clone / entry, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, clone / entry)
    git(clone, "init", "--quiet")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "devlint")
    (scratch / "bad.py").write_text(BAD)
    (scratch / "good.py").write_text("x = 1\n")
    git(scratch, "add", ".")
    done = pre_commit(scratch, tmp_path / "home", "try-repo", str(clone), "devlint", "--all-files")
    if "No matching distribution found" in done.stdout + done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "bad.py:1:8" in done.stdout
    assert "good.py" not in done.stdout.split("DVL901", 1)[1]
