"""What a function does with its parameters, read from its text: hints on what they have to be."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_UNPACKED = ("shape", "size")
_PASSED_ON = ("tqdm", "iter", "reversed")
"""Functions through which a loop goes over their argument."""


@dataclass
class Usage:
    """What is done with a name; ``attributes`` says the same of what it has."""

    attributes: dict[str, Usage] = field(default_factory=dict)
    keys: dict[str, Usage] = field(default_factory=dict)
    strings: dict[str, None] = field(default_factory=dict)
    called: bool = False
    iterated: int = 0
    """How many names take an item of it, where a loop goes over it; 0 where none does."""
    ranks: dict[int, None] = field(default_factory=dict)
    counted: bool = False
    """Whether it is a number that something is counted by."""
    indexes: bool = False
    """Whether it stands in the brackets of something."""
    items: int = 0
    """How many names it is taken apart into."""


@functools.lru_cache(maxsize=512)
def usages(function: Callable[..., Any]) -> dict[str, Usage]:
    """What a function does with each of its names; nothing where its text is not known."""
    try:
        text = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    reader = _Reader()
    reader.visit(tree)
    return reader.found


class _Reader(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: dict[str, Usage] = {}

    def of(self, node: ast.AST) -> Usage | None:
        """The usage of a name, of an attribute or of an item by a constant key."""
        if isinstance(node, ast.Name):
            return self.found.setdefault(node.id, Usage())
        if isinstance(node, ast.Attribute):
            owner = self.of(node.value)
            return owner.attributes.setdefault(node.attr, Usage()) if owner is not None else None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            owner = self.of(node.value)
            key = node.slice.value
            return owner.keys.setdefault(key, Usage()) if owner is not None and isinstance(key, str) else None
        return None

    def visit(self, node: ast.AST) -> None:
        """Note what a node does, and go on inside."""
        self.of(node)
        method = getattr(self, f"_see_{type(node).__name__.lower()}", None)
        if method is not None:
            method(node)
        self.generic_visit(node)

    def _see_call(self, node: ast.Call) -> None:
        if (called := self.of(node.func)) is not None:
            called.called = True
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "range":
            for argument in node.args:
                if (usage := self.of(argument)) is not None:
                    usage.counted = True
        is_get = isinstance(node.func, ast.Attribute) and node.func.attr == "get"
        if is_get and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            owner = self.of(node.func.value) if isinstance(node.func, ast.Attribute) else None
            if owner is not None:
                owner.keys.setdefault(node.args[0].value, Usage())

    def _see_for(self, node: ast.For) -> None:
        self._iterated(node.iter, node.target)

    def _see_comprehension(self, node: ast.comprehension) -> None:
        self._iterated(node.iter, node.target)

    def _iterated(self, iterable: ast.expr, target: ast.expr) -> None:
        while isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.args:
            called = iterable.func.id
            if called == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
                iterable, target = iterable.args[0], target.elts[1]
            elif called in _PASSED_ON:
                iterable = iterable.args[0]
            else:
                break
        if (usage := self.of(iterable)) is not None:
            usage.iterated = max(usage.iterated, len(target.elts) if isinstance(target, ast.Tuple) else 1)

    def _see_compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        strings = [
            part.value
            for side in sides
            for part in ast.walk(side)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        for side in sides:
            if strings and (usage := self.of(side)) is not None:
                usage.strings.update(dict.fromkeys(strings))

    def _see_assign(self, node: ast.Assign) -> None:
        target, value = node.targets[0], node.value
        if not isinstance(target, ast.Tuple):
            return
        if any(isinstance(part, ast.Starred) for part in target.elts):
            return
        if isinstance(value, ast.Call):
            value = value.func
        if isinstance(value, ast.Attribute) and value.attr in _UNPACKED:
            if (usage := self.of(value.value)) is not None:
                usage.ranks[len(target.elts)] = None
        elif (usage := self.of(value)) is not None and not isinstance(node.value, ast.Call):
            usage.items = len(target.elts)

    def _see_subscript(self, node: ast.Subscript) -> None:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if (usage := self.of(part)) is not None:
                usage.indexes = True
        if len(parts) > 1 and not any(_adds(part) for part in parts) and (usage := self.of(node.value)) is not None:
            usage.ranks.setdefault(len(parts))


def _adds(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and (part.value is None or part.value is Ellipsis)
