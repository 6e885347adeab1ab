"""Matrices of integers that are multiplied, which the CPU does and CUDA refuses."""

from __future__ import annotations

import ast
import re

from devlint.flow.syntax.names import root
from devlint.flow.syntax.nodes import holds
from devlint.rules.code.blocks import around, assigned, keyword_of, method_of
from devlint.source.syntax import walk
from devlint.source.tree import Source

_INTEGERS = re.compile(r"(?:u?int(?:8|16|32|64)?|long|short)$")
_WHOLE = frozenset({"randint", "randperm", "LongTensor", "IntTensor", "ShortTensor"})
"""Functions that make integers unless they are told otherwise."""
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm"})
_CONVERSIONS = frozenset({"float", "double", "half", "bfloat16", "to", "type", "type_as", "bool"})


def multiplies_integers(source: Source, made: ast.AST) -> bool:
    """Whether a call makes integers, of which its function makes a product of matrices, as they are."""
    if not isinstance(made, ast.Call) or not _makes_integers(made):
        return False
    function, names = around(source, made), set[str]()
    for target, values in assigned(function).items():
        # one name may be given a view of another, or of itself
        alike = (value for _, value in values if not _converts(value))
        if any(holds(value, made) or root(value) in names for value in alike):
            names.add(target)
    for node in walk(function):
        operands = [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PRODUCTS:
            operands = [node.func.value, *node.args]
        if any((holds(part, made) or root(part) in names) and not _converts(part) for part in operands):
            return True
    return False


def _makes_integers(made: ast.Call) -> bool:
    dtype = keyword_of(made, "dtype")
    if dtype is None:
        return method_of(made) in _WHOLE
    return _INTEGERS.fullmatch(ast.unparse(dtype).rpartition(".")[2]) is not None


def _converts(node: ast.expr) -> bool:
    """Whether a chain of methods makes other numbers of the integers at its beginning."""
    return any(method_of(part) in _CONVERSIONS for part in walk(node))
