"""What stands around a node: its function, its statement, and how to take that out."""

from __future__ import annotations

import ast
from typing import Protocol, cast

from devlint.finding import Edit, Span
from devlint.rules.base import SourceText


class _Tree(Protocol):
    tree: ast.Module
    lines: list[str]


def function_at(source: SourceText, node: ast.AST) -> ast.AST | None:
    """The innermost function around ``node``, ``None`` at the top level."""
    row, inner = source.span(node).row, None
    for function in ast.walk(cast("_Tree", source).tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = function.lineno <= row <= (function.end_lineno or function.lineno)
            if inside and (inner is None or function.lineno > inner.lineno):
                inner = function
    return inner


def idle_statement(source: SourceText, call: ast.Call) -> tuple[ast.stmt, list[ast.stmt]] | None:
    """The statement, with its block, that would do nothing without ``call``: ``model.to(d)`` or ``x = x.to(d)``."""
    receiver = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    for parent in ast.walk(cast("_Tree", source).tree):
        for name in ("body", "orelse", "finalbody"):
            block: object = getattr(parent, name, None)
            if not isinstance(block, list):  # the body of a lambda
                continue
            for statement in block:
                if getattr(statement, "value", None) is not call:
                    continue
                names = [ast.unparse(target) for target in getattr(statement, "targets", ())]
                if isinstance(statement, ast.Expr) or names == [receiver]:
                    return statement, block
    return None


def removal(source: SourceText, statement: ast.stmt, block: list[ast.stmt]) -> Edit | None:
    """The edit that deletes ``statement``; ``None`` where its block or its line would be left broken."""
    lines, span = cast("_Tree", source).lines, source.span(statement)
    before = lines[span.row - 1][: span.column - 1]
    after = lines[span.end_row - 1][span.end_column - 1 :]
    if len(block) < 2 or before.strip() or after.strip().partition("#")[0]:
        return None
    last = span.end_row == len(lines)
    end = (span.end_row, span.end_column) if last else (span.end_row + 1, 1)
    return Edit(Span(span.row, 1, *end), "")
