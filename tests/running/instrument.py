"""Changes the tree of a fixture before it is run, but no position: tracebacks and the recorder see the file itself.

Chosen expressions tell their values, functions that they were entered, and a mistake that has been seen is left out so
that the code after it can be reached.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping

from devlint.finding import Span

Key = tuple[int, int, int, int]
"""The position of an expression, as `ast` counts."""

WATCH, ENTERED, MOVED = "__watch__", "__entered__", "__moved__"
"""Functions that the changed code calls: with an expression's key and value, a function's row, a value to be moved."""
NOTHING = "__nothing__"
"""What takes the place of such a call."""
LEFT_OUT = "left out"

Marks = Mapping[str, Container[ast.AST]]
"""What is done to which nodes: ``WATCH``, ``MOVED``, ``NOTHING`` or ``LEFT_OUT``."""

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
    there = (node for node in ast.walk(tree) if isinstance(node, ast.expr) and node.lineno == span.row)
    return next((node for node in there if span_of(node, lines) == span), None)


def statement(tree: ast.Module, lines: list[str], span: Span) -> ast.stmt | None:
    """The innermost statement around it."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and covers(span_of(node, lines), span)
    ]
    return around[-1] if around else None


def call_around(tree: ast.Module, lines: list[str], span: Span) -> ast.Call | None:
    """The innermost call that has it among its arguments, or else is it."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and covers(span_of(node, lines), span)]
    larger = [call for call in calls if span_of(call, lines) != span]
    return (larger or calls or [None])[-1]


def functions(tree: ast.AST) -> Iterator[Function]:
    """All that are defined, wherever."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def key_of(node: ast.expr) -> Key:
    """How a watched expression is found again."""
    return (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def instrumented(text: str, tree: ast.Module, marks: Marks) -> ast.Module:
    """The tree of a text, changed where nodes of its first ``tree`` are marked."""
    copy = ast.parse(text)
    pairs = zip(ast.walk(tree), ast.walk(copy), strict=True)
    marked = {id(twin): {mark for mark, nodes in marks.items() if node in nodes} for node, twin in pairs}
    return ast.fix_missing_locations(_Change(marked).visit(copy))


class _Change(ast.NodeTransformer):
    def __init__(self, marks: dict[int, set[str]]) -> None:
        self._marks = marks

    def visit(self, node: ast.AST) -> ast.AST:
        marks = self._marks.get(id(node), set())
        if LEFT_OUT in marks:
            new: ast.AST = ast.Constant(None) if isinstance(node, ast.expr) else ast.Pass()
            return ast.copy_location(new, node)
        if NOTHING in marks:
            return ast.copy_location(ast.Name(NOTHING, ast.Load()), node)
        visited = self.generic_visit(node)
        if isinstance(visited, Function):
            self._enter(visited)
        if isinstance(visited, ast.expr):
            key = ast.Constant(key_of(visited))
            visited = _call(MOVED, [visited], visited) if MOVED in marks else visited
            visited = _call(WATCH, [key, visited], visited) if WATCH in marks else visited
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
