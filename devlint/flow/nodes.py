"""Walking syntax trees: what a definition contains, collected once and without what carries no meaning here."""

from __future__ import annotations

import ast
import itertools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

from devlint.flow import names
from devlint.syntax import below
from devlint.syntax import walk as walk

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


Node = TypeVar("Node", bound=ast.AST)


def own(root: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> list[ast.AST]:
    """Everything in a function (or a file's top level) but what belongs to functions and classes inside it."""
    return below(list(root.body), _DEFINITIONS)


class Holder:
    """What contains nodes, all of which are looked through again and again."""

    def _all(self) -> list[ast.AST]:
        raise NotImplementedError

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the definition."""
        return self._all()

    @cached_property
    def _kinds(self) -> dict[type[ast.AST], list[ast.AST]]:
        kinds: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        for node in self.nodes:
            kinds[type(node)].append(node)
        return kinds

    def of(self, kind: type[Node]) -> list[Node]:
        """The nodes of one kind, in their order."""
        return self._kinds.get(kind, [])  # type: ignore[return-value]  # they are kept by their types

    @property
    def calls(self) -> list[ast.Call]:
        """Every call in the definition."""
        return self.of(ast.Call)

    @property
    def attributes(self) -> list[ast.Attribute]:
        """Every attribute that the definition speaks of."""
        return self.of(ast.Attribute)


def assigned(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, each with what it gets where the text shows that."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def moved_in_place(assignments: list[ast.Assign]) -> Iterator[ast.expr]:
    """The targets of statements such as ``self.x = self.x.to(device)``."""
    for node in assignments:
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            mover = node.value.func
            if (
                mover.attr in ("to", "cuda", "cpu", "type_as")
                and names.dotted(mover.value) == names.dotted(node.targets[0]) != ""
            ):
                yield node.targets[0]


def holds(root: ast.AST, node: ast.AST) -> bool:
    """Whether a tree contains just this node."""
    row = getattr(node, "lineno", None)
    left = [root]
    while left:
        current = left.pop()
        if current is node:
            return True
        if isinstance(current, ast.Module) and row is not None:
            # statements stand one below the other, and few are on one row
            last = bisect_right(current.body, row, key=_first_row)
            left += itertools.takewhile(lambda child: _spans(child, row), reversed(current.body[:last]))
        else:
            left.extend(child for child in ast.iter_child_nodes(current) if row is None or _spans(child, row))
    return False


def _first_row(statement: ast.stmt) -> int:
    """The row where a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return decorators[0].lineno if decorators else statement.lineno


def _spans(node: ast.AST, row: int) -> bool:
    """Whether a row is one of a node's, its decorators included; so it is of nodes that stand in no row."""
    rows = [getattr(part, "lineno", row) for part in (node, *getattr(node, "decorator_list", ()))]
    return min(rows) <= row <= (getattr(node, "end_lineno", None) or row)
