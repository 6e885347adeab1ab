"""The layout of a script: calls that are too long for a line have a line for each argument."""

from __future__ import annotations

import ast

WIDTH = 100
"""Columns of a line."""


def laid_out(script: str) -> str:
    """The same script, with shorter lines."""
    return "".join(f"{_broken(line)}\n" for line in script.splitlines())


def _broken(line: str, indent: str = "") -> str:
    if len(indent) + len(line) <= WIDTH:
        return line
    call = _longest(line)
    if call is None:
        return line
    parts = [part for part in (_text(line, one) for one in (*call.args, *call.keywords)) if part]
    inside = f"{indent}    "
    broken = "".join(f"{inside}{_broken(part, inside)},\n" for part in parts)
    begin = line.index(parts[0], _offset(line, call.func.end_col_offset))
    end = line.rindex(parts[-1], 0, _offset(line, call.end_col_offset)) + len(parts[-1])
    return f"{line[:begin]}\n{broken}{indent}{line[end:]}"


def _longest(line: str) -> ast.Call | None:
    """The outermost call with most in its brackets."""
    try:
        calls = [node for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Call) and _given(node)]
    except SyntaxError:  # an argument by its name is no statement, but may be an assignment
        return None
    return max(calls, key=lambda call: (call.end_col_offset or 0) - (call.func.end_col_offset or 0), default=None)


def _given(call: ast.Call) -> bool:
    return bool(call.args or call.keywords)


def _text(line: str, node: ast.AST) -> str:
    return ast.get_source_segment(line, node) or ""


def _offset(line: str, offset: int | None) -> int:
    return len(line.encode()[: offset or 0].decode())
