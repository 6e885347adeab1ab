"""``devlint prove``: what it takes, what it prints, and its exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from devlint.finding import Span
from devlint.prove import process, verdict
from devlint.prove.chosen import chosen, findings
from devlint.prove.command import run
from devlint.prove.verdict import Verdict

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "fixtures" / "prove"


def prove(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "devlint", "prove", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)


def test_a_finding_is_told_with_its_script_and_what_that_shows(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_bytes((FOLDER / "noisy.py").read_bytes())
    done = prove("noisy.py:13", "--output", "repro.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("noisy.py:13:12: error[DVL101] `torch.randn(4, 8)` is on the CPU but")
    script = (tmp_path / "repro.py").read_text(encoding="utf-8")
    assert [line.strip() for line in lines[2:-2]] == script.splitlines()
    assert 'from noisy import predict\n\npredict("cuda")\n# RuntimeError: Expected all tensors' in script
    assert lines[-1].startswith("confirmed: RuntimeError: Expected all tensors to be on the same device")
    assert lines[-1].endswith("raised at noisy.py:13")
    assert {path.name for path in tmp_path.iterdir()} == {"noisy.py", "repro.py"}


def test_a_package_is_imported_by_its_name(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "parts"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "sizes.py").write_text("WIDTH = 8\n", encoding="utf-8")
    text = "import torch\nfrom torch import nn\nfrom .sizes import WIDTH\n\n\ndef predict(device):\n"
    text += "    model = nn.Linear(WIDTH, 2).to(device)\n    return model(torch.randn(4, WIDTH))\n"
    (package / "net.py").write_text(text, encoding="utf-8")
    done = prove("lib/parts/net.py:8", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "from parts.net import predict" in done.stdout
    assert "# PYTHONPATH=lib devlint audit --simulate repro.py" in done.stdout


@pytest.mark.parametrize(
    ("place", "code", "text"),
    [
        ("confirmed.py", None, "expected FILE:LINE, not 'confirmed.py'"),
        ("confirmed.py:1", None, "no DVL1xx finding at confirmed.py:1; the nearest: DVL101 at line 8, DVL102"),
        ("confirmed.py:8", "DVL102", "no DVL102 finding at confirmed.py:8; the nearest: DVL102 at line 14"),
        ("confirmed.py:8", "DVL401", "DVL401: what can be proven are findings of DVL101 to DVL108"),
        ("confirmed.py:8", "all", "ALL: what can be proven are findings of DVL101 to DVL108"),
        ("nowhere.py:8", None, "nowhere.py: No such file or directory"),
        ("broken.py:1", None, "broken.py:1:"),
        ("notebook.ipynb:3", None, "notebook.ipynb: a notebook cannot be imported: export it as a script"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    place: str, code: str | None, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(FOLDER)
    assert run(place, code, None) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error: {text}")
    assert said.err.count("\n") == 1


def test_a_file_that_hangs_when_it_is_imported_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(process.PATIENCE, "search", 25.0)
    source, found, _ = chosen(str(FOLDER / "hanging.py"), 11)
    result = verdict.prove(found[0], source)
    assert result == Verdict("not shown", "importing the file takes too long, or ends the process")


@pytest.mark.parametrize("span", [Span(7, 12, 7, 52), Span(11, 12, 11, 17)])
def test_what_does_not_happen_is_refuted(span: Span) -> None:
    """Nor does it where two arguments meet, which nobody but their caller could put on two devices."""
    _, found, _ = chosen(str(FOLDER / "confirmed.py"), 8)
    fine = str(FOLDER / "fine.py")
    wrong = replace(found[0], filename=fine, span=span)
    result = verdict.prove(wrong, findings(fine)[0])
    assert result.kind == "refuted"
    assert "reached it, with all that they were given in one place" in result.text


def test_a_script_that_shows_nothing_by_itself_confirms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last run counts, whatever the search has seen."""
    replies = iter([{"script": "predict()\n"}, {"shown": "", "why": "line 8 is not reached by any of 1 calls"}])
    monkeypatch.setattr(verdict, "ask", lambda *arguments: next(replies))
    source, found, _ = chosen(str(FOLDER / "confirmed.py"), 8)
    result = verdict.prove(found[0], source)
    assert result.kind == "not shown"
    assert result.text.startswith("the script shows nothing when it runs by itself")


def test_the_exit_code_is_1_where_one_is_not_confirmed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("devlint.prove.command.prove", lambda *_: Verdict("refuted", "2 calls reached it"))
    output = tmp_path / "repro.py"
    assert run(f"{FOLDER / 'confirmed.py'}:8", None, str(output)) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "refuted: 2 calls reached it"
    assert not output.exists()
