"""Whether an expression that names a device has a value at another place of its function than where it was read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.rules.base import SourceText
from devlint.rules.blocks import function_at

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def stands_at(source: SourceText, expression: str, node: ast.AST) -> bool:
    """Whether all names of ``expression`` surely have a value at ``node``, and nothing on the way says it is None."""
    function = function_at(source, node) or source.tree
    way = _way(function, node)
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        return False
    parts = {ast.unparse(part) for part in ast.walk(tree) if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript))}
    names = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
    return way is not None and all(_has_value(name, parts, function, way) for name in names)


def _way(parent: ast.AST, node: ast.AST) -> list[tuple[ast.AST, ast.AST]] | None:
    """The nodes from ``parent`` down to ``node``, each with the one that it stands in."""
    if parent is node:
        return []
    row = int(getattr(node, "lineno", 0))
    for child in ast.iter_child_nodes(parent):
        if getattr(child, "lineno", row) <= row <= (getattr(child, "end_lineno", None) or row):
            rest = _way(child, node)
            if rest is not None:
                return [(parent, child), *rest]
    return None


def _has_value(name: str, parts: set[str], function: ast.AST, way: list[tuple[ast.AST, ast.AST]]) -> bool:
    """Whether one of them has: the last thing on the way that is said of the name has the word."""
    for parent, child in reversed(way):
        for earlier in _earlier(parent, child):
            if _binds(earlier, name):
                return True
            if isinstance(earlier, ast.If) and _leaves(earlier.body) and _none_if(earlier.test, False, parts):
                return False
        test = getattr(parent, "test", None)
        if isinstance(test, ast.expr) and child is not test and _none_if(test, _holds(parent, child), parts):
            return False
        if parent is not function and name in _bound_by(parent, child):
            return True
    bound_later = any(name in _stored(node) for node in ast.walk(function) if not isinstance(node, ast.Module))
    return name in _parameters(function) or not bound_later


def _earlier(parent: ast.AST, child: ast.AST) -> Iterator[ast.stmt]:
    """The statements in front of ``child`` in its block, the last one first."""
    for field in _BLOCKS:
        block: object = getattr(parent, field, None)
        if isinstance(block, list) and child in block:
            yield from reversed(block[: block.index(child)])


def _binds(statement: ast.AST, name: str) -> bool:
    """Whether the name has a value once the statement has been run."""
    if isinstance(statement, ast.If):
        ways = (statement.body, statement.orelse)
        if all(_leaves(block) or any(_binds(inner, name) for inner in block) for block in ways):
            return True
        return any(name in _stored(part) for part in ast.walk(statement.test))
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return name in _bound_by(statement, None) or any(_binds(inner, name) for inner in statement.body)
    if hasattr(statement, "body"):
        return getattr(statement, "name", None) == name
    return any(name in _stored(part) for part in ast.walk(statement))


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], _LEAVING)


def _none_if(test: ast.expr, holds: bool, parts: set[str]) -> bool:
    """Whether one of ``parts`` is None, or no tensor, by a condition that holds or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _none_if(test.operand, not holds, parts)
    if isinstance(test, ast.BoolOp):
        return any(_none_if(value, holds, parts) for value in test.values)
    if isinstance(test, ast.Compare) and ast.unparse(test.comparators[0]) == "None":
        same = isinstance(test.ops[0], (ast.Is, ast.Eq))
        return same == holds and ast.unparse(test.left) in parts
    asked = test.args[0] if isinstance(test, ast.Call) and test.args else test
    return not holds and ast.unparse(asked) in parts


def _holds(parent: ast.AST, child: ast.AST) -> bool:
    """Whether it is while the condition of ``parent`` holds that ``child`` is run."""
    otherwise: object = getattr(parent, "orelse", None)
    return not (child in otherwise if isinstance(otherwise, list) else child is otherwise)


def _bound_by(parent: ast.AST, child: ast.AST | None) -> set[str]:
    """The names to which what is around a node gives a value before it."""
    if isinstance(parent, _LOOPS):
        around: list[ast.AST] = [parent.target] if child in parent.body else []
    elif isinstance(parent, (ast.With, ast.AsyncWith)):
        around = [item.optional_vars for item in parent.items if item.optional_vars and child not in parent.items]
    elif isinstance(parent, _FUNCTIONS):
        return _parameters(parent)
    else:
        around = [generator.target for generator in getattr(parent, "generators", ())]
    return {name for node in around for part in ast.walk(node) for name in _stored(part)}


def _parameters(function: ast.AST) -> set[str]:
    arguments = function.args if isinstance(function, _FUNCTIONS) else None
    return {part.arg for part in ast.walk(arguments) if isinstance(part, ast.arg)} if arguments else set()


def _stored(node: ast.AST) -> tuple[str, ...]:
    """The name that a node gives a value to."""
    return (node.id,) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ()
