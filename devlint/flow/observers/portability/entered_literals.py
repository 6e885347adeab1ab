"""Literal accelerators where they enter: defaults of a command line's options, arguments of the file's functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.objects import Class, Function
from devlint.flow.domain.values import Value
from devlint.flow.observers.portability.device_literals import named_accelerator, places_by
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.program.type_hints import is_device_name
from devlint.flow.syntax import names
from devlint.sites.devices import Literal

_OPTIONS = frozenset({"add_argument", "option"})
"""How argparse and click call what declares an option."""


class EnteredLiterals(Observer):
    """The strings that name an accelerator where a program is told its device."""

    def on_call(self, frame: Frame, call: Call) -> None:
        """An option is declared, or a function of the file is called."""
        if names.called(call.node).rpartition(".")[2] in _OPTIONS:
            self._option(frame, call)
            return
        called = frame.lookup(call.node.func.id) if isinstance(call.node.func, ast.Name) else None
        info = _entered(called)
        if info is not None:
            for name, node in _handed(info, call, isinstance(called, Class)):
                if places_by(frame, info, name):
                    frame.emit(Literal(node, scope_of(frame), str(node.value), "handed"))

    def _option(self, frame: Frame, call: Call) -> None:
        """The default of an option that is called after a device, where the file never asks what there is."""
        default = call.keyword_nodes.get("default")
        spelled = [node.value for node in call.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        named = any(is_device_name(text.lstrip("-").replace("-", "_")) for text in spelled)
        if named and _names_accelerator(default) and not frame.interpreter.index.mentions("is_available"):
            frame.emit(Literal(default, scope_of(frame), str(default.value), "option"))


def _entered(called: Value | None) -> FunctionInfo | None:
    """The function of the file that is called, of a class its constructor."""
    if isinstance(called, Function):
        return called.info
    return called.info.method("__init__") if isinstance(called, Class) else None


def _handed(info: FunctionInfo, call: Call, method: bool) -> Iterator[tuple[str, ast.Constant]]:
    """The parameters that get an accelerator by its name."""
    taken = [parameter.arg for parameter in info.parameters][int(method) :]
    given = {**({} if call.starred else dict(zip(taken, call.nodes, strict=False))), **call.keyword_nodes}
    for name, node in given.items():
        if _names_accelerator(node):
            yield name, node


def _names_accelerator(node: ast.AST | None) -> TypeGuard[ast.Constant]:
    """Whether a node is a string that names an accelerator."""
    return named_accelerator(node) is not None
