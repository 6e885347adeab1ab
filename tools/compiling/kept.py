"""Properties that are computed once, and objects that can be emptied, where there is no ``__dict__`` for that."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from tools.compiling.records import last_name

EMPTIED = frozenset({"Frame", "Interpreter", "Engine", "Holder", "FunctionInfo", "ClassInfo", "Index"})
"""The classes whose objects :mod:`devlint.flow.program.release` empties."""


def keep(node: ast.ClassDef) -> None:
    """Make a property with a place of its own of each ``cached_property`` of a class."""
    body: list[ast.stmt] = []
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and any(map(_is_cached, item.decorator_list)):
            if len(item.decorator_list) > 1 or item.returns is None:
                raise ValueError(f"{node.name}.{item.name}: one decorator and a type are what a kept property has")
            body += _property(item, ast.unparse(item.returns))
        else:
            body.append(item)
    node.body = body


def _is_cached(decorator: ast.expr) -> bool:
    return ast.unparse(decorator) in ("cached_property", "functools.cached_property")


def _property(item: ast.FunctionDef, kind: str) -> list[ast.stmt]:
    name = item.name
    item.name, item.decorator_list = f"make_{name}_", []
    return [
        item,
        *ast.parse(
            f"""
kept_{name}_: {kind}
@property
def {name}(self) -> {kind}:
    try:
        return self.kept_{name}_
    except AttributeError:
        pass
    self.kept_{name}_ = made = self.make_{name}_()
    return made
@{name}.setter
def {name}(self, made: {kind}) -> None:
    self.kept_{name}_ = made
"""
        ).body,
    ]


def empty(node: ast.ClassDef, owned: Mapping[str, Collection[str]]) -> None:
    """Give a class a method that deletes the attributes of an object, and say so to mypyc.

    ``owned`` says by the name of a class which attributes it has, so that a subclass leaves those of its bases to them.
    """
    if node.name not in EMPTIED:
        return
    bases = [last_name(base) for base in node.bases if last_name(base) in EMPTIED]
    attributes = [name for name in own_attributes(node) if not any(name in owned.get(base, ()) for base in bases)]
    node.body += ast.parse(
        f"""
__deletable__ = {attributes!r}
def dissolve_(self) -> None:
    for name in {attributes!r}:
        try:
            delattr(self, name)
        except AttributeError:
            pass
    {"super().dissolve_()" if bases else ""}
"""
    ).body


def own_attributes(node: ast.ClassDef) -> list[str]:
    """The attributes that a class declares or stores."""
    methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    declared = {
        item.target.id: item.value
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    stored = (part for item in node.body if isinstance(item, ast.FunctionDef) for part in ast.walk(item))
    found = dict.fromkeys([*declared, *(part.attr for part in stored if _is_stored(part))])
    return [name for name in found if name not in methods and declared.get(name) is None]


def _is_stored(part: ast.AST) -> bool:
    return (
        isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and isinstance(part.value, ast.Name)
        and part.value.id == "self"
    )
