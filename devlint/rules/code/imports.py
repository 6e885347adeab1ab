"""The edit that makes a module usable by its name at a place of the code: an import, where there is none yet."""

from __future__ import annotations

import ast
import functools

from devlint.finding import Edit, Span
from devlint.flow.syntax.bindings import bound_by
from devlint.flow.syntax.names import imported, modules
from devlint.rules.code import blocks
from devlint.source.syntax import below, walk
from devlint.source.tree import Source

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)  # a comprehension's names count for what is around it


def importing(source: Source, module: str, node: ast.AST) -> tuple[Edit, ...] | None:
    """The edits after which ``module`` (a top-level one, such as ``torch``) is what its name means at ``node``.

    None are needed where it is imported already; ``None`` says that the name means something else there, or may do so
    in a package, which has its own modules as names, too, and imports this one under another.  For one file and scope
    the edit is always the same, so that several fixes may share it.  It stands beside an import that loads the module
    anyway where there is one, and so changes nothing of what runs when.
    """
    row = int(getattr(node, "lineno", 0))
    around = [found for found in _scopes(source.tree, module) if found[0] is source.tree or row in _rows(found[0])]
    beside: ast.stmt | None = None
    for scope, bound, taken, imports in sorted(around, key=lambda found: -int(getattr(found[0], "lineno", 0))):
        if bound or taken:
            # an import further in would make the name a local one from the beginning of its function
            return () if bound else None
        loaded = (statement for statement in imports if scope is source.tree or statement.lineno <= row)
        beside = beside or next(loaded, None)
    if source.filename.endswith("__init__.py") and _has_under_another_name(source.tree, module):
        return None
    return (_on_top(source, module) if beside is None else _beside(source, beside, module),)


@functools.lru_cache(maxsize=4)
def _scopes(tree: ast.Module, module: str) -> list[tuple[ast.AST, bool, bool, list[ast.stmt]]]:
    """The file, and each function: whether it binds a module's name to it, or to anything else; what loads it on top.

    What only a type checker runs is left out.
    """
    inside = walk(tree)
    checks = (node for node in inside if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    typed = {part for check in checks for statement in check.body for part in walk(statement)}
    found: list[tuple[ast.AST, bool, bool, list[ast.stmt]]] = []
    for scope in (node for node in inside if isinstance(node, (ast.Module, *_FUNCTIONS))):
        nodes = [node for node in below([*ast.iter_child_nodes(scope)], _SCOPES) if node not in typed]
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        meant = {imported(statement).get(module) for statement in imports} - {None}
        taken = bool(meant - {module}) or any(module in bound_by(node) for node in nodes)
        loading = (item for item in imports if any(name.partition(".")[0] == module for name in modules(item)))
        top = [*ast.iter_child_nodes(scope)]
        found.append((scope, module in meant, taken, [statement for statement in loading if statement in top]))
    return found


def _has_under_another_name(tree: ast.Module, module: str) -> bool:
    """Whether a file imports a module and calls it something else."""
    statements = (statement for statement in tree.body if isinstance(statement, ast.Import))
    return any(alias.name == module and alias.asname for statement in statements for alias in statement.names)


def _rows(scope: ast.AST) -> range:
    return range(getattr(scope, "lineno", 0), (getattr(scope, "end_lineno", 0) or 0) + 1)


def _beside(source: Source, statement: ast.stmt, module: str) -> Edit:
    """The import right before a statement or, where a comment speaks of that, right after it."""
    span = source.span(statement)
    indent, _ = blocks.beside(source, span)
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
