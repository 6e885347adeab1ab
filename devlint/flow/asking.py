"""Tests whose conditions are told once: asking them changes nothing."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.flow import nodes

if TYPE_CHECKING:
    from devlint.flow.frame import Frame

_ASKING = frozenset({"isinstance", "len", "hasattr"})
"""Python's own functions that change nothing."""
_READING = (
    *(ast.Attribute, ast.BinOp, ast.BoolOp, ast.Compare, ast.Constant, ast.List, ast.Name, ast.Set, ast.Slice),
    *(ast.Subscript, ast.Tuple, ast.UnaryOp),
)


def keep(frame: Frame, test: ast.expr) -> None:
    """Until further notice, know the conditions in a test once they are told, if asking them changes nothing.

    Every part is asked for by whoever evaluates it, by what it is a part of, and by the statement.
    """
    known = frame.machine.asked
    called = known[test] if test in known else known.setdefault(test, _only_asks(test))
    if called is not None and all(frame.lookup(name) is None for name in called):
        frame.conditions = {}


def _only_asks(test: ast.expr) -> frozenset[str] | None:
    """The functions that a test calls, if all of them are Python's own, and it does nothing but ask; else ``None``."""
    called: set[str] = set()
    for node in nodes.walk(test):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ASKING:
            called.add(node.func.id)
        elif not isinstance(node, _READING):
            return None
    return frozenset(called)
