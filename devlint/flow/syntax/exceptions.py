"""What a ``try`` handles: that a name is missing in another version of a library, or that an accelerator is missing."""

from __future__ import annotations

import ast

from devlint.flow.syntax import names, nodes

_ANY = ""
"""Stands for the exceptions of a handler that names none."""
_VERSION_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError"})
_ANY_ERROR = frozenset({_ANY, "Exception", "BaseException"})
_DEVICE_ERRORS = frozenset({_ANY, "RuntimeError", "AssertionError", "Exception"})


def tries_versions(node: ast.Try) -> bool:
    """Whether it handles that a name is missing."""
    caught = _caught(node)
    imports = any(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in node.body)
    return not caught.isdisjoint(_VERSION_ERRORS) or (imports and not caught.isdisjoint(_ANY_ERROR))


def tries_device(node: ast.Try) -> bool:
    """Whether it handles what a missing accelerator raises."""
    return not _caught(node).isdisjoint(_DEVICE_ERRORS)


def _caught(node: ast.Try) -> set[str]:
    """The names of what it catches."""
    kinds = [handler.type for handler in node.handlers]
    parts = [part for kind in kinds if kind is not None for part in nodes.walk(kind)]
    found = {names.dotted(part) for part in parts if isinstance(part, (ast.Name, ast.Attribute))}
    return found | {_ANY} if None in kinds else found
