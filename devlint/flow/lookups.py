"""What is asked again for each site of a definition, collected once: a definition may have thousands of sites."""

from __future__ import annotations

import ast
import bisect
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from devlint.flow import names

if TYPE_CHECKING:
    from devlint.flow.frame import Frame
    from devlint.flow.index import FunctionInfo, Index

_DESCRIPTIONS = frozenset(
    "shape size dim numel nelement device dtype ndim stride layout is_cuda get_device element_size".split()
)
"""Attributes and methods that tell of a tensor without reading it."""
_MODES = frozenset({"eval", "train"})


class Lookups:
    """The collections of a file, by definition."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._texts: dict[FunctionInfo | None, Text] = {}
        self._homes: dict[int, list[FunctionInfo]] = {}
        self._housed = 0

    def of(self, frame: Frame) -> Text:
        """What the text of the definition says that runs in a frame."""
        found = self._texts.get(frame.info)
        if found is None:
            root: ast.AST = frame.info.node if frame.info else self._tree
            found = self._texts[frame.info] = Text(root, frame.inside)
        return found

    def functions_around(self, index: Index, node: ast.AST) -> list[FunctionInfo]:
        """The functions in the same statement of the top level as a node."""
        functions = index.functions
        for info in islice(functions.values(), self._housed, None):
            self._homes.setdefault(self._home(info.node), []).append(info)
        self._housed = len(functions)
        return self._homes.get(self._home(node), [])

    def _home(self, node: ast.AST) -> int:
        return bisect.bisect_right(self._tree.body, place(node), key=place)


class Text:
    """The text of one definition, or of the whole file."""

    def __init__(self, root: ast.AST, inside: list[ast.AST]) -> None:
        self._root = root
        self._inside = inside

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
        elif not (isinstance(node, ast.Attribute) and node.attr in _DESCRIPTIONS):
            rest.extend(ast.iter_child_nodes(node))
