"""What Python cannot read and is no mistake: former notebooks, places to fill in, the syntax of newer Pythons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devlint import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.rules.subsumption import summarized
from tests.notebooks import notebook
from tests.test_cli import run

EXPORT = b"""# %% [markdown]
# # Setup
# %%
!pip install nothing
%matplotlib inline
import torch
if True:
    !pip install \\
        --upgrade nothing

# %%
x = torch.ones(3, 3)
y = torch.ones(3, 3).cuda()
z = x + y
"""
LATER = "import torch\n\n\ndef first[T](x: T) -> T:\n    return x\n"


def test_a_file_that_was_a_notebook_is_read_without_its_magics() -> None:
    found = check_source(EXPORT, "export.py")
    assert [(one.code, one.span.row, one.span.column) for one in found if one.code == "DVL101"] == [("DVL101", 14, 5)]
    assert "DVL900" not in {one.code for one in found}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_fix_leaves_its_magics_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.chdir(tmp_path)
    text = EXPORT + b"\n\ndef make(device):\n    return torch.ones(3, 3).to(device)\n"
    before = text.replace(b"\n", end.encode())
    (tmp_path / "export.py").write_bytes(before)
    run("--fix", "--unsafe-fixes", "--select", "DVL203", "export.py")
    after = (tmp_path / "export.py").read_bytes()
    assert after == before.replace(b"torch.ones(3, 3).to(device)", b"torch.ones(3, 3, device=device)")


@pytest.mark.parametrize(
    "text", [b"import torch\nx = (\n%time\n", b"import torch\n!ls\nx = = 3\n", b"import torch\nx = = 3\n!ls\n"]
)
def test_what_is_wrong_in_it_is_told(text: bytes) -> None:
    assert [one.code for one in check_source(text, "export.py")] == ["DVL900"]


@pytest.mark.parametrize(
    ("cell", "everybody"),
    [
        ("for x in range(3):\n    # YOUR CODE GOES HERE\n\nprint(x)", False),
        ("for x in range(3):\n    # YOUR CODE GOES HERE\n    #####\n\n", False),
        ("x = #... ADD CODE HERE\nprint(x)", False),
        ("total = x + y ...\nprint(total)", False),
        # seen in HEST, zoology and a course on efficient deep learning
        ("path = .. # path to the file\nprint(path)", False),
        ("weights[1:3, :2] = 100  * # YOUR ANSWER\nprint(weights)", False),
        ("<<A whole lot of your code here>>", False),
        ("x = 3 ** / 2", True),
        ("if x <> y:\n    pass", True),
        ("def boundary(...):\n    pass", False),
        ("print 'more ...'", True),
        ("for x in range(3):\n\nprint(x)", True),
        ("# a loop\nfor x in range(3):", True),
    ],
)
def test_a_cell_is_a_hint_and_a_place_to_fill_in_for_those_who_ask(cell: str, everybody: bool) -> None:
    text, asking = notebook("import torch", cell), Config(rule_layers=(RuleLayer(("DVL900",)),))
    found = check_source(text, "a.ipynb", asking)
    assert [(one.code, str(one.severity)) for one in found] == [("DVL900", "info")]
    assert bool(check_source(text, "a.ipynb")) is everybody


def test_a_sketch_of_a_program_is_for_those_who_ask() -> None:
    """Seen in neurodiffeq, which keeps what its interface was to look like."""
    for line in ("def boundary(...):\n    pass\n", "def pde(u, x):\n    return diff(u, x) + diff(u, u) ...\n"):
        assert check_source(f"import torch\n\n{line}", "sketch.py") == []
    assert [one.code for one in check_source("import torch\nx = # 3\n", "a.py")] == ["DVL900"]


def test_a_program_in_which_a_comment_stands_for_a_block_is_broken() -> None:
    (found,) = check_source("import torch\nfor x in range(3):\n    # print(x)\nprint(3)\n", "a.py")
    assert str(found.severity) == "error"


def test_what_newer_pythons_read_is_one_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devlint.source.newer._NEWER", (((3, 99), re.compile(r".*first")),))
    text = LATER.replace("[T]", "[[T")
    (older,) = (Config(required_python=release) for release in [(3, 8)])
    found = [finding for name in ("a.py", "b.py", "c.py") for finding in check_source(text, name, older)]
    assert [(one.code, str(one.severity)) for one in found] == [("DVL900", "info")] * 3
    (told,) = summarized(found)
    assert told.message.endswith("(2 more of DVL900, in 3 files)")
    assert "run devlint on one that can" in told.help
    # nothing says that the project wants to run on this one
    assert check_source(text, "a.py") == []


def test_a_project_of_a_newer_python_may_write_what_it_reads(tree) -> None:
    tree({"pyproject.toml": '[project]\nname = "a"\nrequires-python = ">=3.99"\n', "a.py": "import torch\nx = 1 2\n"})
    assert "DVL900" not in run("--output-format", "concise").stdout
    told = run("--output-format", "concise", "--select", "DVL900")
    assert (told.exit_code, "info" in run("--select", "DVL900").stdout) == (0, True)
    assert "the project requires Python 3.99" in told.stdout
    tree({"a.py": b"import torch\nx = '\xff'\n"})
    assert run().exit_code == 1, "no Python reads what is in no encoding"
    tree({"a.py": "import torch\nx = 1 2\n", "pyproject.toml": '[project]\nname = "a"\nrequires-python = ">=3.8"\n'})
    assert run().exit_code == 1


def test_a_broken_copy_is_told_to_those_who_ask(tree) -> None:
    broken = "import torch\nf(a=1, 2)\n"
    tree({"tools/archive/a.py": broken})
    assert run().exit_code == 0
    assert run("--select", "DVL900").exit_code == 1
    tree({"tools/b.py": broken})
    assert run().exit_code == 1
