"""Functions that run once in each training step, wherever their loop is: by what they do, or for whom."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.flow.syntax import names, nodes
from devlint.flow.syntax.nodes import derived
from devlint.source.syntax import below

_BACKWARD = frozenset({"backward", "manual_backward"})
"""Methods that send a loss backward: its own, that of a wrapper, Lightning's."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LOSS = "loss"
"""What frameworks call the loss among the results of a step."""


def is_hook(info: FunctionInfo) -> bool:
    """Whether a library calls the method once in every training step."""
    return info.owner is not None and info.name in _hooks(info.owner)


@derived
def _hooks(info: ClassInfo) -> frozenset[str]:
    rows = map(info.index.catalog.row, info.roots())
    return frozenset(name for row in rows if row is not None for name in row.steps)


@derived
def is_step(info: FunctionInfo) -> bool:
    """Whether a call is a training step, or a part of one: something goes backward there, and in no loop of its own."""
    if not info.index.mentions("backward"):
        return False
    once = below(list(info.node.body), (*nodes.DEFINITIONS, *_LOOPS, ast.Lambda))
    # what explains a network sends something backward, too
    explains = any(names.method(node) == "eval" for node in once)
    return not explains and not info.initialises and any(names.method(node) in _BACKWARD for node in once)


def losses(inside: Iterable[ast.AST]) -> frozenset[str]:
    """The names of what goes backward."""
    found: set[str] = set()
    for node in inside:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _BACKWARD:
            found.update(name for part in (node.func.value, *node.args) for name in _makers(part))
    return frozenset(found)


@derived
def _losses(info: FunctionInfo) -> frozenset[str]:
    """The names of what goes backward in a step, be it that a library does that with what a hook returns."""
    returned = [node.value for node in info.own if isinstance(node, ast.Return)] if is_hook(info) else []
    return losses(info.own).union(name for value in returned for name in _given_back(value))


def is_loss(info: FunctionInfo, node: ast.expr) -> bool:
    """Whether an expression is a loss of the step that a function is, perhaps without its graph."""
    if not isinstance(node, ast.Subscript):
        return is_among(node, _losses(info))
    item = is_hook(info) and isinstance(node.slice, ast.Constant) and node.slice.value == _LOSS
    return item and any(argument.arg == names.dotted(node.value) for argument in info.parameters)


def is_among(node: ast.expr, known: frozenset[str]) -> bool:
    """Whether an expression is one of the names, or the same without its graph."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
        node = node.func.value
    return isinstance(node, (ast.Name, ast.Attribute)) and names.dotted(node) in known


def _makers(node: ast.expr) -> Iterator[str]:
    """The names that an expression is: one, scaled or not, or a sum."""
    if isinstance(node, ast.BinOp):
        yield from (*_makers(node.left), *_makers(node.right))
    elif isinstance(node, ast.Call):
        for argument in node.args:
            yield from _makers(argument)
    elif isinstance(node, (ast.Name, ast.Attribute)) and (name := names.dotted(node)):
        yield name


def _given_back(node: ast.expr | None) -> Iterator[str]:
    """The names by which a hook gives the loss back: alone, as the first of several things, or as an item."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        yield names.dotted(node)
    elif isinstance(node, ast.IfExp):
        yield from (*_given_back(node.body), *_given_back(node.orelse))
    elif isinstance(node, ast.Tuple):
        yield from _given_back(node.elts[0] if node.elts else None)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == _LOSS:
                yield from _given_back(value)
