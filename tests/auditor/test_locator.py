"""From a place in a record to the code."""

from __future__ import annotations

import ast
import linecache
import os
import sys
from pathlib import Path

import pytest

from devlint.auditor.frames import Frames
from devlint.auditor.judgement.locator import Locator
from devlint.record import Frame
from tests.auditor.script import Script

CODE = """
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self, device):
            super().__init__()
            self.mask = torch.ones(3).to(device)

        def forward(self, x):
            größe = "ä"; return x + self.mask.to(x.device)


    def train(loader, model, device):
        model.to(device)
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            if len(images) > 3:
                try:
                    loss = (
                        model(images)
                        .mean()
                    )
                except RuntimeError:
                    torch.cuda.empty_cache()
            while loss.item() > 1:
                loss = loss / 2
"""


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path / "train.py", CODE)


def found(locator: Locator, frame: Frame, *calls: str) -> tuple[str, bool]:
    location = locator.locate(frame, calls)
    return location.source.segment(location.node), location.exact


@pytest.mark.parametrize(
    "expression", ["images.to(device)", "labels.to(device)", "self.mask.to(x.device)", "x + self.mask.to(x.device)"]
)
def test_a_span_is_one_expression(script: Script, expression: str) -> None:
    assert found(Locator(), script.at(expression)) == (expression, True)


def test_a_method_on_a_line_of_its_own(script: Script) -> None:
    # since 3.11 the position of such a call begins at the method's name
    text, exact = found(Locator(), script.at("mean()"))
    assert exact
    assert text.startswith("model(images)")
    assert text.endswith(".mean()")


@pytest.mark.parametrize(
    ("line", "calls", "text", "exact"),
    [
        ("model.to(device)", ("to",), "model.to(device)", True),
        # two calls of the name: nobody knows which one it was
        ("images.to(device)", ("to",), "images, labels = images.to(device), labels.to(device)", False),
        ("images.to(device)", ("cuda",), "images, labels = images.to(device), labels.to(device)", False),
        ("torch.cuda.empty_cache()", ("empty_cache",), "torch.cuda.empty_cache()", True),
        ("self.mask.to(x.device)", ("to",), "self.mask.to(x.device)", True),
    ],
)
def test_a_line_without_columns(script: Script, line: str, calls: tuple[str, ...], text: str, exact: bool) -> None:
    assert found(Locator(), script.line(line), *calls) == (text, exact)


def test_what_surrounds_a_place(script: Script) -> None:
    locator = Locator()
    scope = locator.locate(script.at("images.to(device)")).scope
    assert (scope.function, scope.owner, scope.module, scope.sometimes) == ("train", "", False, False)
    assert isinstance(scope.loop, ast.For)
    assert scope.devices == ("device",)
    assert locator.locate(script.at("model.to(device)")).scope.loop is None
    assert isinstance(locator.locate(script.at("loss.item()")).scope.loop, ast.While)
    flush = locator.locate(script.at("torch.cuda.empty_cache()")).scope
    assert flush.handler
    assert flush.sometimes
    forward = locator.locate(script.at("self.mask.to(x.device)")).scope
    assert (forward.function, forward.owner, forward.module) == ("forward", "Net", True)
    init = locator.locate(script.at("torch.ones(3).to(device)")).scope
    assert (init.function, init.owner, init.module) == ("__init__", "Net", False)


def test_between_the_rounds_of_a_loop(script: Script) -> None:
    # since 3.11 the position of what asks for the next item is the whole loop
    loop = script.text[script.text.index("for images") :].rstrip()
    assert found(Locator(), script.at(loop))[0] == "loader"


def test_a_test_file_is_known_by_its_name(tmp_path: Path) -> None:
    frame = Script(tmp_path / "test_train.py", "x.to(device)").at("x.to(device)")
    assert Locator().locate(frame).scope.test


def test_a_file_that_changed_keeps_what_was_recorded(script: Script) -> None:
    frame = script.at("model.to(device)")
    recorded = {frame.file: {frame.line: "    model.to(device)"}}
    assert found(Locator(recorded), frame) == ("model.to(device)", True)
    script.path.write_text("# gone\n" + script.text, encoding="utf-8")
    locator = Locator(recorded)
    location = locator.locate(frame)
    assert not location.exact
    assert location.source.segment(location.node) == "model.to(device)"
    assert location.source.span(location.node).row == frame.line
    assert locator.home(location.node) is location.source


@pytest.mark.parametrize("content", [None, "def f(:\n"], ids=["gone", "broken"])
def test_a_place_without_code_is_still_a_place(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "train.py"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    location = Locator().locate(Frame(file=str(path), line=7, column=4, end_line=7, end_column=9))
    span = location.source.span(location.node)
    assert (span.row, span.column, span.end_row, span.end_column) == (7, 5, 7, 10)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_record_from_anywhere_makes_nobody_wait(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    for name in (str(pipe), "a\0b.py"):
        locator = Locator({name: {2: "x.to(d)"}})
        location = locator.locate(Frame(file=name, line=2, column=0, end_line=2, end_column=7))
        assert location.source.segment(location.node) == "x.to(d)"


def test_code_that_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "<ipython-input-1-abc>"
    monkeypatch.setitem(linecache.cache, name, (12, None, ["y = x.to(d)\n"], name))
    frame = Frame(file=name, line=1, column=4, end_line=1, end_column=11)
    assert found(Locator(), frame) == ("x.to(d)", True)


def test_a_node_knows_its_file(script: Script, tmp_path: Path) -> None:
    other = Script(tmp_path / "other.py", "x.cpu()")
    locator = Locator()
    first, second = locator.locate(script.at("model.to(device)")), locator.locate(other.at("x.cpu()"))
    assert locator.home(first.node) is first.source
    assert isinstance(second.node, ast.Call)
    assert locator.home(second.node.func) is second.source


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns of running code are known since Python 3.11")
@pytest.mark.parametrize(
    "expression",
    [
        "probe(1)",
        "value.probe(2)",
        "value + 1",
        "value[0]",
        "(\n    value\n    .probe(3)\n)",
    ],
)
def test_running_code_is_found(tmp_path: Path, expression: str) -> None:
    """The recorder's frames lead back to the expression that was running."""
    script = Script(tmp_path / "run.py", f"result = {expression}\n")
    frames = Frames()
    places: list[int] = []

    class Probe:
        def probe(self, _: object = None) -> Probe:
            places.append(frames.at(sys._getframe(1)))
            return self

        __add__ = __getitem__ = probe

    code = compile(script.text, str(script.path), "exec")
    exec(code, {"probe": Probe().probe, "value": Probe()})
    frame, _ = frames.resolve(places[0])
    assert frame is not None
    location = Locator().locate(frame)
    assert location.exact
    assert ast.unparse(location.node) == ast.unparse(ast.parse(expression, mode="eval"))
