"""The pages about what can be made of a record: their commands run, and print what they are said to."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import devlint

ROOT = Path(devlint.__file__).parents[1]
if not (ROOT / "docs").is_dir():
    pytest.skip("the documentation is not part of this distribution", allow_module_level=True)
torch = pytest.importorskip("torch", reason="needs torch")
if torch.cuda.is_available():
    pytest.skip("a machine with a GPU does not simulate one", allow_module_level=True)

pytestmark = pytest.mark.slow
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STARTED = re.compile(r", \d{4}-\d\d-\d\d \d\d:\d\d")
CHANGES = {
    "shuffle=True)": "shuffle=True, pin_memory=True)",
    "weight = torch.linspace(0.5, 1.5, 10)": "weight = torch.linspace(0.5, 1.5, 10, device=device)",
    "    loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device), weight.to(device))": (
        "    x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)\n"
        "    loss = nn.functional.cross_entropy(model(x), y, weight)"
    ),
}
"""What docs/compare.md says has been changed in docs/digits.py."""


def commands(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    lines = [line.partition("  #")[0].strip() for block in BLOCK.findall(text) for line in block.splitlines()]
    return [line for line in lines if line.startswith("devlint ")]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of devlint; runs of this user go to a directory of their own."""
    (folder / "runs").mkdir(exist_ok=True)
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TMPDIR": str(folder / "runs"), "COLUMNS": "100",
        "NO_COLOR": "1",
    }  # fmt: skip
    environment.pop("FORCE_COLOR", None)
    arguments = [sys.executable, "-m", *command.split()]
    return subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.skipif(importlib.util.find_spec("vl_convert") is None, reason="needs the extra `html`")
def test_the_page_about_the_browser_works_as_shown(tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs" / "digits.py", tmp_path / "train.py")
    shown = commands("html-report.md")
    assert len(shown) == 4
    for command in shown:
        done = run(command, tmp_path)
        audits = command.startswith("devlint audit")
        assert done.returncode == int(audits), done.stderr  # an audit of this script finds something
        written = command.split()[-1] if not audits else "report.html"
        assert re.search(rf"^Wrote (\S*/)?{re.escape(written)}\n\Z", done.stderr, re.MULTILINE)
        assert (tmp_path / written).stat().st_size > 1_000
        (tmp_path / written).unlink()


def test_a_comparison_is_as_shown(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    shutil.copy(ROOT / "docs" / "digits.py", script)
    before, after, comparison = commands("compare.md")
    run(before, tmp_path)
    text = script.read_text(encoding="utf-8")
    for old, new in CHANGES.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    script.write_text(text, encoding="utf-8")
    run(after, tmp_path)
    done = run(comparison, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    page = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- comparison -->\n```text\n")[2].partition("```\n<!-- end of comparison -->")[0]
    assert STARTED.sub("", shown) == STARTED.sub("", done.stdout)
