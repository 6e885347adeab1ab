"""Taking a call out of a chain of methods."""

from __future__ import annotations

import ast

from devlint.finding import Edit, Span
from devlint.rules.base import SourceText


def without_last(source: SourceText, call: ast.Call) -> Edit | None:
    """The edit that leaves ``x`` of ``x.method(...)``; ``None`` where a comment would be lost."""
    if not isinstance(call.func, ast.Attribute):
        return None
    whole, inner = source.span(call), source.span(call.func.value)
    text = _between(source, whole, inner)
    if "#" in text:
        return None
    # brackets around the receiver belong to it, a line's continuation does not
    closing = text[: text.find(".")].rstrip(" \t\f\n\\")
    row, column = inner.end_row + closing.count("\n"), len(closing.rpartition("\n")[2])
    column += 1 if "\n" in closing else inner.end_column
    return Edit(Span(row, column, whole.end_row, whole.end_column), "")


def _between(source: SourceText, whole: Span, inner: Span) -> str:
    """What stands between the end of the receiver and the end of the call."""
    rows = list(source.lines[inner.end_row - 1 : whole.end_row])
    rows[-1] = rows[-1][: whole.end_column - 1]
    rows[0] = rows[0][inner.end_column - 1 :]
    return "\n".join(rows)
