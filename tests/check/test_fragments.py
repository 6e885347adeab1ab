"""A file that cannot be read is told of where somebody would miss it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_cli import run

BROKEN = "import torch\n\ndef make()\n    return torch.ones(3)\n"


@pytest.mark.parametrize(
    ("name", "other", "text", "told"),
    [
        ("nets/sketch.py", "train.py", "import torch\n", False),
        ("nets/sketch.py", "train.py", "from nets import sketch\n", True),
        ("nets/sketch.py", "train.py", "import nets.sketch\n", True),
        ("nets/sketch.py", "nets/net.py", "from .sketch import make\n", True),
        ("nets/sketch.py", "nets/net.py", "import sketch\n", True),
        ("nets/sketch.py", "run.sh", "python nets/sketch.py\n", True),
        ("nets/sketch.py", "config.yaml", "net: nets.sketch\n", True),
        ("nets/sketch.py", "train.py", "from zoo.sketch import make\n", False),
        ("nets/sketch.py", "README.md", "A sketch.\n", False),
        ("tests/test_sketch.py", "train.py", "import torch\n", True),
    ],
)
def test_what_nothing_names_is_for_those_who_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, other: str, text: str, told: bool
) -> None:
    """Seen in neurodiffeq: a sketch of what code should look like."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("# Nets\n")
    for path, content in ((name, BROKEN), (other, text)):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content)
    shown = run("--output-format", "concise", ".").stdout
    assert ("DVL900" in shown.partition("not shown")[0] and f"{name}:3" in shown) is told
    assert f"{name}:3" in run("--output-format", "concise", "--select", "DVL900", ".").stdout


def test_where_no_project_begins_nobody_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sketch.py").write_text(BROKEN)
    assert "sketch.py:3" in run("--output-format", "concise", ".").stdout
