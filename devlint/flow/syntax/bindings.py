"""What a file binds at its top level, for those who import from it: each name with the statements that bind it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.flow.syntax import names, nodes
from devlint.immutable import immutable

_TRIES: tuple[type[ast.stmt], ...] = tuple(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name))
_PASSED = (ast.If, ast.With, *_TRIES)
"""Statements whose blocks belong to the body that they stand in."""
_COMPOUND = (*_PASSED, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While, ast.Match)
"""Statements with blocks, but for definitions."""
_REBINDING = re.compile(r"\n\s+(?:global|nonlocal)\s+(.*)")


@immutable(frozen=True, slots=True)
class Bound:
    """A statement that binds a name, and the statement of the top level around it, which may be the same."""

    statement: ast.stmt
    top: ast.stmt


class Outline:
    """The names of a file's top level, in the order in which they are bound; what only a script does is left out."""

    def __init__(self, tree: ast.Module) -> None:
        self.bound: dict[str, list[Bound]] = {}
        self.stars: list[str] = []
        """The modules of which every name is imported, as they are spelled."""
        for top in tree.body:
            for statement in _inside(top):
                for name in binds(statement):
                    self.bound.setdefault(name, []).append(Bound(statement, top))
                if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                    self.stars.append(names.source(statement))

    def alias(self, name: str) -> str | None:
        """The dotted name that an import, and nothing else, gives a name to; ``None`` where it is no such name."""
        paths = {
            names.imported(bound.statement)[name] if isinstance(bound.statement, (ast.Import, ast.ImportFrom)) else ""
            for bound in self.bound.get(name, ())
        }
        return (paths.pop() or None) if len(paths) == 1 else None

    def statements(self, name: str) -> list[ast.stmt]:
        """What has to be run to know what a name is bound to."""
        found = self.bound.get(name, [])
        if len(found) == 1:
            return [found[0].statement]
        return list(dict.fromkeys(bound.top for bound in found))


def _inside(node: ast.stmt) -> Iterator[ast.stmt]:
    """A statement and those in its blocks, but for what runs only where the file is the script."""
    yield node
    if isinstance(node, _COMPOUND) and not _is_main(node):
        for block in nodes.blocks(node):
            for statement in block:
                yield from _inside(statement)


def _is_main(node: ast.stmt) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def binds(node: ast.stmt) -> Iterator[str]:
    """The names that a statement itself binds or unbinds, not those of the statements in its blocks."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from names.imported(node)
    else:
        for target in _targets(node):
            for part in nodes.walk(target):
                if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
                    yield part.id


def bound_by(node: ast.AST) -> tuple[str, ...]:
    """The names that a node of any kind itself binds or unbinds, but for an import."""
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, ast.arg):
        return (node.arg,)
    name = getattr(node, "name", None)
    return (name,) if isinstance(name, str) and not isinstance(node, ast.alias) else ()


def _targets(node: ast.stmt) -> Iterator[ast.expr]:
    if isinstance(node, (ast.Assign, ast.Delete)):
        yield from node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        yield node.target
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        yield from (item.optional_vars for item in node.items if item.optional_vars is not None)


def rebound(text: str) -> set[str]:
    """The names that functions assign as ``global`` or ``nonlocal``."""
    # an expression that begins with a character skips to it; few files have the words
    found = _REBINDING.findall(f"\n{text}") if "global" in text or "nonlocal" in text else ()
    return {name.strip() for listed in found for name in listed.split("#")[0].split(",")}


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those under ``if``, ``try`` and ``with`` included."""
    for node in body:
        yield node
        for block in nodes.blocks(node) if isinstance(node, _PASSED) else ():
            yield from top_level(block)
