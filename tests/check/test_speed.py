"""What makes a cold run fast: what is not loaded, not parsed, not left behind."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import devlint
from devlint._about import is_compiled
from devlint.check.analysis import check_source
from devlint.check.discovery.target import Target
from devlint.check.project import project, view
from devlint.check.task import Task
from devlint.config.schema import Config
from devlint.source import tree as tree_module
from devlint.source.text import ParseFailure

HELPERS = """\
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.ones(3)

    def scaled(self, x):
        return x * self.scale


def mask(size):
    return torch.ones(size)
"""
USE = """\
import torch
from helpers import Base, mask


class Head(Base):
    def forward(self, x, device):
        def inner(y):
            return self.scaled(y.to(device)) + mask(3)

        return [inner(part) for part in x]


def run(x: torch.Tensor, device):
    return x.to(device) + mask(3)
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        monkeypatch.chdir(tmp_path)
        view.begin()

    return write


def checked(*names: str) -> list[str]:
    """The rules that the files break, in the order of the names."""
    outcomes = [Task().run(Target(name, os.path.getsize(name), Config())) for name in names]
    assert not any(outcome.error for outcome in outcomes)
    return [finding.code for outcome in outcomes for finding in outcome.findings]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file is parsed."""
    if is_compiled():
        pytest.skip("compiled modules call each other without a place where somebody could count")
    times: Counter[str] = Counter()
    parse = tree_module.tree_of

    def count(text: str, filename: str, *hint: object) -> ast.Module | ParseFailure:
        times[os.path.basename(filename)] += 1
        return parse(text, filename, *hint)

    monkeypatch.setattr(tree_module, "tree_of", count)
    return times


@pytest.mark.parametrize(("device", "loaded"), [("device", True), ("other", False)])
def test_libcst_is_loaded_only_for_a_fix(tmp_path: Path, device: str, loaded: bool) -> None:
    (tmp_path / "two.py").write_text(f"import torch\n\n\ndef f(x: torch.Tensor, {device}):\n    return x.cuda()\n")
    say = "atexit.register(lambda: print('libcst' in sys.modules))"
    script = f"import atexit, sys; from devlint.cli import main; {say}; main()"
    command = [sys.executable, "-c", script, "check", "--no-cache", "--isolated", "--output-format=concise"]
    command += ["--select=DVL6", "two.py"]
    environment = {**os.environ, "PYTHONPATH": str(Path(devlint.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=60)
    assert "DVL601" in done.stdout
    assert (done.stdout.splitlines()[-1:], done.stderr) == ([str(loaded)], "")


def test_what_was_checked_is_gone_without_the_garbage_collector(tree) -> None:
    names = [f"use{number}.py" for number in range(20)]
    tree({"helpers.py": HELPERS, **dict.fromkeys(names, USE)})
    assert "DVL101" in checked(names[0])
    gc.collect()
    gc.disable()
    try:
        checked(*names)
        left = gc.collect()
    finally:
        gc.enable()
    # a machine of these few lines is more than a thousand objects
    assert left < 100


def test_files_of_which_others_know_may_be_let_go_between_two_that_are_checked(
    tree, monkeypatch: pytest.MonkeyPatch, parsed: Counter[str]
) -> None:
    base = "import torch\nfrom helpers import Base\n\n\nclass Middle(Base):\n    pass\n"
    use = USE.replace("import Base, mask", "import mask\nfrom middle import Middle as Base")
    tree({"helpers.py": HELPERS, "middle.py": base, "use.py": use, "other.py": use})
    wanted = checked("use.py")
    monkeypatch.setattr(project, "_ROOM", 1)
    view.begin()
    assert checked("use.py", "other.py", "use.py") == wanted * 3
    assert parsed["helpers.py"] == 1 + 3


def test_a_name_is_looked_for_only_in_files_that_may_have_it(tree, parsed: Counter[str]) -> None:
    many = {f"package/part{number}.py": "import torch\nscale = torch.ones(3) * 2\n" for number in range(9)}
    stars = "".join(f"from .part{number} import *\n" for number in range(9))
    use = USE.replace("from helpers", "from package")
    tree(
        {
            **many,
            "package/__init__.py": f"from .helpers import *\n{stars}",
            "package/helpers.py": HELPERS,
            "use.py": use,
        }
    )
    assert "DVL101" in checked("use.py")
    assert parsed == {"use.py": 1, "__init__.py": 1, "helpers.py": 1}


def test_names_of_pythons_own_are_not_looked_for_behind_stars(tree, parsed: Counter[str]) -> None:
    use = "import torch\nfrom helpers import *\n\nscale = torch.ones(3)\nprint(__name__, globals())\n"
    tree({"helpers.py": "globals = __name__ = size = 3\n", "use.py": use, "other.py": f"{use}print(size)\n"})
    checked("use.py")
    assert parsed == {"use.py": 1}
    checked("other.py")
    assert parsed == {"use.py": 1, "other.py": 1, "helpers.py": 1}


def test_values_are_compared_and_replaced_as_those_of_frozen_dataclasses() -> None:
    from devlint.device import CPU, UNKNOWN
    from devlint.flow.domain.tensors import Tensor
    from devlint.flow.domain.values import Const
    from devlint.immutable import replace

    tensor = Tensor(CPU, many=True)
    moved = replace(tensor, device=UNKNOWN, certain=False)
    assert (moved.device, moved.many, moved.certain) == (UNKNOWN, True, False)
    assert tensor == Tensor(CPU, many=True) != moved
    assert len({tensor, Tensor(CPU, many=True), moved, Const(1)}) == 3


def test_a_loop_of_many_files_finds_what_each_finds_alone(tree) -> None:
    tree({"helpers.py": HELPERS, "a.py": USE, "b.py": USE})
    alone = [finding.code for finding in check_source(HELPERS, "helpers.py")]
    assert checked("a.py", "helpers.py", "b.py") == [*checked("a.py"), *alone, *checked("b.py")]
