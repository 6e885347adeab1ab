"""`devlint models check`: what rows state beside what calls on the simulated accelerator show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import devlint

pytest.importorskip("torch")
ROOT = Path(devlint.__file__).parents[1]
LIBRARY = """\
import torch
from torch import nn


def to_gpu(batch):
    return batch.to("cuda")


def send(x, device):
    return x.to(device)


def load(size, device=None):
    return torch.ones(size, device=device)


def mix(a, b):
    return a + b


def plot(x):
    return x.numpy()


def tree(batch, non_blocking=True):
    if isinstance(batch, torch.Tensor):
        return batch.to("cuda", non_blocking=non_blocking)
    return batch


def broken(x):
    raise ValueError("needs a key")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def mask(self):
        return torch.ones(4, device=self.layer.weight.device)


class Scale(nn.Module):
    pass


class Anywhere(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module.to("cuda")

    def forward(self, x):
        return self.module(tree(x))


class Fields(dict):
    def to(self, device):
        return Fields({name: value.to(device) for name, value in self.items()})

    send = to
"""
RIGHT = {
    "to_gpu": 'result = "argument:0"\nplace = "accelerator"',
    "send": 'result = "argument:x"\nplace = "argument:device"',
    "load": 'result = "tensor"\nplace = "default"\ndevice-argument = "device"\nexample = "4, device=device"',
    "mix": 'result = "tensor"\nplace = "inputs"\nparameters = ["a", "b"]\nrejects-cpu = ["b"]',
    "plot": 'result = "host-array"\nmust-be-cpu = ["x"]\nparameters = ["x"]',
    "Net": 'is = "module"',
    "Net.mask": 'result = "tensor"\nplace = "self"',
    "Scale": 'is = "module"\nstateless = true',
    "Fields": 'is = "tensor-mapping"\nmoves = ["send"]\nexample = "{\'a\': x}"',
    "Anywhere": 'is = "module"\nplace = "accelerator"\naccepts-cpu = ["*"]',
    "Other": 'alias-of = "private_library.Net"',
}
WRONG = {
    "to_gpu": ('result = "argument:0"\nplace = "cpu"', "stated place `cpu`, the run says `cuda`"),
    "mix": (
        'result = "tensor"\nplace = "inputs"\nparameters = ["a", "b"]\naccepts-cpu = ["b"]',
        "stated accepts-cpu b `it is taken`, the run says `it raises`",
    ),
    "load": ('result = "module"\nexample = "4"', "stated result `module`, the run says `tensor`"),
    "send": (
        'result = "argument:x"\nmust-be-cpu = ["x"]\nexample = "x, \'cpu\'"',
        "stated must-be-cpu, the run takes tensors on `cuda`",
    ),
    "Net": ('is = "module"\nstateless = true', "stated stateless `true`, the run says `false`"),
    # a number and a module come back as they are
    "tree": ('result = "argument:batch"\nplace = "cpu"', "stated place `cpu`, the run says `cuda`"),
    "Anywhere": (
        'result = "argument:module"\nplace = "accelerator"',
        'it moves its inputs itself: say `is = "module"`, `place` and `accepts-cpu = ["*"]`',
    ),
}


def check(folder: Path, rows: str, *installed: str) -> tuple[int, list[str]]:
    """The exit code, and the lines that are printed."""
    (folder / "private_library.py").write_text(LIBRARY + "\n\nOther = Net\n", encoding="utf-8")
    (folder / "rows.toml").write_text(rows, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "devlint", "models", "check", "rows.toml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *installed])},
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, (done.stdout + done.stderr).splitlines()


def row(name: str, words: str) -> str:
    return f'["private_library.{name}"]\n{words}\n'


def test_what_is_right_is_shown(tmp_path: Path) -> None:
    code, lines = check(tmp_path, "".join(row(*one) for one in RIGHT.items()))
    assert [line for line in lines if ": shown: " not in line] == [f"{len(RIGHT)} shown, 0 different, 0 not shown."]
    assert code == 0


def test_what_differs_is_said(tmp_path: Path) -> None:
    code, lines = check(tmp_path, "".join(row(name, words) for name, (words, _) in WRONG.items()))
    assert code == 1
    for name, (_, said) in WRONG.items():
        assert f"private_library.{name}: {said}" in lines


def test_a_device_has_a_number(tmp_path: Path) -> None:
    rows = row("to_gpu", 'result = "argument:0"\nplace = "cuda:1"')
    assert check(tmp_path, rows)[1][0] == "private_library.to_gpu: stated place `cuda:1`, the run says `cuda:0`"


def test_a_word_that_no_run_has_shown_is_named(tmp_path: Path) -> None:
    rows = row("to_gpu", 'result = "argument:0"\nplace = "accelerator"\nwaits = true')
    rows += row("tree", 'result = "argument:batch"\nplace = "cpu"\nexample = "4"')
    assert check(tmp_path, rows)[1][:2] == [
        "private_library.to_gpu: shown: result, place; not shown: waits",
        "private_library.tree: shown: result; not shown: place",
    ]


def test_what_devlint_does_not_read_needs_its_parameters(tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "installed.py").write_text(LIBRARY, encoding="utf-8")
    words = 'result = "argument:batch"\nplace = "accelerator"\n'
    rows = f'["installed.tree"]\n{words}["private_library.tree"]\n{words}'
    code, lines = check(tmp_path, rows, str(tmp_path / "site-packages"))
    advice = 'arguments that are given by position are not found without `parameters = ["batch", "non_blocking"]`'
    assert [line for line in lines if "parameters" in line] == [f"installed.tree: {advice}"]
    assert code == 0


def test_a_file_without_rows_says_so(tmp_path: Path) -> None:
    assert check(tmp_path, "") == (0, ["rows.toml has no rows."])


def test_what_cannot_be_called_says_why(tmp_path: Path) -> None:
    rows = row("broken", 'result = "tensor"') + row("nothing", 'result = "tensor"') + '["no.such"]\nresult = "tensor"\n'
    code, lines = check(tmp_path, rows)
    assert code == 2
    assert lines == [
        "private_library.broken: cannot be called: ValueError: needs a key",
        "private_library.nothing: cannot be called: private_library has no nothing",
        "no.such: cannot be called: there is no package 'no'",
        "0 shown, 0 different, 3 not shown.",
    ]


def test_a_file_that_is_wrong_is_one_line(tmp_path: Path) -> None:
    assert check(tmp_path, '["a.b"]\nreslt = "tensor"\n') == (
        2,
        ["error: rows.toml: [\"a.b\"]: unknown word 'reslt' (did you mean 'result'?)"],
    )
