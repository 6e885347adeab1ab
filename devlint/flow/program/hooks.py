"""Hooks that modules run around their calls, which may move what goes in and what comes out."""

from __future__ import annotations

import ast

from devlint.flow.syntax import names, nodes

_REGISTERING = frozenset(f"register_{of}forward_{kind}" for of in ("", "module_") for kind in ("hook", "pre_hook"))
_NOTHING = frozenset({"append", "extend", "update", "add", "__setitem__", "print"})
"""What returns nothing."""


def exchange(tree: ast.Module, text: str) -> bool:
    """Whether some hook of the file returns something, which takes the place of a module's inputs or its result."""
    if "forward_hook" not in text and "forward_pre_hook" not in text:
        return False
    for node in nodes.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            hook = nodes.argument(node, 0, "hook") if name in _REGISTERING else None
            if hook is not None and _returns(tree, hook):
                return True
    return False


def _returns(tree: ast.Module, hook: ast.expr) -> bool:
    """Whether a hook may return something; one that cannot be seen may."""
    if isinstance(hook, ast.Call):
        # what is bound by partial(), or a function that makes the hook
        if names.dotted(hook.func).endswith("partial") and hook.args:
            return _returns(tree, hook.args[0])
        inside = [node for maker in _named(tree, hook.func) for node in nodes.walk(maker)[1:]]
        made = [node for node in inside if isinstance(node, (ast.FunctionDef, ast.Lambda))]
        return not made or any(map(_gives, made))
    found = [hook] if isinstance(hook, ast.Lambda) else _named(tree, hook)
    return not found or any(map(_gives, found))


def _named(tree: ast.Module, node: ast.expr) -> list[ast.FunctionDef]:
    """The functions of the file, wherever they are defined, that a name may mean."""
    name = names.dotted(node).rpartition(".")[2]
    return [found for found in nodes.walk(tree) if isinstance(found, ast.FunctionDef) and found.name == name]


def _gives(function: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a function may return anything but ``None``."""
    if isinstance(function, ast.Lambda):
        return names.called(function.body).rpartition(".")[2] not in _NOTHING
    results = [node.value for node in nodes.own(function) if isinstance(node, ast.Return)]
    return any(value is not None and getattr(value, "value", ...) is not None for value in results)
