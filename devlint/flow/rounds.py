"""What the text of a loop says, collected once: a loop is interpreted several times."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from devlint.flow import names, nodes


class Rounds:
    """A loop's own text."""

    def __init__(self, loop: ast.AST) -> None:
        self._loop = loop

    @cached_property
    def inside(self) -> list[ast.AST]:
        """The loop and every node in it."""
        return nodes.walk(self._loop)

    @cached_property
    def assigned(self) -> tuple[str, ...]:
        """The dotted names that the loop assigns, or writes to, as often as it does."""
        return tuple(self._assigned())

    @cached_property
    def changes(self) -> frozenset[str]:
        """The same names, each once."""
        return frozenset(self.assigned)

    @cached_property
    def trains(self) -> bool:
        """Whether something goes backward in it."""
        return any(isinstance(node, ast.Attribute) and node.attr == "backward" for node in self.inside)

    def _assigned(self) -> Iterator[str]:
        for node in self.inside:
            if isinstance(node, (ast.Name, ast.Attribute)):
                if not isinstance(node.ctx, ast.Load):
                    yield names.dotted(node)
            elif isinstance(node, ast.Subscript):
                if not isinstance(node.ctx, ast.Load):
                    yield names.dotted(node.value)
            elif isinstance(node, ast.AugAssign):
                yield names.dotted(node.target)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                method = node.func.attr
                if (method.endswith("_") and not method.endswith("__")) or method in ("append", "pop", "update"):
                    yield names.dotted(node.func.value)
            elif isinstance(node, ast.keyword) and node.arg == "out":
                yield names.dotted(node.value)
