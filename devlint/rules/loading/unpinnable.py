"""Batches that torch cannot pin: objects of a class that says nothing of it."""

from __future__ import annotations

import ast

from devlint.flow.syntax import names
from devlint.rules.code.blocks import keyword_of
from devlint.source.syntax import walk
from devlint.source.tree import Source

_PINNING = ("pin_memory", "__getattr__")
"""Methods by which an object may pin what it holds."""


def unpinnable(source: Source, made: ast.AST) -> ast.ClassDef | None:
    """The class of the file of which a loader's ``collate_fn`` makes all batches, if torch finds nothing to pin in it.

    It looks into tuples, lists and dicts, and asks any other object for its ``pin_memory()``
    (``torch.utils.data._utils.pin_memory``); what has none it hands on as it is.
    """
    collate = keyword_of(made, "collate_fn") if isinstance(made, ast.Call) else None
    tree = source.tree
    functions = (part for part in tree.body if isinstance(part, ast.FunctionDef) and names.is_name(collate, part.name))
    function = next(functions, None) if isinstance(collate, ast.Name) else None
    if function is None:
        return None
    returned = [part.value for part in walk(function) if isinstance(part, ast.Return)]
    classes = {part.name: part for part in tree.body if isinstance(part, ast.ClassDef)}
    made_of = {names.called(value) for value in returned if value is not None}
    found = classes.get(made_of.pop()) if len(made_of) == 1 and returned else None
    # of what another class gives it, nothing is known
    if found is None or found.bases or found.keywords:
        return None
    methods = (part.name for part in found.body if isinstance(part, ast.FunctionDef))
    return None if any(name in _PINNING for name in methods) else found
