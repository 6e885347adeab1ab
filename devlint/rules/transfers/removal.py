"""Taking out a statement of which nothing is left once its call is dropped."""

from __future__ import annotations

import ast
from typing import Protocol, cast

from devlint.finding import Edit, Span
from devlint.rules.base import SourceText


class _Tree(Protocol):
    tree: ast.Module
    lines: list[str]


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
