"""Projects that nobody means to write: rings, very many files, very deep classes, and what only looks like a module."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from devlint.check.engine import Result, check_paths
from devlint.config import Config

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


def checked(seconds: float) -> Result:
    begin = time.process_time()
    result = check_paths(["."], Config())
    assert time.process_time() - begin < seconds
    return result


def mismatches(result: Result) -> list[str]:
    assert result.errors == []
    return [finding.filename for finding in result.findings if finding.code == "DVL101"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_called_like_a_module_is_not_opened(tree, tmp_path: Path) -> None:
    tree({"a.py": uses("moves"), "b.py": uses("package"), "package/x.txt": ""})
    os.mkfifo(tmp_path / "moves.py")
    os.mkfifo(tmp_path / "package" / "__init__.py")
    assert mismatches(checked(5)) == []


def test_what_only_looks_like_a_module(tree, tmp_path: Path) -> None:
    tree({"a.py": uses("moves"), "b.py": uses("ring.ring.ring.moves"), "moves.py/x.txt": "", "ring/moves.py": MOVES})
    os.symlink("../ring", tmp_path / "ring" / "ring")
    assert mismatches(checked(5)) == ["b.py"]


def test_a_package_called_torch(tree) -> None:
    tree({"torch/__init__.py": "from .nn import *\ndef zeros(n):\n    return n\n", "torch/nn.py": MOVES, "a.py": MOVES})
    checked(5)


def test_rings_of_imports_of_names_and_of_bases(tree) -> None:
    around = {f"m{n}.py": f"from m{(n + 1) % 60} import *\n{uses(f'm{(n + 1) % 60}')}" for n in range(60)}
    inherits = (
        "import torch\nfrom {0} import {1}\nclass {2}({1}):\n"
        "    def forward(self, x):\n        return x.cuda() + self.y\n"
    )
    bases = {
        "a.py": inherits.format("b", "B", "A"),
        "b.py": inherits.format("a", "A", "B"),
        "c.py": inherits.format("c", "C", "C"),
    }
    tree({**around, **bases})
    assert mismatches(checked(10)) == []


def test_files_that_inherit_from_each_other(tree) -> None:
    chain = {
        f"m{n}.py": f"import torch\nfrom m{n - 1} import C{n - 1}\nclass C{n}(C{n - 1}):\n    def __init__(self):\n"
        f"        super().__init__()\n        self.a{n} = torch.zeros(3)\n    def forward(self, x):\n"
        f"        return super().forward(x.cuda()) + self.a{n}\n"
        for n in range(1, 120)
    }
    tree({"m0.py": MOVES.replace("Base", "C0"), **chain})
    assert len(checked(12).checked) == 120


def test_many_files_that_import_one(tree) -> None:
    tree({"moves.py": MOVES, **{f"m{n}.py": uses("moves") for n in range(300)}})
    assert len(mismatches(checked(10))) == 300
