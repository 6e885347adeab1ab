"""What a file does with the modules of a class of its own, and what its bases keep in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.flow.catalog.methods import TO_DEVICE
from devlint.flow.syntax.names import called, dotted, method, of_self
from devlint.rules.code.blocks import assigned, function_at, given, method_of, receiver, statement_of
from devlint.source.syntax import walk
from devlint.source.tree import Source

_TRIES = ("main", "test")
"""How functions that only try something out are called."""


def is_set_by_base(source: Source, owner: str, name: str) -> bool:
    """Whether the constructor of a base of the file assigns an attribute before that of the class does."""
    classes = {found.name: found for found in walk(source.tree) if isinstance(found, ast.ClassDef)}
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
    """Whether functions make modules of a class, and neither they nor those that they hand them to move one."""
    names = set[str]()
    for made in _made(source, owner):
        statement = statement_of(source, made)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if len(targets) != 1 or not isinstance(targets[0], ast.Name):
            return False
        names.add(targets[0].id)
    calls = [node for node in walk(source.tree) if isinstance(node, ast.Call)] if names else []
    defined = {node.name for node in walk(source.tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    for call in calls:
        taken = {getattr(argument, "id", None) for argument in given(call)}
        if not names.isdisjoint(taken) and (method(call) or called(call)) not in defined:
            return False
        if method_of(call) in TO_DEVICE and getattr(receiver(call), "id", None) in names:
            return False
    return bool(names)


def moves_to_itself(source: Source, name: str, move: ast.AST) -> bool:
    """Whether an attribute is moved to a device that was taken from it: ``self.device = self.mask.device``."""
    told = [ast.unparse(target) for target in given(move)] if isinstance(move, ast.Call) else []
    held = (value for target in told[:1] for _, value in assigned(source.tree).get(target, ()))
    return any(dotted(value) == f"self.{name}.device" for value in held)


def _made(source: Source, owner: str) -> Iterator[ast.Call]:
    """The calls that make modules of a class in functions which do not only try it out."""
    for call in walk(source.tree):
        if isinstance(call, ast.Call) and called(call) == owner:
            name = getattr(function_at(source, call), "name", "")
            if name and not name.startswith(_TRIES):
                yield call
