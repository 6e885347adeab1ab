"""Moves that a module overrides: a module that contains it moves it without calling them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.flow.catalog.methods import CONVERSIONS, OF_MODULES
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Interpreter
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.flow.syntax import names
from devlint.sites.base import Scope, Step
from devlint.sites.devices import Override

_WHOLE = OF_MODULES | CONVERSIONS | {"_apply", "to_empty"}
"""What moves or converts the module as a whole, and so reaches what it contains."""


class OverriddenMoves(Observer):
    """The moves of a file's modules in which more is done than by their base."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._index = interpreter.index

    def sites(self) -> Iterator[Override]:
        """A site for each move that a module overrides, and in which it does more than its base."""
        for info in self._index.classes.values():
            if OF_MODULES.isdisjoint(info.methods) or not info.is_module or info.method("_apply") is not None:
                continue
            for name in OF_MODULES.intersection(info.methods):
                method = info.methods[name]
                moves = next((call for call in method.own if names.of_super(call) == name), None)
                besides = _besides(info, method)
                if moves is not None and besides is not None:
                    scope = Scope(function=name, owner=info.name, module=True)
                    yield Override(moves, scope, name, Step(besides, "nothing else calls this"))


def _besides(info: ClassInfo, method: FunctionInfo) -> ast.AST | None:
    """What the method itself changes in the module, as the arguments of the move say."""
    given = _given(method)
    for node in method.own:
        read: list[ast.expr] = []
        if isinstance(node, ast.Assign) and any(map(names.of_self, node.targets)):
            read = [node.value]
        elif isinstance(node, ast.Call):
            called = names.of_self(node.func)
            read = node.args if called not in _WHOLE and info.method(called) is not None else []
        if not given.isdisjoint(names.inside(*read)):
            return node
    return None


def _given(method: FunctionInfo) -> set[str]:
    """The names of the arguments, and of what is computed from them."""
    arguments = method.node.args
    found = {parameter.arg for parameter in method.parameters[1:]}
    found |= {rest.arg for rest in (arguments.vararg, arguments.kwarg) if rest is not None}
    for statement in method.node.body:
        if isinstance(statement, ast.Assign) and not found.isdisjoint(names.inside(statement.value)):
            found |= names.inside(*statement.targets)
    return found - {"self"}
