"""Which line of a function it was, where a trace knows the function and what that called, and the script lies here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from devlint.record import Frame
from devlint.source.files import content
from devlint.source.text import decode

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MODULE = "<module>"


class Lines:
    """The files of the project, each parsed once."""

    def __init__(self) -> None:
        self._trees: dict[str, ast.Module | None] = {}
        self._located: dict[tuple[Frame, str], Frame] = {}

    def located(self, frame: Frame, called: str) -> Frame:
        """The frame at the only line of its function that calls something of this name; as it is where none is.

        The line of ``frame`` is any one of the function: that of its ``def``, or another.
        """
        key = frame, called
        if key not in self._located:
            tree = self._tree(frame.file) if called else None
            body = _body(tree, frame) if tree is not None else None
            lines = {line for node in _own(body) if (line := _line(node, called))} if body is not None else set()
            self._located[key] = replace(frame, line=lines.pop()) if len(lines) == 1 else frame
        return self._located[key]

    def _tree(self, file: str) -> ast.Module | None:
        if file not in self._trees:
            self._trees[file] = _parsed(file)
        return self._trees[file]


def _parsed(file: str) -> ast.Module | None:
    """A file's tree; ``None`` if it is not here, or no Python of this version."""
    try:
        text = decode(content(file))
        return ast.parse(text) if isinstance(text, str) else None
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _body(tree: ast.Module, frame: Frame) -> ast.Module | _Function | None:
    """The innermost function of that name around the line."""
    if frame.function == _MODULE:
        return tree
    found: _Function | None = None
    for node in ast.walk(tree):  # from the outside to the inside
        if isinstance(node, _Function) and node.name == frame.function:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first <= frame.line <= (node.end_lineno or first):
                found = node
    return found


def _own(body: ast.Module | _Function) -> Iterator[ast.AST]:
    """Yield what runs in a function itself, and not in the functions and classes within it."""
    waiting: list[ast.AST] = list(body.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_Function.__args__, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


def _line(node: ast.AST, called: str) -> int | None:
    """The line of a call of that name."""
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return function.end_lineno if name == called else None
