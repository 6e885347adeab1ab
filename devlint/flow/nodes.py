"""Walking syntax trees: what a definition contains, collected once and without what carries no meaning here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

from devlint.flow import names

_NO_CHILDREN = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "name", "names", "type_comment", "kind", "n", "s"})
"""Fields that hold no expressions or statements (an ``ast.arg`` is reached through its arguments)."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


Node = TypeVar("Node", bound=ast.AST)
_KNOWN: dict[type, tuple[str, ...]] = {ast.Constant: ()}


def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a kind of node that lead further; none for what is no node, such as the key of ``**`` in a dict."""
    fields = _KNOWN.get(kind)
    if fields is None:
        fields = _KNOWN[kind] = tuple(name for name in getattr(kind, "_fields", ()) if name not in _NO_CHILDREN)
    return fields


def walk(root: ast.AST) -> list[ast.AST]:
    """``root`` and everything below it, breadth first; several times faster than :func:`ast.walk`."""
    return _below([root], ())


def own(root: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> list[ast.AST]:
    """Everything in a function (or a file's top level) but what belongs to functions and classes inside it."""
    return _below(list(root.body), _DEFINITIONS)


def _below(found: list[ast.AST], closed: tuple[type[ast.AST], ...]) -> list[ast.AST]:
    """``found`` and everything below, not looking into nodes of the ``closed`` kinds."""
    extend, append, known = found.extend, found.append, _KNOWN
    for node in found:
        kind = type(node)
        if kind in closed:
            continue
        for name in known[kind] if kind in known else _fields(kind):
            value = getattr(node, name, None)
            if value is None:
                continue
            if type(value) is list:
                extend(value)
            elif isinstance(value, ast.AST):
                append(value)
    return [node for node in found if isinstance(node, ast.AST)]


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
        kinds: dict[type[ast.AST], list[ast.AST]] = {}
        for node in self.nodes:
            kind = type(node)
            if kind in kinds:
                kinds[kind].append(node)
            else:
                kinds[kind] = [node]
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
        left.extend(child for child in ast.iter_child_nodes(current) if row is None or _spans(child, row))
    return False


def _spans(node: ast.AST, row: int) -> bool:
    """Whether a row is one of a node's, its decorators included; so it is of nodes that stand in no row."""
    rows = [getattr(part, "lineno", row) for part in (node, *getattr(node, "decorator_list", ()))]
    return min(rows) <= row <= (getattr(node, "end_lineno", None) or row)
