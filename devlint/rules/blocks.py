"""What stands around a node: its function, its statement, and how to take that out."""

from __future__ import annotations

import ast
import functools
from typing import NamedTuple

from devlint.finding import Edit, Span
from devlint.rules.base import SourceText

_FORMATS = tuple(getattr(ast, name) for name in ("JoinedStr", "TemplateStr") if hasattr(ast, name))


class _Landmarks:
    """What is looked up again for each finding, collected in one walk over a file."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[int, ast.AST] = {}
        self.statements: dict[ast.AST, tuple[ast.stmt, list[ast.stmt]]] = {}
        self.simple: dict[int, ast.stmt] = {}
        self.formats: list[ast.AST] = []
        # the walk goes from the outside to the inside: the innermost function has the last word on a row
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                last = node.end_lineno or node.lineno
                self.functions.update(dict.fromkeys(range(node.lineno, last + 1), node))
            elif isinstance(node, _FORMATS):
                self.formats.append(node)
            for name in ("body", "orelse", "finalbody"):
                block: object = getattr(node, name, None)
                if isinstance(block, list):  # not the body of a lambda
                    self._keep(block)

    def _keep(self, block: list[ast.stmt]) -> None:
        for statement in block:
            value = getattr(statement, "value", None)
            if isinstance(value, ast.AST):
                self.statements[value] = (statement, block)
            if not hasattr(statement, "body") and not hasattr(statement, "cases"):
                rows = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
                self.simple.update(dict.fromkeys(rows, statement))


@functools.lru_cache(maxsize=2)
def _landmarks(tree: ast.Module) -> _Landmarks:
    return _Landmarks(tree)


def function_at(source: SourceText, node: ast.AST) -> ast.AST | None:
    """The innermost function around ``node``, ``None`` at the top level."""
    return _landmarks(source.tree).functions.get(int(getattr(node, "lineno", 0)))


def statement_of(source: SourceText, value: ast.AST) -> tuple[ast.stmt, list[ast.stmt]] | None:
    """The statement whose whole value an expression is, and the block that it stands in."""
    return _landmarks(source.tree).statements.get(value)


def simple_statement_at(source: SourceText, node: ast.AST) -> ast.stmt | None:
    """The last statement without a block of its own in the line of ``node``, ``None`` where there is none."""
    return _landmarks(source.tree).simple.get(int(getattr(node, "lineno", 0)))


def idle_statement(
    source: SourceText, call: ast.Call, rest: ast.expr | None = None
) -> tuple[ast.stmt, list[ast.stmt]] | None:
    """The statement, with its block, that would do nothing without ``call``: ``model.to(d)`` or ``x = x.to(d)``.

    ``rest`` is what would be left of the call, if that is not its receiver: the ``x`` of ``x = f(x)``.
    """
    found = statement_of(source, call)
    if found is None:
        return None
    if rest is None and isinstance(call.func, ast.Attribute):
        rest = call.func.value
    names = [ast.unparse(target) for target in getattr(found[0], "targets", ())]
    return found if isinstance(found[0], ast.Expr) or (rest is not None and names == [ast.unparse(rest)]) else None


def in_format(source: SourceText, span: Span) -> bool:
    """Whether a place lies inside an f-string, where a quote or a new line may end it.

    Before Python 3.12 its parts may be said to stand anywhere, so that a place is no more than a name for them.
    """
    return any(span in places for places in _formats(source))  # type: ignore[arg-type]  # sources are told apart by identity


@functools.lru_cache(maxsize=2)
def _formats(source: SourceText) -> list[_Places]:
    return [
        _Places(source.span(node), {source.span(inner) for inner in ast.walk(node) if hasattr(inner, "lineno")})
        for node in _landmarks(source.tree).formats
    ]


class _Places(NamedTuple):
    """Where an f-string stands, and where its parts are said to."""

    whole: Span
    parts: set[Span]

    def __contains__(self, span: object) -> bool:
        if not isinstance(span, Span) or span == self.whole:
            return False
        start, end = (span.row, span.column), (span.end_row, span.end_column)
        inside = (self.whole.row, self.whole.column) < start and end < (self.whole.end_row, self.whole.end_column)
        return inside or span in self.parts


def removal(source: SourceText, statement: ast.stmt, block: list[ast.stmt]) -> Edit | None:
    """The edit that deletes ``statement``; ``None`` where its block or its line would be left broken."""
    lines, span = source.lines, source.span(statement)
    before = lines[span.row - 1][: span.column - 1]
    after = lines[span.end_row - 1][span.end_column - 1 :]
    if len(block) < 2 or before.strip() or after.strip().partition("#")[0]:
        return None
    last = span.end_row == len(lines)
    end = (span.end_row, span.end_column) if last else (span.end_row + 1, 1)
    return Edit(Span(span.row, 1, *end), "")
