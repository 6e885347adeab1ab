"""What surely has a `.device`: a tensor by its annotation, or by what the code does with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from devlint.flow.catalog import torch_table
from devlint.flow.catalog.creation import JOINING
from devlint.flow.program.type_hints import TENSOR_ONLY, annotated
from devlint.flow.syntax.names import called, dotted, imported, of_self
from devlint.flow.syntax.nodes import parameters
from devlint.rules.code.blocks import around, method_of, receiver
from devlint.source.syntax import walk
from devlint.source.tree import Source

_OF_TENSORS = TENSOR_ONLY | frozenset({"shape", "size", "dim", "ndim", "device", "dtype", "is_cuda", "new_zeros"})
"""Attributes and methods that show a tensor, or what has a device as one."""
_HAVE_DEVICES = frozenset({"tensor", "device"})
_OF_LISTS = frozenset({"append", "extend", "insert", "pop"})
_COUNTED = frozenset({"len", "enumerate", "zip", "reversed"})
_OF_NUMBERS = (ast.Sub, ast.Div, ast.MatMult, ast.Pow)
_NEVER = (ast.List, ast.Tuple, ast.ListComp, ast.Constant, ast.JoinedStr)
"""With what a list may be added up, or multiplied."""


def has_device(source: Source, node: ast.AST, text: str) -> bool:
    """Whether what an expression calls at ``node`` is shown to have a `.device`; `self` keeps what the flow knows."""
    function = around(source, node)
    return text.startswith("self.") or text in _shown(function, source.tree)


def says_tensor(function: ast.AST, name: str) -> bool:
    """Whether a parameter is a tensor by its annotation."""
    arguments = getattr(function, "args", None)
    return isinstance(arguments, ast.arguments) and name in set(_annotated(arguments))


@lru_cache(maxsize=2)
def _names(tree: ast.Module) -> tuple[tuple[str, str], ...]:
    """What a file calls things of torch."""
    imports = (node for node in walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    found = (pair for statement in imports for pair in imported(statement).items())
    return tuple((name, path) for name, path in found if path.partition(".")[0] == "torch")


@lru_cache(maxsize=8)
def _shown(function: ast.AST, tree: ast.Module) -> frozenset[str]:
    inside, paths, layers = walk(function), dict(_names(tree)), _layers(tree)
    arguments = getattr(function, "args", None)
    found = set(_annotated(arguments)) if isinstance(arguments, ast.arguments) else set()
    fed: set[str] = set()
    lists: set[str] = set()
    for node in inside:
        found.update(map(ast.unparse, _proven(node, paths)))
        lists.update(map(ast.unparse, _listed(node)))
        if isinstance(node, ast.Call) and of_self(node.func) in layers:
            # a layer is given tensors, but for one that takes several things
            fed.update(map(ast.unparse, node.args))
    return frozenset(found | (fed - lists))


@lru_cache(maxsize=2)
def _layers(tree: ast.Module) -> frozenset[str]:
    """The attributes of ``self`` that are layers of torch, which are given tensors and nothing else."""
    paths = dict(_names(tree))
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            head, _, rest = called(node.value).partition(".")
            path = ".".join(filter(None, (paths.get(head, ""), rest)))
            if torch_table.module(path) is not None:
                found.update(filter(None, map(of_self, node.targets)))
    return frozenset(found)


def _annotated(arguments: ast.arguments) -> Iterator[str]:
    for one in parameters(arguments):
        if one.annotation is not None and annotated(one.annotation) in _HAVE_DEVICES:
            yield one.arg


def _proven(node: ast.AST, paths: dict[str, str]) -> Iterator[ast.expr]:
    """What a node shows to be a tensor."""
    if isinstance(node, ast.Attribute) and node.attr in _OF_TENSORS:
        yield node.value
    elif isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        alone = isinstance(node.op, _OF_NUMBERS) or not any(isinstance(side, _NEVER) for side in sides)
        yield from sides if alone else ()
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Lt, ast.Gt, ast.LtE, ast.GtE)):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        several = any(isinstance(part, ast.Slice) for part in node.slice.elts)
        yield from [node.value] if several else []
    elif isinstance(node, ast.Call):
        yield from _taken(node, paths)


def _taken(call: ast.Call, paths: dict[str, str]) -> Iterator[ast.expr]:
    """The arguments of a function of torch's that are tensors."""
    head, _, rest = called(call).partition(".")
    path = ".".join(filter(None, (paths.get(head, ""), rest)))
    entry = torch_table.function(path) if head in paths else None
    if entry is None or not call.args:
        return
    first = call.args[0]
    if path in JOINING:
        yield from first.elts if isinstance(first, (ast.List, ast.Tuple)) else ()
    else:
        yield from (one for at, one in enumerate(call.args) if entry.parameter_at(at) in entry.rejects_cpu | {"input"})


def _listed(node: ast.AST) -> Iterator[ast.expr]:
    """What a node takes for a list: something goes over it, counts it, appends to it, or takes its last item."""
    if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield node.iter
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.UnaryOp)):
        yield node.value
    elif isinstance(node, ast.Call) and dotted(node.func) in _COUNTED:
        yield from node.args
    elif isinstance(node, ast.Call) and method_of(node) in _OF_LISTS:
        yield receiver(node) or node
