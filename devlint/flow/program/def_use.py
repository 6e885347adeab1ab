"""What is asked again for each site of a definition, collected once: a definition may have thousands of sites."""

from __future__ import annotations

import ast
import bisect
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from devlint.flow.program.symbols import ClassInfo, FunctionInfo, Index
from devlint.flow.syntax import names, nodes

DESCRIPTIONS = frozenset(
    "shape size dim numel nelement device dtype ndim stride layout is_cuda get_device element_size".split()
)
"""Attributes and methods that tell of a tensor without reading it."""
_GENERATIONS = 16
_MODES = frozenset({"eval", "train"})


class Lookups:
    """The collections of a file, by definition."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._texts: dict[FunctionInfo | None, Text] = {}
        self._homes: dict[int, list[FunctionInfo]] = {}
        self._housed = 0

    def of(self, info: FunctionInfo | None, inside: list[ast.AST]) -> Text:
        """What the text of a function says, or of the top level (``None``), whose own nodes are ``inside``."""
        found = self._texts.get(info)
        if found is None:
            root: ast.AST = info.node if info else self._tree
            found = self._texts[info] = Text(root, inside)
        return found

    def functions_around(self, index: Index, node: ast.AST) -> list[FunctionInfo]:
        """The functions in the same statement of the top level as a node."""
        functions = index.functions
        for info in islice(functions.values(), self._housed, None):
            self._homes.setdefault(self._home(info.node), []).append(info)
        self._housed = len(functions)
        return self._homes.get(self._home(node), [])

    def apart(self, index: Index, first: ast.AST | None, others: tuple[ast.AST, ...]) -> bool:
        """Whether nodes stand in several functions; there may be none but the ``first``."""
        if not others:
            return False
        rows = {(info.node.lineno, info.node.end_lineno or 0) for info in index.functions.values()}
        homes = {
            max((span for span in rows if span[0] <= getattr(node, "lineno", 0) <= span[1]), default=None)
            for node in (first, *others)
            if node is not None
        }
        return len(homes) > 1

    def _home(self, node: ast.AST) -> int:
        return bisect.bisect_right(self._tree.body, place(node), key=place)


class Text:
    """The text of one definition, or of the whole file."""

    def __init__(self, root: ast.AST, inside: list[ast.AST]) -> None:
        self._root = root
        self._inside = inside
        self.wrappers: tuple[str, ...] | None = None
        """The wrappers for several devices that it uses, once somebody has looked."""

    def holds(self, node: ast.AST) -> bool:
        """Whether a node belongs to the definition."""
        return id(node) in self._identities

    @cached_property
    def _identities(self) -> frozenset[int]:
        return frozenset(map(id, self._inside))

    @cached_property
    def last_read(self) -> dict[str, int]:
        """The last row where each name is read, but for what only describes it."""
        rows: dict[str, int] = {}
        for name in read(self._root):
            rows[name.id] = max(rows.get(name.id, 0), name.lineno)
        return rows

    @cached_property
    def networks(self) -> frozenset[str]:
        """What ``eval()`` or ``train()`` is called of."""
        return frozenset(
            names.dotted(node.func.value)
            for node in self._inside
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MODES
        )

    def restores(self, call: ast.Call, foreign: bool = False) -> bool:
        """Whether what a call returns goes into ``load_state_dict``, under a name or without one.

        ``foreign`` says that the object itself is no module, and restores its state in a way of its own.
        """
        calls, loaded = self._restored_elsewhere if foreign else self._restored
        return id(call) in calls or not loaded.isdisjoint(self._named.get(id(call), ()))

    @cached_property
    def _restored(self) -> tuple[set[int], set[str]]:
        return self._given("")

    @cached_property
    def _restored_elsewhere(self) -> tuple[set[int], set[str]]:
        return self._given("self")

    def _given(self, besides: str) -> tuple[set[int], set[str]]:
        """The calls, by identity, and the names in the first argument of a ``load_state_dict`` that copies.

        That of ``besides`` is left out.
        """
        calls: set[int] = set()
        loaded: set[str] = set()
        for node in self._nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                copies = node.func.attr == "load_state_dict" and not _assigns(node)
                other = not besides or names.dotted(node.func.value) != besides
                for argument in node.args[:1] if copies and other else ():
                    inside = nodes.walk(argument)
                    calls.update(id(inner) for inner in inside if isinstance(inner, ast.Call))
                    loaded.update(inner.id for inner in inside if isinstance(inner, ast.Name))
        return calls, loaded

    @cached_property
    def _named(self) -> dict[int, set[str]]:
        """The names that are given what each call, by identity, returns, or what is made of that."""
        found: dict[int, set[str]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Assign):
                targets = {name.id for name in node.targets if isinstance(name, ast.Name)}
                for inner in nodes.walk(node.value) if targets else ():
                    if isinstance(inner, ast.Call):
                        found.setdefault(id(inner), set()).update(targets)
        return found

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        return nodes.walk(self._root)


def _assigns(call: ast.Call) -> bool:
    """Whether a call of ``load_state_dict`` may keep the tensors that it is given instead of copying their values."""
    asked = next((keyword.value for keyword in call.keywords if keyword.arg == "assign"), None)
    return asked is not None and not (isinstance(asked, ast.Constant) and asked.value is False)


def inherits_deeply(info: ClassInfo) -> bool:
    """Whether a class has more generations of bases than anybody would follow; what they keep in ``self`` is let be."""
    generation = {info}
    for _ in range(_GENERATIONS):
        generation = {parent for known in generation for parent in known.parents()}
        if not generation:
            return False
    return True


def place(node: ast.AST) -> tuple[int, int]:
    """Where a node begins."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def read(node: ast.AST) -> Iterator[ast.Name]:
    """The names that an expression or statement reads, but for what only describes a tensor, such as ``x.shape``."""
    rest = [node]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                yield node
        elif not (isinstance(node, ast.Attribute) and node.attr in DESCRIPTIONS):
            rest.extend(ast.iter_child_nodes(node))
