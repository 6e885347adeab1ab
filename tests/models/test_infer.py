"""`devlint models infer`: rows that are drafted by calling what a module has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import devlint
from devlint.source.files import toml

pytest.importorskip("torch")
ROOT = Path(devlint.__file__).parents[1]
LIBRARY = """\
import json
from dataclasses import dataclass

import torch
from torch import nn


def to_gpu(batch):
    return batch.to("cuda")


def everything(batch):
    return {name: value.cuda() for name, value in batch.items()}


def send(x, device):
    return x.to(device)


def doubled(x):
    return 2 * x


def zeros(n: int, device=None):
    return torch.zeros(n, device=device)


def on_host(n: int):
    return torch.zeros(n, device="cpu")


def mix(a, b):
    return a + b


def picked(x, indices):
    return x[indices.cpu().long()]


def plot(x):
    return x.numpy()


def mean(x):
    return x.mean().item()


def best_device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def weights(model):
    return model.weight.detach() + 1


def broken(x):
    raise ValueError("needs a key")


def leave(x):
    raise SystemExit(3)


def shout(name: str):
    print("hello")
    with open("shout.txt", "w") as stream:
        stream.write(name)
    return name.upper()


def main():
    raise AssertionError


def _private(x):
    return x


class Head(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.layer = nn.Linear(inner, outer)

    def encode(self, x):
        return self.layer(x)

    def mask(self):
        return torch.ones(4, device=self.layer.weight.device)


class Flatten(nn.Module):
    pass


class Ensemble(nn.Module):
    def __init__(self, model, copies=3):
        super().__init__()
        self.model = model.cuda()


class Runner:
    def __init__(self, model, device="cuda"):
        self.model = model.to(device)

    def __call__(self, x):
        return self.model(x)


class Movable(Runner):
    def place_on(self, device):
        self.model.to(device)


class Pipeline(Runner):
    def __call__(self, x):
        return self.model(x.to("cuda"))


class Batches:
    def __init__(self, inner, device):
        self.inner, self.device, self.dataset = inner, device, inner.dataset

    def __iter__(self):
        return ([part.to(self.device) for part in batch] for batch in self.inner)


class Fields(dict):
    def to(self, device):
        return Fields({name: value.to(device) for name, value in self.items()})

    send = to


class Hopeless:
    def __init__(self, key):
        raise ValueError("needs a key")

    def use(self, x):
        return x


class Trouble(Exception):
    pass


Other = Head
"""
DRAFTED = {
    "to_gpu": {"result": "argument:batch", "place": "accelerator", "parameters": ["batch"]},
    "everything": {"result": "argument:batch", "place": "accelerator", "parameters": ["batch"]},
    "send": {"result": "argument:x", "place": "argument:device", "parameters": ["x", "device"]},
    "doubled": {"result": "tensor", "place": "inputs"},
    "zeros": {"result": "tensor", "place": "default", "device-argument": "device"},
    "on_host": {"result": "tensor", "place": "cpu"},
    "mix": {"result": "tensor", "place": "inputs", "rejects-cpu": ["a", "b"], "parameters": ["a", "b"]},
    "picked": {"result": "tensor", "place": "inputs", "accepts-cpu": ["x", "indices"], "parameters": ["x", "indices"]},
    "plot": {"result": "host-array", "must-be-cpu": ["x"], "parameters": ["x"]},
    "mean": {"result": "number"},
    "best_device": {"result": "device", "place": "accelerator"},
    "weights": {"result": "tensor", "place": "argument:model", "parameters": ["model"]},
    "Head": {"is": "module"},
    "Head.encode": {"result": "tensor", "place": "inputs"},
    "Head.mask": {"result": "tensor", "place": "self"},
    "Flatten": {"is": "module", "stateless": True},
    "Ensemble": {"result": "argument:model", "place": "accelerator", "parameters": ["model", "copies"]},
    "Runner": {
        "result": "argument:model",
        "place": "accelerator",
        "device-argument": "device",
        "parameters": ["model", "device"],
    },
    "Movable": {
        "is": "module",
        "place": "accelerator",
        "device-argument": "device",
        "moves": ["place_on"],
    },
    "Batches": {"result": "argument:inner", "place": "argument:device", "parameters": ["inner", "device"]},
    "Fields": {"is": "tensor-mapping", "place": "inputs", "moves": ["send"]},
    "Other": {"alias-of": "private_library.Head"},
    "Pipeline": {"is": "module", "place": "accelerator", "device-argument": "device", "accepts-cpu": ["*"]},
}
COMMENTS = {
    "broken": "cannot be called: ValueError: needs a key",
    "leave": "cannot be called: SystemExit: 3",
    "shout": "rows have nothing to say of what it returns",
    "main": "not called: it would run the program",
    "Hopeless": "cannot be called: ValueError: needs a key",
}


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, what is printed, and what is said beside it."""
    done = subprocess.run(
        [sys.executable, "-m", "devlint", "models", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "private_library.py").write_text(LIBRARY, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def drafted(library: Path) -> str:
    code, text, said = run(library, "infer", "private_library")
    assert code == 0
    assert "hello" in said  # what the code prints is not among the rows
    return text


def test_rows_say_what_the_calls_have_shown(drafted: str) -> None:
    rows = {key.removeprefix("private_library."): words for key, words in toml(drafted.encode()).items()}
    assert {name: rows.pop(name, None) for name in DRAFTED} == DRAFTED
    assert not rows


def test_what_has_no_row_has_a_comment(drafted: str) -> None:
    comments = dict(line[2:].split(": ", 1) for line in drafted.splitlines()[1:] if line.startswith("# "))
    found = {key.removeprefix("private_library."): text for key, text in comments.items()}
    assert {name: found.get(name) for name in COMMENTS} == COMMENTS
    assert not found.keys() & {"_private", "Trouble", "json", "dataclass", "Hopeless.use"}


def test_the_rows_pass_the_check_as_they_are(library: Path, drafted: str) -> None:
    (library / "rows.toml").write_text(drafted, encoding="utf-8")
    code, text, _ = run(library, "check", "rows.toml")
    number = len(toml(drafted.encode()))
    assert (code, text.splitlines()[-1]) == (0, f"{number} shown, 0 different, 0 not shown.")


def test_nothing_is_written_beside_the_code(library: Path, drafted: str) -> None:
    assert not (library / "shout.txt").exists()


def test_what_a_module_imports_from_its_package_is_not_drafted(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "base.py").write_text("def same(x):\n    return x\n", encoding="utf-8")
    wrap = tmp_path / "acme" / "wrap.py"
    wrap.write_text("from acme.base import same\n\n\ndef own(x):\n    return x\n", encoding="utf-8")
    assert toml(run(tmp_path, "infer", "acme.wrap")[1].encode()).keys() == {"acme.wrap.own"}
    wrap.write_text("from acme.base import same\n\n__all__ = ['same']\n", encoding="utf-8")
    assert toml(run(tmp_path, "infer", "acme.wrap")[1].encode()).keys() == {"acme.wrap.same"}


def test_one_function_by_its_name(library: Path) -> None:
    code, text, _ = run(library, "infer", "private_library.send")
    assert code == 0
    assert toml(text.encode()) == {"private_library.send": DRAFTED["send"]}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module", "error: no_such_module cannot be imported: there is no package 'no_such_module'"),
        ("private_library.none", "error: private_library.none cannot be imported: private_library has no none"),
        ("private_library.py/x", "error: expected a dotted name such as package.module, not 'private_library.py/x'"),
        ("os", "error: os belongs to Python, and does nothing with devices"),
        ("failing", "error: failing cannot be imported: RuntimeError: no licence"),
        ("missing", "error: missing cannot be imported: ModuleNotFoundError: No module named 'not_installed'"),
        ("empty", "error: empty has no function or class of its own that is public"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, library: Path, name: str, said: str) -> None:
    (tmp_path / "private_library.py").write_text("", encoding="utf-8")
    (tmp_path / "failing.py").write_text("raise RuntimeError('no licence')\n", encoding="utf-8")
    (tmp_path / "missing.py").write_text("import not_installed\n", encoding="utf-8")
    (tmp_path / "empty.py").write_text("import torch\n\n\ndef _hidden(x):\n    return x\n", encoding="utf-8")
    assert run(tmp_path, "infer", name) == (2, "", f"{said}\n")


def test_nothing_is_lost_where_an_example_is_wrong(tmp_path: Path) -> None:
    """`models check` names an example that is no list of arguments."""
    (tmp_path / "private_library.py").write_text("def same(x):\n    return x\n", encoding="utf-8")
    (tmp_path / "rows.toml").write_text(
        '["private_library.same"]\nresult = "argument:x"\nexample = "y"\n', encoding="utf-8"
    )
    code, text, _ = run(tmp_path, "check", "rows.toml")
    told = "its arguments (y) are none: NameError: name 'y' is not defined"
    assert (code, text.splitlines()[0]) == (2, f"private_library.same: cannot be called: {told}")


def test_a_call_that_hangs_has_one_line_and_costs_no_other_row(tmp_path: Path) -> None:
    """Whatever it catches: it is interrupted, and its methods are not tried in vain."""
    (tmp_path / "private_library.py").write_text(
        """\
import threading

def same(x):
    return x

def stuck(x):
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            if x.is_cuda:
                raise
            x = x.cuda()

class Stuck:
    def __init__(self):
        threading.Event().wait()

    def use(self, x):
        return x
""",
        encoding="utf-8",
    )
    impatient = "from devlint.models import entries; from devlint.cli import main; entries.PATIENCE = 0.2; main()"
    done = subprocess.run(
        [sys.executable, "-c", impatient, "models", "infer", "private_library"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert toml(done.stdout.encode()) == {"private_library.same": {"result": "argument:x", "parameters": ["x"]}}
    assert [line for line in done.stdout.splitlines()[1:] if line.startswith("#")] == [
        "# private_library.Stuck: cannot be called: it has not returned after 0.2 seconds",
        "# private_library.stuck: cannot be called: it has not returned after 0.2 seconds",
    ]
