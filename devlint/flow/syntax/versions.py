"""Code that works with several versions of a library: it tries a name, and handles that the name is missing."""

from __future__ import annotations

import ast

from devlint.flow.syntax import names, nodes

_VERSION_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError"})
_ANY_ERROR = frozenset({"", "Exception", "BaseException"})


def tries_versions(node: ast.Try) -> bool:
    """Whether a ``try`` handles that a name is missing."""
    caught = {name for handler in node.handlers for name in _caught(handler)}
    imports = any(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in node.body)
    return not caught.isdisjoint(_VERSION_ERRORS) or (imports and not caught.isdisjoint(_ANY_ERROR))


def _caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {""}
    return {names.dotted(part) for part in nodes.walk(handler.type) if isinstance(part, (ast.Name, ast.Attribute))}
