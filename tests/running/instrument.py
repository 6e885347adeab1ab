"""Changes the tree of a fixture before it is run, but no position: tracebacks and the recorder see the file itself.

Chosen expressions tell their values, functions that they were entered, and a mistake that has been seen is left out so
that the code after it can be reached.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterator
from copy import deepcopy

from devlint.finding import Span

WATCH, ENTERED = "__watch__", "__entered__"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def span_of(node: ast.expr | ast.stmt, lines: list[str]) -> Span:
    """Where a node stands, as findings count."""

    def column(row: int, offset: int) -> int:
        return len(lines[row - 1].encode()[:offset].decode()) + 1

    end_row = node.end_lineno or node.lineno
    start = column(node.lineno, node.col_offset)
    return Span(node.lineno, start, end_row, column(end_row, node.end_col_offset or 0))


def covers(outer: Span, inner: Span) -> bool:
    """Whether one span holds the other."""
    starts = (outer.row, outer.column) <= (inner.row, inner.column)
    return starts and (inner.end_row, inner.end_column) <= (outer.end_row, outer.end_column)


def expression(tree: ast.Module, lines: list[str], span: Span) -> ast.expr | None:
    """The outermost expression that stands exactly there."""
    return next((node for node in ast.walk(tree) if isinstance(node, ast.expr) and span_of(node, lines) == span), None)


def statement(tree: ast.Module, lines: list[str], span: Span) -> ast.stmt | None:
    """The innermost statement around it."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and covers(span_of(node, lines), span)
    ]
    return around[-1] if around else None


def functions(tree: ast.AST) -> Iterator[Function]:
    """All that are defined, wherever."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def instrumented(
    tree: ast.Module, watched: Container[ast.AST], left_out: Container[ast.AST], entered: bool = True
) -> ast.Module:
    """A copy in which some expressions are watched, and others, or statements, left out."""
    copy = deepcopy(tree)
    pairs = zip(ast.walk(tree), ast.walk(copy), strict=True)
    marks = {id(twin): (node in watched, node in left_out) for node, twin in pairs}
    changed = _Change(lambda node: marks.get(id(node), (False, False)), entered).visit(copy)
    return ast.fix_missing_locations(changed)


class _Change(ast.NodeTransformer):
    def __init__(self, marks: Callable[[ast.AST], tuple[bool, bool]], entered: bool) -> None:
        self._marks = marks
        self._entered = entered

    def visit(self, node: ast.AST) -> ast.AST:
        watched, left_out = self._marks(node)
        if left_out:
            new: ast.AST = ast.Constant(None) if isinstance(node, ast.expr) else ast.Pass()
            return ast.copy_location(new, node)
        place = ast.dump(node, include_attributes=True)[:0] or node
        visited = self.generic_visit(node)
        if isinstance(visited, Function) and self._entered:
            self._enter(visited)
        if watched and isinstance(visited, ast.expr):
            key = (place.lineno, place.col_offset, place.end_lineno, place.end_col_offset)
            return _call(WATCH, [ast.Constant(key), visited], visited)
        return visited

    def _enter(self, function: Function) -> None:
        first = function.body[0]
        docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        mark = ast.copy_location(ast.Expr(_call(ENTERED, [ast.Constant(function.lineno)], first)), first)
        function.body.insert(int(docstring), mark)


def _call(name: str, arguments: list[ast.expr], place: ast.AST) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), place)
    for argument in arguments:
        if isinstance(argument, ast.Constant):
            ast.copy_location(argument, place)
    return ast.copy_location(ast.Call(function, arguments, []), place)
