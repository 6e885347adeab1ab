"""Walking syntax trees: what a definition contains, collected once and without what carries no meaning here."""

from __future__ import annotations

import ast
import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

from devlint.flow.catalog.methods import MOVERS
from devlint.flow.syntax import names
from devlint.source.syntax import below
from devlint.source.syntax import walk as walk

_KEPT = (
    *(ast.Assign, ast.Attribute, ast.Call, ast.Import, ast.ImportFrom, ast.Nonlocal, ast.Subscript, ast.Yield),
    *(ast.YieldFrom, ast.keyword),
)
"""The kinds of nodes that somebody asks a definition for."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
REGISTERING = frozenset({"register_buffer", "register_parameter"})
"""Methods that only a module has."""
Node = TypeVar("Node", bound=ast.AST)


def own(root: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> list[ast.AST]:
    """Everything in a function (or a file's top level) but what belongs to functions and classes inside it."""
    return below(list(root.body), (*DEFINITIONS, ast.Lambda))


def blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of a statement, those of its handlers and cases included."""
    for part in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(part, name, None)
            if isinstance(block, list):
                yield block


class Holder:
    """What contains nodes, all of which are looked through again and again."""

    def _all(self) -> list[ast.AST]:
        raise NotImplementedError

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the definition."""
        return self._all()

    @cached_property
    def facts(self) -> dict[object, Any]:
        """What others have derived of the definition, by who did."""
        return {}

    @cached_property
    def _kinds(self) -> dict[type[ast.AST], list[ast.AST]]:
        kinds: dict[type[ast.AST], list[ast.AST]] = {kind: [] for kind in _KEPT}
        for kind, node in zip(map(type, self.nodes), self.nodes, strict=True):
            if kind in kinds:
                kinds[kind].append(node)
        return kinds

    def of(self, kind: type[Node]) -> list[Node]:
        """The nodes of one of the kinds that are kept, in their order."""
        return self._kinds[kind]  # type: ignore[return-value]  # they are kept by their types

    @property
    def calls(self) -> list[ast.Call]:
        """Every call in the definition."""
        return self.of(ast.Call)

    @property
    def attributes(self) -> list[ast.Attribute]:
        """Every attribute that the definition speaks of."""
        return self.of(ast.Attribute)


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """The parameters of a function that have names."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """The argument that a call gives at a position, or under a name."""
    named = (keyword.value for keyword in call.keywords if keyword.arg == name)
    return call.args[position] if position < len(call.args) else next(named, None)


def given(call: ast.Call) -> list[ast.expr]:
    """All that a call gives, by position or under a name."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def denied(test: ast.expr) -> tuple[ast.expr, bool]:
    """What stands behind one ``not`` after the other, and whether it holds where the whole does."""
    holds = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, holds = test.operand, not holds
    return test, holds


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
            if mover.attr in MOVERS and names.dotted(mover.value) == names.dotted(node.targets[0]) != "":
                yield node.targets[0]


def holds(root: ast.AST, node: ast.AST) -> bool:
    """Whether a tree contains just this node."""
    row = getattr(node, "lineno", None)
    left = [root]
    while left:
        current = left.pop()
        if current is node:
            return True
        for name in current._fields:
            part = getattr(current, name, None)
            if isinstance(part, list):
                left += _on_row(part, row)
            elif isinstance(part, ast.AST) and _spans(part, row):
                left.append(part)
    return False


def covers(statement: ast.stmt, node: ast.AST) -> bool:
    """Whether a statement goes over the line on which a node begins."""
    return statement.lineno <= getattr(node, "lineno", 0) <= (statement.end_lineno or 0)


def _on_row(parts: list[ast.AST], row: int | None) -> list[ast.AST]:
    """Those of the parts of a node that have something on a row."""
    if parts and isinstance(parts[0], ast.stmt) and row is not None:
        # statements stand one below the other, and few are on one row
        last = bisect_right(parts, row, key=_first_row)
        return [*itertools.takewhile(lambda part: _spans(part, row), reversed(parts[:last]))]
    return [part for part in parts if isinstance(part, ast.AST) and _spans(part, row)]


def _first_row(node: ast.AST) -> int:
    """The row where a node begins, its decorators included; 0 if it stands in none."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return decorators[0].lineno if decorators else getattr(node, "lineno", 0)


def _spans(node: ast.AST, row: int | None) -> bool:
    """Whether a row is one of a node's; so it is of nodes that stand in no row, and where none is meant."""
    return row is None or (_first_row(node) <= row <= (getattr(node, "end_lineno", None) or row))


Definition = TypeVar("Definition", bound=Holder)


Fact = TypeVar("Fact")


def derived(derive: Callable[[Definition], Fact]) -> Callable[[Definition], Fact]:
    """Let a function be called once for each definition: symbols need not know who finds out what about them."""

    def ask(definition: Definition) -> Fact:
        facts = definition.facts
        try:
            found: Fact = facts[derive]
        except KeyError:
            found = facts[derive] = derive(definition)
        return found

    return ask
