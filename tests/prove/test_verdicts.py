"""What comes of findings: confirmed by a script that shows it, or not, and why."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "fixtures" / "prove"
NAMES = ("confirmed", "not_shown", "noisy", "leaves", "raises", "ends", "refuses")


@dataclass(frozen=True)
class Result:
    kind: str
    text: str
    script: str

    @property
    def body(self) -> str:
        """The script without its comments, on how to run it and what it shows, and without its imports."""
        return self.script.partition("\n\n")[2].rpartition("\n# ")[0]


Results = dict[tuple[str, int], Result]


@pytest.fixture(scope="module")
def results() -> Results:
    """By file and row, what came of the findings of the fixtures."""
    files = [str(FOLDER / f"{name}.py") for name in NAMES]
    done = subprocess.run(
        [sys.executable, "-m", "tests.prove.corpus", "--asked", "--json", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = map(json.loads, done.stdout.splitlines())
    rows = {name: (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines() for name in NAMES}
    about = (((Path(one["file"]).stem, one["row"]), one) for one in found)
    # of what only who asks is told, that which the fixture is about
    meant = ((key, one) for key, one in about if one["code"] in rows[key[0]][key[1] - 1])
    return {key: Result(one["kind"], one["text"], one["script"]) for key, one in meant}


def row_of(name: str, code: str = "", after: str = "") -> int:
    """The row of a fixture that expects something, the first one below a text."""
    lines = (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()
    begin = next((number for number, line in enumerate(lines) if after in line), 0)
    return next(number for number, line in enumerate(lines, 1) if number > begin and f"# expect: {code}" in line)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("DVL101", r"RuntimeError: Expected all tensors to be on the same device.* raised at .*confirmed.py:ROW"),
        (
            "DVL102",
            r"line ROW returns another tensor, which is on cuda:0 and is dropped; its receiver stays on cpu",
        ),
        ("DVL103", r"RuntimeError: Expected all tensors to be on the same device.*; the tensor in question is on cpu"),
        ("DVL104", r"RuntimeError: Expected all tensors to be on the same device.*; the tensor in question is on cpu"),
        ("DVL105", r"after `.to\(\"cuda\"\)` the \d+ parameters of the modules in `heads` are on cpu"),
        ("DVL106", r"a plain tensor on cuda:0, and no parameter of the module"),
        ("DVL107", r"TypeError: can't convert cuda:0 device type tensor to numpy.* raised at .*confirmed.py:ROW"),
        ("DVL108", r"RuntimeError: 'lengths' argument should be a 1D CPU int64 tensor.* raised at .*confirmed.py:ROW"),
    ],
)
def test_a_mistake_of_each_rule_is_confirmed(results: Results, code: str, text: str) -> None:
    row = row_of("confirmed", code)
    result = results["confirmed", row]
    assert result.kind == "confirmed", result
    assert re.search(text.replace("ROW", str(row)), result.text)
    assert "confirmed import" in result.script


def test_a_list_that_takes_the_name_of_a_submodule_is_confirmed(results: Results) -> None:
    result = results["refuses", row_of("refuses")]
    assert result.kind == "confirmed", result
    assert re.match(r"TypeError: cannot assign 'list' as child module .* raised at .*refuses.py:8", result.text)


def test_a_script_is_short(results: Results) -> None:
    assert results["confirmed", row_of("confirmed", "DVL101")].body == 'predict("cuda")'
    printed = 'print("scale" in dict(model.named_parameters()))  # False'
    made = 'model = Scale(device="cuda").to("cuda")'
    assert results["confirmed", row_of("confirmed", "DVL106")].body == f"{made}\n{printed}"
    printed = "print({weight.device for module in model.heads for weight in module.parameters()})  # stays on cpu"
    assert printed in results["confirmed", row_of("confirmed", "DVL105")].body
    for name, row in results:
        if name == "confirmed":
            assert len(results[name, row].body.splitlines()) <= 2
    assert "mode=" not in results["confirmed", row_of("confirmed", "DVL104")].script  # what may be left out is


def test_what_the_code_prints_is_not_in_the_way(results: Results) -> None:
    assert results["noisy", row_of("noisy")].kind == "confirmed"


@pytest.mark.parametrize(
    ("name", "after", "text"),
    [
        ("not_shown", "def from_a_file", "needs a file or a data set on disk: FileNotFoundError: .* at line 10"),
        ("not_shown", "def of_the_command_line", "ends the program, as where a command line is read: SystemExit"),
        ("not_shown", "def for_ever", "takes too long: the call takes more than 8 seconds at line 2[56]"),
        ("not_shown", "def of_a_secret", "no arguments are found with which line 34 is reached, in .*not the secret"),
        ("not_shown", "def written", "does what is not allowed here: PermissionError: nothing is written while"),
        ("leaves", "", "the file cannot be imported: SystemExit: 3 at line 6"),
        ("raises", "", "the file cannot be imported: ModuleNotFoundError: .*'torch_that_is_not_there' at line 1"),
        ("ends", "", "importing the file takes too long, or ends the process"),
    ],
)
def test_why_nothing_is_shown_is_said(results: Results, name: str, after: str, text: str) -> None:
    result = results[name, row_of(name, after=after)]
    assert result.kind == "not shown"
    assert result.script == ""
    assert re.search(text, result.text), result.text
