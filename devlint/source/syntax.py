"""Syntax trees and their texts: walking them, several times faster than :func:`ast.walk` does, and what they say."""

from __future__ import annotations

import ast
import itertools
import re

_NO_CHILDREN = frozenset(
    {"ctx", "op", "ops", "id", "attr", "arg", "name", "names", "type_comment", "kind", "n", "s", "kwd_attrs", "rest"}
)
"""Fields that hold no expressions or statements (an ``ast.arg`` is reached through its arguments)."""
WITH_HOLES = frozenset({"keys", "kw_defaults"})
"""Fields with None in them: of a dict, for the key of ``**``; for the default of a parameter that has none."""
_KNOWN: dict[type, tuple[str, ...]] = {ast.Constant: ()}


def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a kind of node that lead further; none for what is no node, such as the key of ``**`` in a dict."""
    fields = _KNOWN.get(kind)
    if fields is None:
        fields = _KNOWN[kind] = tuple(name for name in getattr(kind, "_fields", ()) if name not in _NO_CHILDREN)
    return fields


def says_none(node: ast.AST | None) -> bool:
    """Whether an expression is there and is ``None`` as it is written."""
    return isinstance(node, ast.Constant) and node.value is None


def walk(root: ast.AST) -> list[ast.AST]:
    """``root`` and everything below it, breadth first; several times faster than :func:`ast.walk`."""
    return below([root], ())


def below(found: list[ast.AST], closed: tuple[type[ast.AST], ...]) -> list[ast.AST]:
    """``found`` and everything below, not looking into nodes of the ``closed`` kinds."""
    extend, append, known = found.extend, found.append, _KNOWN
    for node in found:
        kind = type(node)
        if kind in closed:
            continue
        for name in known[kind] if kind in known else _fields(kind):
            value = getattr(node, name, None)
            if value is None:
                continue
            if type(value) is list:
                extend(value if name not in WITH_HOLES else [part for part in value if part is not None])
            elif isinstance(value, ast.AST):
                append(value)
    return found


def makes_nothing(node: ast.AST | None) -> bool:
    """Whether a call makes a tensor without elements, which stands for nothing rather than for another."""
    first = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return (isinstance(first, ast.Constant) and first.value == 0) or (isinstance(first, ast.List) and not first.elts)


def line_starts(text: str) -> list[int]:
    """Where the lines of a text begin."""
    if "\r" in text:
        return [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    lengths = map(len, text.split("\n"))
    # each line but the last is followed by the one character that ends it
    return list(itertools.accumulate(lengths, lambda start, length: start + length + 1, initial=0))[:-1]
