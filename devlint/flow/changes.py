"""What the methods of a class do to ``self``: what they assign and move."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from devlint.flow import names, nodes
from devlint.flow.evidence import defaults_of
from devlint.flow.values import Loader, Tensor, Value

if TYPE_CHECKING:
    from devlint.flow.index import ClassInfo, FunctionInfo


_MOVES = frozenset({"to", "cuda", "xpu", "hpu", "npu", "mps", "to_empty"})


def changed(methods: Iterable[FunctionInfo]) -> dict[str, str]:
    """The attributes that a method other than ``__init__`` assigns ("assigned") or moves ("moved")."""
    found: dict[str, str] = {}
    for method in methods:
        if method.name == "__init__":
            continue
        moved = set(nodes.moved_in_place(method.nodes))
        for node in method.nodes:
            if not isinstance(node, (ast.Attribute, ast.Subscript)):
                continue
            if isinstance(node, ast.Subscript):
                item = names.dotted(node.value)
                if isinstance(node.ctx, ast.Store) and item.startswith("self.") and item.count(".") == 1:
                    found[item.partition(".")[2]] = "assigned"
                continue
            if isinstance(node.ctx, (ast.Store, ast.Del)) and names.dotted(node.value) == "self":
                found[node.attr] = "moved" if node in moved and found.get(node.attr) != "assigned" else "assigned"
            elif node.attr in ("to", "cuda", "cpu") and names.dotted(node.value).startswith("self."):
                found.setdefault(names.dotted(node.value).split(".")[1], "moved")
    return found


def survives(info: ClassInfo, attribute: str, held: Value) -> bool:
    """Whether an attribute is what ``__init__`` made it although a method assigns it."""
    if isinstance(held, Loader):
        return _constructed(info, attribute)
    # nothing but another parameter can take the place of one
    return info.is_module and isinstance(held, Tensor) and held.buffer and held.grad == "parameter"


def _constructed(info: ClassInfo, attribute: str) -> bool:
    """Whether nothing but the constructor, and methods that only it calls, assigns an attribute of ``self``."""
    return all(
        method.initialises
        for method in info.methods.values()
        for node in method.attributes
        if node.attr == attribute and not isinstance(node.ctx, ast.Load)
    )


def places(methods: Iterable[FunctionInfo]) -> bool:
    """Whether what runs in the constructor moves something, or makes it on a device that nobody has to pass."""
    for method in methods:
        defaults = defaults_of(method.node.args)
        given = {parameter.arg for parameter in method.parameters if _is_none(defaults.get(parameter.arg))}
        if not method.initialises:
            continue
        if any(isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES for node in method.calls):
            return True
        if any(node.arg == "device" and not _is_passed(node.value, given) for node in method.of(ast.keyword)):
            return True
    return False


def _is_passed(node: ast.expr, given: set[str]) -> bool:
    """Whether a device is what the caller passes, or none."""
    return (isinstance(node, ast.Name) and node.id in given) or (isinstance(node, ast.Constant) and _is_none(node))


def _is_none(default: ast.expr | None) -> bool:
    return default is None or (isinstance(default, ast.Constant) and default.value is None)
