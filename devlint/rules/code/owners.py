"""What a file does with the modules of a class of its own, and what its bases keep in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from devlint.flow.catalog.methods import TO_DEVICE
from devlint.flow.syntax.names import called, dotted, method, of_self
from devlint.flow.syntax.nodes import parameters
from devlint.rules.code.blocks import assigned, function_at, given, statement_of
from devlint.source.syntax import walk
from devlint.source.tree import Source

_TRIES = ("main", "test")
"""How functions that only try something out are called."""


@lru_cache(maxsize=8)
def _classes(tree: ast.AST) -> dict[str, ast.ClassDef]:
    """The classes of a file by their names."""
    return {found.name: found for found in walk(tree) if isinstance(found, ast.ClassDef)}


def is_set_by_base(source: Source, owner: str, name: str) -> bool:
    """Whether the constructor of a base of the file assigns an attribute before that of the class does."""
    classes = _classes(source.tree)
    seen, rest = {owner}, [owner]
    while rest:
        here = classes.get(rest.pop())
        fresh = {dotted(base) for base in here.bases} - seen if here is not None else set()
        seen |= fresh
        rest += fresh
    bases = (classes[found] for found in seen - {owner} if found in classes)
    makers = (part for base in bases for part in base.body if getattr(part, "name", "") == "__init__")
    inside = (node for maker in makers for node in walk(maker) if isinstance(node, ast.Attribute))
    return any(of_self(node) == name and isinstance(node.ctx, ast.Store) for node in inside)


def is_never_moved(source: Source, owner: str) -> bool:
    """Whether functions make modules of a class, use them in the file alone, and move none."""
    names = set[str]()
    for made in _made(source, owner):
        statement = statement_of(source, made)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if len(targets) != 1 or not isinstance(targets[0], ast.Name):
            return False
        names.add(targets[0].id)
    inside = walk(source.tree) if names else []
    defined = {node.name: node for node in inside if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    for call in (node for node in inside if isinstance(node, ast.Call)):
        taker = defined.get(method(call) or called(call))
        names |= set(_taken(call, taker, names)) if taker is not None else set()
    kept: set[ast.AST] = set()
    for node in inside:
        # called, read of, or handed to a function of the file, under whatever name
        if isinstance(node, ast.Call):
            kept.add(node.func)
            kept.update(given(node) if (method(node) or called(node)) in defined else ())
        elif isinstance(node, ast.Attribute) and node.attr not in TO_DEVICE:
            kept.add(node.value)
    used = (node for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return bool(names) and all(node in kept for node in used if node.id in names)


def _taken(call: ast.Call, taker: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str]) -> Iterator[str]:
    """The parameters by which a function takes what a call gives it under one of some names."""
    takes = [one.arg for one in parameters(taker.args) if one.arg not in ("self", "cls")]
    yield from (name for name, value in zip(takes, call.args, strict=False) if getattr(value, "id", None) in names)
    yield from (word.arg for word in call.keywords if word.arg and getattr(word.value, "id", None) in names)


def moves_to_itself(source: Source, name: str, move: ast.AST) -> bool:
    """Whether an attribute is moved to a device that was taken from it: ``self.device = self.mask.device``."""
    told = [ast.unparse(target) for target in given(move)] if isinstance(move, ast.Call) else []
    held = (value for target in told[:1] for _, value in assigned(source.tree).get(target, ()))
    return any(dotted(value) == f"self.{name}.device" for value in held)


@lru_cache(maxsize=8)
def _calls(tree: ast.AST) -> dict[str, list[ast.Call]]:
    """The calls of a file by the names of what is called."""
    found: dict[str, list[ast.Call]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Call):
            found.setdefault(called(node), []).append(node)
    return found


def _made(source: Source, owner: str) -> Iterator[ast.Call]:
    """The calls that make modules of a class in functions which do not only try it out."""
    for call in _calls(source.tree).get(owner, ()):
        name = getattr(function_at(source, call), "name", "")
        if name and not name.startswith(_TRIES):
            yield call
