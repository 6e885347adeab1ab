"""What stands on the way to a place in a function: the conditions for it, and which names have a value there."""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator

from devlint.flow.program.type_hints import defaults_of
from devlint.flow.syntax.names import imported
from devlint.flow.syntax.nodes import DEFINITIONS
from devlint.rules.code.blocks import (
    Way,
    around,
    builds_no_graph,
    earlier,
    function_at,
    outermost_function,
    statement_around,
    stores,
    way,
    way_to,
)
from devlint.source.syntax import below, says_none, walk
from devlint.source.tree import Source

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_INNER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_TAKEN_TO_RUN = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)
_TELLING = frozenset({"exists", "isinstance", "hasattr", "is_tensor", "is_torch_tensor"})
"""Functions that are true of no None, by their names."""

_ENTRIES = frozenset({"forward", "__call__", "loss", "compute_loss"})
"""The methods of a module that whoever trains it calls in each step."""


def stands_at(source: Source, expression: str, node: ast.AST) -> bool:
    """Whether all names of ``expression`` surely have a value at ``node``, and nothing on the way says it is None."""
    function = around(source, node)
    inner, outer = way(function, node), way(source.tree, function)
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        return False
    inside = walk(tree)
    parts = {ast.unparse(part) for part in inside if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript))}
    names = {part.id for part in inside if isinstance(part, ast.Name)}
    # of Python's own functions only the result is anywhere: `input.device` is that of a variable elsewhere
    called = {call.func.id for call in inside if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)}
    names -= {name for name in called if hasattr(builtins, name) and name not in _bound_in(function)}
    return inner is not None and all(_has_value(source, name, parts, function, inner, outer or []) for name in names)


def is_bound_at(source: Source, name: str, node: ast.AST) -> bool:
    """Whether a name is bound by the time that the code comes to ``node``, if only to None, or nowhere in the file.

    The body of a loop is taken to run, and that of a `try` to come to its end; what is around a function has run to its
    end when that is called.
    """
    function = around(source, node)
    if name not in stores(source.tree):
        # what methods call their object has no value in a static one
        static = any(ast.unparse(one) == "staticmethod" for one in getattr(function, "decorator_list", ()))
        return _is_given(source, name, function) if name != "self" else not static
    inner, outer = way(function, node), way(source.tree, function) or []
    if function is source.tree or name in _parameters(function) or name in _bound_in(function):
        return inner is not None and _has_value(source, name, set(), function, inner, outer)
    scopes = [scope for scope, _ in outer if isinstance(scope, (ast.Module, *_FUNCTIONS))]
    ends = (getattr(scope, "body", []) for scope in scopes)
    return any(name in _parameters(scope) for scope in scopes) or any(
        _runs_to_bind(statement, name) for body in ends if isinstance(body, list) for statement in body
    )


def _is_given(source: Source, name: str, function: ast.AST) -> bool:
    """Whether a name that the file stores nowhere is an argument here, rather than only in another function."""
    if name not in _all_parameters(source.tree) or name in _bound_in(source.tree):
        return True
    return any(
        name in _parameters(scope) for scope in (function, *(outer for outer, _ in way(source.tree, function) or ()))
    )


def is_rebound(source: Source, name: str, node: ast.AST, later: ast.AST) -> bool:
    """Whether a function may bind a name anew between two places, the later one's statement excluded."""
    statement = statement_around(source, later) or later
    start, end = getattr(node, "lineno", 0), getattr(statement, "lineno", 0)
    rows = stores(around(source, node)).get(name, ())
    # by way of a loop, anything in the function comes between them
    return bool(rows) if end < start else any(start <= row < end for row in rows)


def conditions(source: Source, node: ast.AST) -> Iterator[ast.expr]:
    """The conditions in the function of ``node`` on which it hangs, or the absence of which."""
    for parent, child in way_to(source, node):
        test = getattr(parent, "test", None)
        if isinstance(test, ast.expr) and child is not test:
            yield test


def exclude_each_other(source: Source, first: ast.AST, second: ast.AST) -> bool:
    """Whether two nodes of a function are on different sides of a condition."""
    sides = dict(way_to(source, first))
    for outer, inner in way_to(source, second):
        other = sides.get(outer)
        if isinstance(outer, (ast.If, ast.IfExp)) and other is not None and outer.test not in (inner, other):
            body = outer.body if isinstance(outer.body, list) else [outer.body]
            if (inner in body) is not (other in body):
                return True
    return False


def runs_in_forward(source: Source, node: ast.AST) -> bool:
    """Whether a method may be a part of `forward`, or of a step: its class has no `forward`, or that comes to it."""
    method = outermost_function(source, node)
    for owner in walk(source.tree):
        if isinstance(owner, ast.ClassDef) and method in owner.body:
            methods = {each.name: each for each in owner.body if isinstance(each, DEFINITIONS)}
            return "forward" not in methods or getattr(method, "name", "") in _reached(methods)
    return True


def _reached(methods: dict[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]) -> set[str]:
    """The methods of a class that its `forward` and its steps mention, and those mention."""
    found = {name for name in methods if name in _ENTRIES or name.endswith("_step")}
    rest = [*found]
    while rest:
        named = (part.attr for part in walk(methods[rest.pop()]) if isinstance(part, ast.Attribute))
        fresh = methods.keys() & set(named) - found
        found |= fresh
        rest += fresh
    return found


def builds_no_graph_at(source: Source, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether code runs under ``torch.no_grad()``, or in a function that is only called where that is so."""
    function = function_at(source, node)
    withs = (outer for outer, _ in way_to(source, node) if isinstance(outer, ast.With))
    managers = [item.context_expr for outer in withs for item in outer.items]
    if function in seen or any(map(builds_no_graph, [*managers, *getattr(function, "decorator_list", ())])):
        return True
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or function.name.startswith("__"):
        # a constructor is not called by its name, but for that of the bases
        return False
    name = function.name
    everything = walk(source.tree)
    spoken = [part for part in everything if name in (getattr(part, "id", ""), getattr(part, "attr", ""))]
    calls = [part for part in everything if isinstance(part, ast.Call) and part.func in spoken]
    # who hands it on may call it anywhere
    known = bool(calls) and len(calls) == len(spoken)
    return known and all(builds_no_graph_at(source, call, seen | {function}) for call in calls)


def _has_value(source: Source, name: str, parts: set[str], function: ast.AST, inner: Way, outer: Way) -> bool:
    """Whether one of them has: the last thing on the way that is said of the name has the word."""
    for parent, child in reversed(inner):
        for before in reversed(earlier(source, child)):
            if _binds(before, name) or (not parts and _runs_to_bind(before, name)):
                return True
            if isinstance(before, ast.If) and _supplies(before, name):
                return True
            if isinstance(before, ast.If) and _leaves(before.body):
                said = _said(before.test, False, parts)
                if said is not None:
                    return said
        test, otherwise = getattr(parent, "test", None), getattr(parent, "orelse", None)
        holds = not (child in otherwise if isinstance(otherwise, list) else child is otherwise)
        said = _said(test, holds, parts) if isinstance(test, ast.expr) and child is not test else None
        if said is not None:
            return said
        if parent is not function and name in _bound_by(parent, child):
            return True
    if name in _parameters(function):
        # of what is left out nothing can be asked, but it may well be handed on
        asked = any(part.startswith(f"{name}.") for part in parts)
        return parts.isdisjoint(_perhaps_none(function)) and not (asked and _is_none_by_default(function, name))
    return name not in _bound_in(function) and any(name in _parameters(scope) | _bound_in(scope) for scope, _ in outer)


def _binds(statement: ast.AST, name: str) -> bool:
    """Whether the name has a value once the statement has been run."""
    if isinstance(statement, ast.If):
        ways = (statement.body, statement.orelse)
        if all(_leaves(block) or any(_binds(inner, name) for inner in block) for block in ways):
            return True
        return name in _bound_in(statement.test)
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return name in _bound_by(statement, None) or any(_binds(inner, name) for inner in statement.body)
    if hasattr(statement, "body"):
        return getattr(statement, "name", None) == name
    return name in _bound_in(statement)


def _runs_to_bind(statement: ast.stmt, name: str) -> bool:
    return name in _bound_in(statement) if isinstance(statement, _TAKEN_TO_RUN) else _binds(statement, name)


def _supplies(statement: ast.If, name: str) -> bool:
    """Whether it gives the name a value where it has none: ``if x is None: x = ...``."""
    bound = any(_binds(inner, name) for inner in statement.body)
    return bound and not statement.orelse and _said(statement.test, False, {name}) is True


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], _LEAVING)


def _said(test: ast.expr, holds: bool, parts: set[str]) -> bool | None:
    """What a condition that holds, or does not, says of ``parts``: that they have a value, or may be None."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _said(test.operand, not holds, parts)
    if isinstance(test, ast.BoolOp):
        said = [_said(value, holds, parts) for value in test.values]
        together = isinstance(test.op, ast.And) == holds
        return False if False in said else (True if together and True in said else None)
    if isinstance(test, ast.Compare) and says_none(test.comparators[0]) and ast.unparse(test.left) in parts:
        return isinstance(test.ops[0], (ast.Is, ast.Eq)) != holds
    if isinstance(test, ast.Call):
        asked = ast.unparse(test.func).rpartition(".")[2] in _TELLING and bool(test.args)
        return holds if asked and ast.unparse(test.args[0]) in parts else None
    return holds if ast.unparse(test) in parts else None


@functools.lru_cache(maxsize=8)
def _perhaps_none(function: ast.AST) -> frozenset[str]:
    """What a function compares with None."""
    compared = (node for node in ast.walk(function) if isinstance(node, ast.Compare))
    return frozenset(ast.unparse(node.left) for node in compared if says_none(node.comparators[0]))


def _is_none_by_default(function: ast.AST, name: str) -> bool:
    """Whether a parameter is None unless somebody says otherwise."""
    default = defaults_of(function.args).get(name) if isinstance(function, _FUNCTIONS) else None
    return default is not None and says_none(default)


def _bound_by(parent: ast.AST, child: ast.AST | None) -> set[str]:
    """The names to which what is around a node gives a value before it."""
    if isinstance(parent, _LOOPS):
        targets: list[ast.AST] = [parent.target] if child in parent.body else []
    elif isinstance(parent, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in parent.items if item.optional_vars and child not in parent.items]
    elif isinstance(parent, _FUNCTIONS):
        return _parameters(parent)
    else:
        targets = [generator.target for generator in getattr(parent, "generators", ())]
    return {name for node in targets for part in ast.walk(node) for name in _stored(part)}


def _parameters(function: ast.AST) -> set[str]:
    arguments = function.args if isinstance(function, _FUNCTIONS) else None
    return {part.arg for part in ast.walk(arguments) if isinstance(part, ast.arg)} if arguments else set()


@functools.lru_cache(maxsize=4)
def _all_parameters(tree: ast.AST) -> frozenset[str]:
    return frozenset(node.arg for node in walk(tree) if isinstance(node, ast.arg))


@functools.lru_cache(maxsize=32)
def _bound_in(scope: ast.AST) -> frozenset[str]:
    """The names that what is inside of a node binds, without those that are seen only in a part of it."""
    names: set[str] = set()
    for node in below([*ast.iter_child_nodes(scope)], (*_INNER, *DEFINITIONS)):
        names.update(_stored(node))
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update(imported(node))
        elif isinstance(node, DEFINITIONS):
            names.add(node.name)
    return frozenset(names)


def _stored(node: ast.AST) -> tuple[str, ...]:
    """The name that a node gives a value to."""
    return (node.id,) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ()
