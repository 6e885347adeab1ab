"""Projects that nobody means to write: rings, very many files, very deep classes, and what only looks like a module."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from devlint.check.engine import check_paths
from devlint.check.outcome import Result
from devlint.config.schema import Config
from tests.growth import QUADRATIC, Work, growth, hang_guard

MOVES = """\
import torch
import torch.nn as nn


def to_gpu(x):
    return x.cuda()


class Base(nn.Module):
    def forward(self, x):
        return x.cuda()
"""


def uses(module: str) -> str:
    return f"import torch\nfrom {module} import to_gpu, Base\ny = to_gpu(torch.zeros(3)) + torch.zeros(3)\n"


def checked() -> Result:
    with hang_guard():
        return check_paths(["."], Config())


@pytest.fixture
def check_of(tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], Work]:
    """A check of these files, which are a project of their own."""

    def write(files: dict[str, str]) -> Work:
        folder = f"project{len(files)}"
        tree({f"{folder}/{name}": text for name, text in files.items()})

        def check() -> None:
            monkeypatch.chdir(tmp_path / folder)
            assert len(checked().checked) == len(files)

        return check

    return write


def mismatches(result: Result) -> list[str]:
    assert result.errors == []
    return [finding.filename for finding in result.findings if finding.code == "DVL101"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_called_like_a_module_is_not_opened(tree, tmp_path: Path) -> None:
    tree({"a.py": uses("moves"), "b.py": uses("package"), "package/x.txt": ""})
    os.mkfifo(tmp_path / "moves.py")
    os.mkfifo(tmp_path / "package" / "__init__.py")
    assert mismatches(checked()) == []


def test_what_only_looks_like_a_module(tree, tmp_path: Path) -> None:
    tree({"a.py": uses("moves"), "b.py": uses("ring.ring.ring.moves"), "moves.py/x.txt": "", "ring/moves.py": MOVES})
    os.symlink("../ring", tmp_path / "ring" / "ring")
    assert mismatches(checked()) == ["b.py"]


def test_a_package_called_torch(tree) -> None:
    tree({"torch/__init__.py": "from .nn import *\ndef zeros(n):\n    return n\n", "torch/nn.py": MOVES, "a.py": MOVES})
    assert len(checked().checked) == 3


def ring(size: int) -> dict[str, str]:
    following = [(n + 1) % size for n in range(size)]
    return {f"m{n}.py": f"from m{after} import *\n{uses(f'm{after}')}" for n, after in enumerate(following)}


def test_rings_of_imports_of_names_and_of_bases(tree) -> None:
    inherits = (
        "import torch\nfrom {0} import {1}\nclass {2}({1}):\n"
        "    def forward(self, x):\n        return x.cuda() + self.y\n"
    )
    bases = {
        "a.py": inherits.format("b", "B", "A"),
        "b.py": inherits.format("a", "A", "B"),
        "c.py": inherits.format("c", "C", "C"),
    }
    tree({**ring(60), **bases})
    assert mismatches(checked()) == []


def test_a_ring_of_imports_takes_time_in_proportion(check_of: Callable[[dict[str, str]], Work]) -> None:
    assert growth(lambda size: check_of(ring(size)), 15, 60) < QUADRATIC


def chain(size: int) -> dict[str, str]:
    inheriting = {
        f"m{n}.py": f"import torch\nfrom m{n - 1} import C{n - 1}\nclass C{n}(C{n - 1}):\n    def __init__(self):\n"
        f"        super().__init__()\n        self.a{n} = torch.zeros(3)\n    def forward(self, x):\n"
        f"        return super().forward(x.cuda()) + self.a{n}\n"
        for n in range(1, size)
    }
    return {"m0.py": MOVES.replace("Base", "C0"), **inheriting}


def test_files_that_inherit_from_each_other(check_of: Callable[[dict[str, str]], Work]) -> None:
    assert growth(lambda size: check_of(chain(size)), 30, 120) < QUADRATIC


def star(size: int) -> dict[str, str]:
    return {"moves.py": MOVES, **{f"m{n}.py": uses("moves") for n in range(size)}}


def test_many_files_that_import_one(tree, check_of: Callable[[dict[str, str]], Work]) -> None:
    assert growth(lambda size: check_of(star(size)), 40, 300) < QUADRATIC
    assert len(mismatches(checked())) == 300
