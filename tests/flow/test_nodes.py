"""Syntax trees: the code of a node, and whether a tree contains it."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from devlint.flow.syntax import names, nodes

FLOW = Path(__file__).resolve().parents[2] / "devlint" / "flow"

EXPRESSIONS = (
    *("x", "self.a.b", "None", "True", "...", "12", "-1", "1.5", "'it\\'s'", "u'text'", "''.join(x)", "(1).real"),
    *("f()", "f(x, *rest, key=y, **more)", "f(x)(y)", "f('a', -x)", "(-x).abs()", "-f(x)", "- -x", "not x", "~x"),
    *("a + b", "(a + b) * c", "a + (b + c)", "(a + b).c", "f(a - -b)", "a ** -b", "-a ** b", "-(a + b)", "a @ b[0]"),
    *("x[0]", "x[-1]", "x[1:]", "x[:-1]", "x[a:b + 1]", "x[::2]", "x[:, None]", "x[..., 0]", "x[()]", "x[a, ]", "x[:]"),
    *("x[(a or b):]", "(a + b)[0]", "a < b", "a if b else c", "lambda: 1", "[a, b]", "{**a}", "f'{a}'", "(yield)"),
)


@pytest.mark.parametrize("code", EXPRESSIONS)
def test_code_is_spelled_as_python_would(code: str) -> None:
    node = ast.parse(code, mode="eval").body
    assert names.code(node) == ast.unparse(node)


def test_a_tree_contains_its_own_nodes_and_no_others() -> None:
    decorated = textwrap.dedent(
        """
        @first
        @second(
            here)
        class A:
            async def f(self, x: int = 1, *, y=2): pass; return x; z = 3
            match a:
                case {"k": [b, *_]} if b: print(f"{a} {b!r}")
        """
    )
    for text in (
        decorated,
        *((FLOW / name).read_text(encoding="utf-8") for name in ("evaluation/statements.py", "engine/engine.py")),
    ):
        tree, twin = ast.parse(text), ast.parse(text)
        contained = [node for node in ast.walk(tree) if hasattr(node, "lineno")]
        assert all(nodes.holds(tree, node) for node in contained)
        assert not any(nodes.holds(twin, node) for node in contained)


@pytest.mark.parametrize(
    ("text", "brief"), [("f(x)[0].y()", "f(...)[...].y()"), ("x.y", "x.y"), ("(a + b).c", ""), ("f(a + b)", "f(...)")]
)
def test_a_call_is_abbreviated_to_what_it_calls(text: str, brief: str) -> None:
    assert names.abbreviated(ast.parse(text, mode="eval").body) == brief
