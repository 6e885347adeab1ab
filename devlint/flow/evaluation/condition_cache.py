"""Tests whose conditions are told once: asking them changes nothing."""

from __future__ import annotations

import ast

from devlint.flow.core.interpreter import Frame
from devlint.flow.syntax import nodes

_ASKING = frozenset({"isinstance", "len", "hasattr"})
"""Python's own functions that change nothing."""
_READING = (
    *(ast.Attribute, ast.BinOp, ast.BoolOp, ast.Compare, ast.Constant, ast.List, ast.Set, ast.Slice),
    *(ast.Subscript, ast.Tuple, ast.UnaryOp),
)


def keep(frame: Frame, test: ast.expr) -> tuple[str, ...]:
    """Until further notice, know the conditions in a test once they are told, if asking them changes nothing.

    Every part is asked for by whoever evaluates it, by what it is a part of, and by the statement.  Returned are the
    names in the test.
    """
    known = frame.interpreter.asked
    called, named = known[test] if test in known else known.setdefault(test, _read(test))
    if called is not None and all(frame.lookup(name) is None for name in called):
        frame.conditions = {}
    return named


def _read(test: ast.expr) -> tuple[frozenset[str] | None, tuple[str, ...]]:
    """The functions that a test calls, if all of them are Python's own, and it does nothing but ask; and its names."""
    called: set[str] = set()
    named: dict[str, None] = {}
    idle = True
    for node in nodes.walk(test):
        if isinstance(node, ast.Name):
            named[node.id] = None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ASKING:
            called.add(node.func.id)
        else:
            idle = idle and isinstance(node, _READING)
    return frozenset(called) if idle else None, tuple(named)
