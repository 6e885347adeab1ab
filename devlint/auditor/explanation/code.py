"""From an instruction that was running to its expression in the source."""

from __future__ import annotations

import ast
import contextlib
import linecache
import threading
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

from devlint.auditor.frames import Spot, file_of, line_of, positions_of, qualified_name
from devlint.record import Frame

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
_PARSING = threading.Lock()
_TRIES = 3


@lru_cache(maxsize=64)
def tree(file: str) -> ast.Module | None:
    """The syntax tree of a file as Python knows it, ``None`` where there is no source."""
    text = "".join(linecache.getlines(file))
    try:
        return _parse(text) if text else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def _parse(text: str) -> ast.Module:
    """The tree of a module.

    Python up to 3.12 counts how deep it is in a tree for all threads together (python/cpython#106905): two that parse
    at the same time, as the threads of DataParallel do, may be told that the count is wrong.
    """
    with _PARSING:
        for _ in range(_TRIES - 1):
            with contextlib.suppress(SystemError):  # a thread of the script is parsing, too
                return ast.parse(text)
        return ast.parse(text)


def running(code: CodeType, instruction: int) -> ast.AST | None:
    """The expression or statement which that instruction belongs to; before Python 3.11 the statement of its line."""
    module = tree(code.co_filename)
    if module is None:
        return None
    spot = Spot(code, instruction)
    line, end_line, column, end_column = positions_of(spot)
    if line is None or end_line is None or column is None or end_column is None:
        return _statement(module, line_of(spot))
    best: ast.AST | None = None
    parent: ast.AST | None = None
    node: Any
    for node in ast.walk(module):  # of the nodes that contain a span, the outer ones come first
        if hasattr(node, "lineno"):
            first, last = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
            if first <= (line, column) and (end_line, end_column) <= last:
                best, parent = node, best
                exact = (first, last) == ((line, column), (end_line, end_column))
                if exact and isinstance(node, (ast.expr, ast.stmt)):
                    break
    if isinstance(best, ast.Expr):
        best = best.value
    stored = isinstance(best, ast.Subscript) and isinstance(best.ctx, ast.Store)
    return parent if stored and isinstance(parent, ast.stmt) else best


def function_of(code: CodeType) -> FunctionNode | None:
    """The definition that a code object was compiled from; the module for a script's top level."""
    module = tree(code.co_filename)
    if module is None or code.co_name == "<module>":
        return module
    found: FunctionNode | None = None
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            found = node
    return found


def frame_at(code: CodeType, node: ast.AST, function: str = "") -> Frame:
    """The place of a node in the code of a function."""
    return Frame(
        file=file_of(code.co_filename),
        line=getattr(node, "lineno", 0),
        function=function or qualified_name(code),
        column=getattr(node, "col_offset", None),
        end_line=getattr(node, "end_lineno", None),
        end_column=getattr(node, "end_col_offset", None),
    )


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function in the order of its text, without those of functions and classes in it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from own_nodes(child)


def _statement(module: ast.Module, line: int) -> ast.AST | None:
    """The innermost statement on a line; of a compound one what stands before its colon."""
    found: ast.stmt | None = None
    for node in ast.walk(module):
        inside = isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
        if isinstance(node, ast.stmt) and inside and (found is None or node.lineno >= found.lineno):
            found = node
    if isinstance(found, (ast.For, ast.AsyncFor)):
        return found.iter
    if isinstance(found, (ast.If, ast.While)):
        return found.test
    if isinstance(found, (ast.With, ast.AsyncWith)):
        return ast.Tuple([item.context_expr for item in found.items], ast.Load())
    return found
