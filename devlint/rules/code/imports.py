"""The edit that makes a module usable by its name at a place of the code: an import, where there is none yet."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from devlint.finding import Edit, Span
from devlint.flow.syntax.names import imported, modules
from devlint.rules.code.blocks import beside
from devlint.source.tree import Source

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)  # a comprehension's names count for what is around it


def importing(source: Source, module: str, node: ast.AST) -> tuple[Edit, ...] | None:
    """The edits after which ``module`` (a top-level one, such as ``torch``) is what its name means at ``node``.

    None are needed where it is imported already; ``None`` says that the name means something else there.  For one file
    and scope the edit is always the same, so that several fixes may share it.  It stands beside an import that loads
    the module anyway where there is one, and so changes nothing of what runs when.
    """
    row = int(getattr(node, "lineno", 0))
    names = _names(source.tree, module)
    around = [scope for scope in names if scope is None or row in _rows(scope)]
    for scope in sorted(around, key=lambda scope: -int(getattr(scope, "lineno", 0))):
        found = [statement for statement in names[scope].imports if scope is None or statement.lineno <= row]
        if names[scope].bound:
            return ()
        if names[scope].taken:
            return None
        if found:
            return (_beside(source, found[0], module),)
    return (_on_top(source, module),)


@dataclass(slots=True)
class _Names:
    """What a function, or the file, does with a module's name.

    ``imports`` are the statements at its top that load the module, ``bound`` says that one binds its name, ``taken``
    that something else does.
    """

    imports: list[ast.stmt] = field(default_factory=list)
    bound: bool = False
    taken: bool = False


@functools.lru_cache(maxsize=4)
def _names(tree: ast.Module, module: str) -> dict[ast.AST | None, _Names]:
    """By the function; under ``None`` the file's."""
    names: defaultdict[ast.AST | None, _Names] = defaultdict(_Names)
    for scope, node, direct in _nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            meant = imported(node).get(module, "")
            names[scope].bound |= meant == module
            names[scope].taken |= meant not in ("", module)
            if direct and any(name.partition(".")[0] == module for name in modules(node)):
                names[scope].imports.append(node)
        elif module in _binds(node):
            names[scope].taken = True
    return {scope: found for scope, found in names.items() if not isinstance(scope, ast.ClassDef)}


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.AST | None, ast.AST, bool]]:
    """Every node with the scope that it runs in, and whether it stands at its top; without what only types need."""
    stack: list[tuple[ast.AST | None, ast.AST, bool]] = [(None, tree, False)]
    while stack:
        scope, node, direct = stack.pop()
        yield scope, node, direct
        children: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            children = node.orelse
        inner = node if isinstance(node, _SCOPES) else scope
        top = isinstance(node, (*_SCOPES, ast.Module))
        stack.extend((inner, child, top) for child in reversed([*children]))


def _binds(node: ast.AST) -> tuple[str, ...]:
    """The names that anything but an import binds."""
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, ast.arg):
        return (node.arg,)
    name = getattr(node, "name", None)
    return (name,) if isinstance(name, str) and not isinstance(node, ast.alias) else ()


def _rows(scope: ast.AST) -> range:
    return range(getattr(scope, "lineno", 0), (getattr(scope, "end_lineno", 0) or 0) + 1)


def _beside(source: Source, statement: ast.stmt, module: str) -> Edit:
    """The import right before a statement or, where a comment speaks of that, right after it."""
    span = source.span(statement)
    indent, _ = beside(source, span)
    above = source.lines[span.row - 2].strip() if span.row > 1 else ""
    if above.startswith("#") and not indent.strip():
        return _after(source, statement, module)
    return Edit(_point(span.row, span.column), f"import {module}; " if indent.strip() else f"import {module}\n{indent}")


def _after(source: Source, statement: ast.stmt, module: str, gap: str = "") -> Edit:
    """The import in the line after a statement, or in its own where that goes on."""
    span = source.span(statement)
    line = source.lines[span.end_row - 1]
    if line[span.end_column - 1 :].partition("#")[0].strip():
        return Edit(_point(span.end_row, span.end_column), f"; import {module}")
    first = source.lines[span.row - 1]
    indent = first[: len(first) - len(first.lstrip())]
    return Edit(_point(span.end_row, len(line) + 1), f"{gap}\n{indent}import {module}")


def _on_top(source: Source, module: str) -> Edit:
    """The import where the file's imports end, or should begin: after the docstring, or what is said of the file."""
    last: ast.stmt | None = None
    docstring = bool(source.tree.body) and ast.get_docstring(source.tree, clean=False) is not None
    for number, statement in enumerate(source.tree.body):
        if not isinstance(statement, ast.Import | ast.ImportFrom) and not (docstring and number == 0):
            break
        last = statement
    if last is not None:
        return _after(source, last, module, "" if isinstance(last, ast.Import | ast.ImportFrom) else "\n")
    row = 1
    while row < len(source.lines) and source.lines[row - 1].startswith("#"):
        row += 1
    if row > 1 and not source.lines[row - 1].strip() and row < len(source.lines):
        row += 1
    return Edit(_point(row, 1), f"import {module}\n\n")


def _point(row: int, column: int) -> Span:
    return Span(row, column, row, column)
