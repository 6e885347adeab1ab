"""Moves that a module overrides: what a module itself does when it is moved."""

from __future__ import annotations

import ast

from devlint.flow.catalog.methods import OF_MODULES
from devlint.flow.program.symbols import ClassInfo
from devlint.flow.syntax import names


def takes_along(info: ClassInfo, attribute: str) -> bool:
    """Whether a class has a move of its own that assigns an attribute, or any, by names that are not in the text."""
    own = (info.method(name) for name in (*OF_MODULES, "_apply"))
    return any(_assigns(node, attribute) for method in own if method is not None for node in method.own)


def _assigns(node: ast.AST, attribute: str) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == attribute:
        return isinstance(node.ctx, ast.Store)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store) and names.dotted(node.value).endswith("__dict__")
    return names.called(node) in ("setattr", "self.__setattr__")
