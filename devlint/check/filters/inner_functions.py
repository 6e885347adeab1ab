"""Functions inside of functions: nobody else can name them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from devlint.check.filters import project_files
from devlint.source.syntax import below

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.Lambda)
_BY_TEXT = frozenset({"eval", "exec", "locals", "vars"})
"""What finds a name by its text."""


def unnamed(path: str) -> list[tuple[int, int]]:
    """The first and the last row of each function inside of a function which never names it, and so never runs it."""
    tree = project_files.parsed(path)
    nodes = () if tree is None else ast.walk(tree)
    found = (inner for outer in nodes if isinstance(outer, _FUNCTIONS) for inner in _unnamed(outer))
    return [(inner.lineno, inner.end_lineno or inner.lineno) for inner in found]


def _unnamed(outer: _Function) -> Iterator[_Function]:
    inside = list(ast.walk(outer))
    named = Counter(node.id for node in inside if isinstance(node, ast.Name))
    if _BY_TEXT.isdisjoint(named):
        shared = {name for node in inside if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
        for inner in below(list(outer.body), _SCOPES):
            if isinstance(inner, _FUNCTIONS) and inner.name not in shared and not inner.decorator_list:
                # it may name itself
                own = sum(isinstance(node, ast.Name) and node.id == inner.name for node in ast.walk(inner))
                if named[inner.name] == own:
                    yield inner
