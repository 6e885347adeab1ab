"""Which names may be written into another place of a function than the one where they were read."""

from __future__ import annotations

import ast
import textwrap

import pytest

from devlint.rules.code.control_flow import conditions, is_rebound, stands_at
from devlint.source.tree import Source


def source(code: str) -> Source:
    parsed = Source.parse(textwrap.dedent(code).encode())
    assert isinstance(parsed, Source)
    return parsed


def here(file: Source) -> ast.Call:
    return next(
        node
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "here"
    )


BODIES = [
    ("here()", True),
    ("x = here()", True),
    ("y = here(); y.device", True),
    ("if x is None:\n    x = here()", False),
    ("if not x:\n    x = here()", False),
    ("if flag and x is None:\n    x = here()", False),
    ("if flag or x is None:\n    x = here()", False),
    ("if x is not None:\n    pass\nelse:\n    x = here()", False),
    ("if x is not None:\n    here()", True),
    ("if x is not None and flag:\n    here()", True),
    ("if x is not None or flag:\n    here()", False),
    ("if isinstance(x, Tensor):\n    pass\nelse:\n    here()", False),
    ("if isinstance(x, Tensor):\n    here()", True),
    ("x = x if x is not None else here()", False),
    ("x = here() if x is not None else y", True),
    ("if x is not None:\n    return x\nhere()", False),
    ("if x is None:\n    return y\nhere()", True),
    ("if x is None:\n    x = y\n    here()", True),
    ("here()\nif x is None:\n    pass", False),
    ("if y is None:\n    here()", True),
    ("if x is None:\n    x = y\nhere()", True),
    ("if x is None and flag:\n    x = y\nhere()", False),
    ("if x is None:\n    flag = y\nhere()", False),
]


@pytest.mark.parametrize(("body", "stands"), BODIES)
def test_an_argument_has_a_value_unless_it_may_be_none(body: str, stands: bool) -> None:
    file = source("def f(x, y, flag):\n" + textwrap.indent(body, "    "))
    assert stands_at(file, "x.device", here(file)) is stands


@pytest.mark.parametrize(
    ("body", "stands"),
    [
        ("t = y\nhere()", True),
        ("here()\nt = y", False),
        ("t = here()", False),
        ("for t in y:\n    here()", True),
        ("for t in y:\n    pass\nhere()", False),
        ("here()\nfor t in y:\n    pass", False),
        ("if flag:\n    t = y\nhere()", False),
        ("if flag:\n    t = y\nelse:\n    t = x\nhere()", True),
        ("if flag:\n    t = y\nelse:\n    raise x\nhere()", True),
        ("with x as t:\n    here()", True),
        ("with x:\n    t = y\nhere()", True),
        ("try:\n    t = y\nexcept E:\n    here()", False),
        ("[here() for t in y]", True),
        ("[t for t in y]\nhere()", False),
        ("(lambda t: here())", True),
        ("while flag:\n    here()\n    t = y", False),
    ],
)
def test_a_variable_has_a_value_once_every_way_has_bound_it(body: str, stands: bool) -> None:
    file = source("def f(x, y, flag):\n" + textwrap.indent(body, "    "))
    assert stands_at(file, "t.device", here(file)) is stands


@pytest.mark.parametrize(
    ("expression", "stands"),
    [
        ("self.device", True),
        ("outer.device", True),
        ("LIMIT.device", True),
        ("torch.device('cpu')", True),
        ("next(self.parameters()).device", True),
        ('"cuda"', True),
        ("argument.device", False),
        ("input.device", False),
        ("local.device", False),
        ("unheard_of.device", False),
        ("not an expression", False),
    ],
)
def test_a_name_from_outside_is_one_that_is_seen_from_there(expression: str, stands: bool) -> None:
    code = """
    import torch.nn
    LIMIT = 3
    def another(argument):
        local = 1
    class C:
        def method(self, outer):
            def inner():
                here()
    """
    file = source(code)
    assert stands_at(file, expression, here(file)) is stands


def test_the_conditions_for_a_place_are_those_of_its_function() -> None:
    file = source(
        "if a:\n    def f():\n        if b:\n            pass\n        elif c:\n            d = here() if e else 0"
    )
    assert [ast.unparse(test) for test in conditions(file, here(file))] == ["b", "c", "e"]


@pytest.mark.parametrize(
    ("body", "rebound"),
    [
        ("here()\ny = x * 2", False),
        ("here()\nx = x.float()\ny = x * 2", True),
        ("here()\nfor x in y:\n    pass\ny = x * 2", True),
        ("here()\nx = x * 2", False),
        ("here()\nx = (\n    x\n    * 2\n)", False),
        ("x = y\nhere()\ny = x * 2", False),
        ("for _ in y:\n    y = x * 2\n    x = y\n    here()", True),
        ("for _ in y:\n    y = x * 2\n    here()", False),
    ],
)
def test_a_name_is_bound_anew_between_two_places(body: str, rebound: bool) -> None:
    file = source("def f(x, y):\n" + textwrap.indent(body, "    "))
    product = next(node for node in ast.walk(file.tree) if isinstance(node, ast.BinOp))
    assert is_rebound(file, "x", here(file), product) is rebound
