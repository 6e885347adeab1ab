"""Candidate arguments: what is tried for a parameter, and what an exception suggests."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

from devlint.prove.arguments.hints import candidates, hints
from devlint.prove.arguments.suggestions import suggestions
from devlint.prove.arguments.values import ACCELERATOR, HOST, Namespace, Table, Tensor, Value
from devlint.prove.claim import Claim, Rows
from devlint.prove.searching.entries import Entry, conditions, entries


class Options:
    def __init__(self, width: int = 64, depth: int = 2) -> None:
        self.width, self.depth = width, depth


def example(x, mode, batch, cfg, count: int, options: Options, spare=None) -> Any:
    b, c, h, w = x.shape
    if mode == "mean":
        return batch["tokens"] * cfg.scale
    return [x.view(b, c, h * w) for _ in range(count)]


def tried(name: str) -> list[Value]:
    return next(candidates(hint) for hint, one in hints(example) if one.name == name)


def text(value: Value, place: str = ACCELERATOR) -> str:
    return value.text(place, {hint.name: "1" for hint in value.children()})


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("x", 'torch.rand(2, 3, 8, 8, device="cuda")'),
        ("mode", "'mean'"),
        ("batch", '{"tokens": 1}'),
        ("cfg", "SimpleNamespace(scale=1)"),
        ("count", "4"),
        ("options", "Options(width=8)"),
    ],
)
def test_what_a_function_does_with_a_parameter_says_what_it_is(name: str, first: str) -> None:
    assert text(tried(name)[0]) == first


def test_on_the_host_nothing_names_a_device() -> None:
    assert text(tried("x")[0], HOST) == "torch.rand(2, 3, 8, 8)"


def test_a_value_is_written_as_python() -> None:
    for _, one in hints(example):
        for value in tried(one.name):
            ast.parse(text(value), mode="eval")
    assert inspect.signature(example).parameters.keys() == {one.name for _, one in hints(example)}


@pytest.mark.parametrize(
    ("said", "shape"),
    [
        ("mat1 and mat2 shapes cannot be multiplied (2x3 and 16x4)", (2, 16)),
        ("not enough values to unpack (expected 3, got 2)", (2, 3, 3)),
        ("outer: Expected 1-D argument self, but got 2-D", (3,)),
        ("The size of tensor a (3) must match the size of tensor b (7) at non-singleton dimension 1", (2, 7)),
    ],
)
def test_the_text_of_an_exception_suggests_a_shape(said: str, shape: tuple[int, ...]) -> None:
    assert shape in [tensor.shape for tensor in suggestions(said, Tensor((2, 3)))[:8]]


def test_the_text_of_an_exception_suggests_a_dtype() -> None:
    said = "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int"
    assert suggestions(said, Tensor((2, 3)))[0] == Tensor((2, 3), "long")


def test_what_is_missing_is_added() -> None:
    assert Namespace().having("width").names() == {"width"}
    assert [hint.name for hint in Table().having("x").keys] == ["x"]


CODE = ast.parse(
    """
class Net:
    def __init__(self, size, given):
        if given.kept is not None:
            self.mask = made(size)

    def forward(self, x):
        return self.inner(x)

    def inner(self, x):
        return x * self.mask


def build(size):
    return Net(size, size)
"""
)


def test_the_method_comes_first_that_a_finding_in_a_constructor_names() -> None:
    claim = Claim("DVL104", "", "net.py", (5, 13, 5, 22), (Rows("net.py", 11, 11),))
    assert entries(CODE, claim)[:3] == [Entry(("Net",), "inner"), Entry(("Net",), "forward"), Entry(("Net",))]
    assert Entry((), "build") in entries(CODE, claim)
    assert conditions(CODE, claim) == {"given", "kept"}
    assert entries(CODE, Claim("DVL105", "", "net.py", (5, 13, 5, 22)))[0] == Entry(("Net",))
