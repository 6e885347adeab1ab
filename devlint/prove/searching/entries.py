"""How code is entered in which something is claimed: by a call, by a method of an object, or by importing a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from devlint.prove.claim import Claim

MOST = 8
"""So many ways to enter the code are tried."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
_OF_OBJECTS = frozenset({"DVL105", "DVL106"})
"""Rules whose mistake can be seen in an object that has just been made."""
_MADE_BY = ("__init__", "__new__", "__post_init__", "setup")


@dataclass(frozen=True)
class Entry:
    """A function, or a class and a method of it, by the names that lead there; with neither it is the file itself.

    ``result``: what the function returns is called, too.
    """

    owner: tuple[str, ...] = ()
    name: str = ""
    result: bool = False

    @property
    def is_module(self) -> bool:
        """Whether the file is only imported, or run."""
        return not self.owner and not self.name


def entries(tree: ast.Module, claim: Claim) -> list[Entry]:
    """The ways to enter the code of a claim, the most direct first."""
    found: dict[Entry, None] = {}
    own = _scopes(tree, claim.span[0])
    entry = _entry(own)
    if entry.owner and entry.name in _MADE_BY:
        for rows in claim.related:
            if rows.file == claim.file:
                other = _entry(_scopes(tree, rows.first))
                if other.owner == entry.owner and other.name not in _MADE_BY:
                    found[other] = None
        entry = Entry(entry.owner)
        if "forward" in _methods(own):
            found.setdefault(Entry(entry.owner, "forward"))
        if claim.code in _OF_OBJECTS:
            found = {entry: None, **found}
    found[entry] = None
    waiting = list(found)
    while waiting and len(found) < MOST:
        callers = [caller for caller in dict.fromkeys(_callers(tree, waiting.pop(0))) if caller not in found]
        found.update(dict.fromkeys(callers))
        waiting += callers
    return list(found)[:MOST]


def definition(tree: ast.Module, entry: Entry) -> Function | None:
    """The function that an entry begins with."""
    body: list[ast.stmt] = tree.body
    for name in entry.owner:
        owner = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == name), None)
        if owner is None:
            return None
        body = owner.body
    return next((node for node in body if isinstance(node, Function) and node.name == entry.name), None)


def conditions(tree: ast.Module, claim: Claim) -> frozenset[str]:
    """The names in the conditions around the places of a claim."""
    rows = [place.first for place in claim.harm if place.file == claim.file]
    return frozenset(
        name
        for node in ast.walk(tree)
        if isinstance(node, (ast.If, ast.While, ast.IfExp))
        if any(node.lineno <= row <= (node.end_lineno or row) for row in rows)
        for part in ast.walk(node.test)
        if (name := part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else "")
    )


def _scopes(tree: ast.Module, row: int) -> list[Function | ast.ClassDef]:
    """The functions and classes around a row, the outermost first."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, Function | ast.ClassDef) and node.lineno <= row <= (node.end_lineno or row)
    ]
    return sorted(around, key=lambda node: node.lineno)


def _entry(scopes: list[Function | ast.ClassDef]) -> Entry:
    owner: list[str] = []
    for number, scope in enumerate(scopes):
        if not isinstance(scope, ast.ClassDef):
            return Entry(tuple(owner), scope.name, len(scopes) > number + 1)
        owner.append(scope.name)
    return Entry()


def _methods(scopes: list[Function | ast.ClassDef]) -> set[str]:
    owner = next((scope for scope in reversed(scopes) if isinstance(scope, ast.ClassDef)), None)
    return {node.name for node in owner.body if isinstance(node, Function)} if owner else set()


def _callers(tree: ast.Module, entry: Entry) -> Iterator[Entry]:
    """The functions of the file that name the one of the entry, or its class, and what the file itself does."""
    name = entry.name or (entry.owner[-1] if entry.owner else "")
    if not name:
        return
    for node in ast.walk(tree):
        named = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if named == name and isinstance(node, ast.expr):
            caller = _entry(_scopes(tree, node.lineno))
            made = Entry(caller.owner) if caller.name in _MADE_BY else caller
            if made != entry:
                yield made
