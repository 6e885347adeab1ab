"""Loops: which names the text of a loop binds and writes into, and where it is left."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from devlint.flow.catalog.methods import OF_MODULES
from devlint.flow.syntax import names, nodes

_COLLECTIVES = frozenset(
    """all_reduce broadcast reduce all_gather all_gather_into_tensor reduce_scatter reduce_scatter_tensor recv
    irecv""".split()
)
"""What writes into its first argument."""


class LoopText:
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
        return tuple(name for name, _ in self._changed())

    @cached_property
    def changes(self) -> frozenset[str]:
        """The same names, each once."""
        return frozenset(self.assigned)

    @cached_property
    def written(self) -> frozenset[str]:
        """The names of what the loop writes into, and not those that it only binds."""
        return frozenset(name for name, into in self._changed() if into)

    @cached_property
    def single(self) -> bool:
        """Whether the first round is the last, since it ends with a ``break``."""
        return self.picks and not any(isinstance(node, ast.Continue) for node in self.inside)

    @cached_property
    def picks(self) -> bool:
        """Whether it comes to its end once at most, with a ``break``: rounds before may have been skipped."""
        body = self._loop.body if isinstance(self._loop, (ast.For, ast.AsyncFor, ast.While)) else []
        return bool(body) and isinstance(body[-1], ast.Break)

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The names of the attributes that the loop speaks of."""
        return frozenset(node.attr for node in self.inside if isinstance(node, ast.Attribute))

    @cached_property
    def moved(self) -> frozenset[str]:
        """The names on which the loop calls a method that moves a module."""
        calls = (node.func for node in self.inside if isinstance(node, ast.Call))
        on = (call.value for call in calls if isinstance(call, ast.Attribute) and call.attr in OF_MODULES)
        return frozenset(value.id for value in on if isinstance(value, ast.Name))

    @property
    def trains(self) -> bool:
        """Whether something goes backward in it."""
        return "backward" in self.attributes

    def leads_to(self, loop: ast.AST) -> bool:
        """Whether the steps are those of another loop; one that trains may call a function with steps of its own."""
        return not self.trains or loop in self.inside

    def _changed(self) -> Iterator[tuple[str, bool]]:
        """Each name that is assigned or written to, and whether it is written to."""
        for node in self.inside:
            if isinstance(node, (ast.Name, ast.Attribute)):
                if not isinstance(node.ctx, ast.Load):
                    yield names.dotted(node), False
            elif isinstance(node, ast.Subscript):
                if not isinstance(node.ctx, ast.Load):
                    yield names.dotted(node.value), True
            elif isinstance(node, ast.AugAssign):
                target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
                yield names.dotted(target), True
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                method = node.func.attr
                if method in _COLLECTIVES and node.args:
                    yield names.dotted(node.args[0]), True
                if (method.endswith("_") and not method.endswith("__")) or method in ("append", "pop", "update"):
                    yield names.dotted(node.func.value), True
            elif isinstance(node, ast.keyword) and node.arg == "out":
                yield names.dotted(node.value), True
