"""What surrounds code: context managers that say where tensors are made, and what a ``try`` handles."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import Device
from devlint.flow.catalog import concepts
from devlint.flow.catalog import context_managers as managers
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.tensors import DeviceValue
from devlint.flow.domain.values import Opaque, Value
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.flow.program.type_hints import is_device_name
from devlint.flow.syntax import names, nodes
from devlint.immutable import replace

_ANY = ""
"""Stands for the exceptions of a handler that names none."""
_VERSION_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError"})
_ANY_ERROR = frozenset({_ANY, "Exception", "BaseException"})
_DEVICE_ERRORS = frozenset({_ANY, "RuntimeError", "AssertionError", "Exception"})


def default_device(frame: Frame, node: ast.expr, value: Value) -> Device | None:
    """Where tensors are made within ``with node:``; ``None`` where that changes nothing."""
    called = names.called(node)
    if isinstance(value, DeviceValue):
        return None if called.endswith(managers.CURRENT) else replace(value.device, implied=False)
    path = frame.interpreter.index.resolve(called)
    if not isinstance(node, ast.Call) or path.startswith(managers.KNOWN):
        return None
    definition = _definition(frame, called)
    if definition is not None:
        return device.UNKNOWN if _enters(frame, definition) else None
    given = nodes.given(node)
    makes = any(path == name or path.endswith(f".{name}") for name in managers.ELSEWHERE)
    return device.UNKNOWN if makes or any(_names_device(frame, part) for part in given) else None


def fakes(frame: Frame, node: ast.With | ast.AsyncWith) -> bool:
    """Whether tensors within a ``with`` only say where they would be, on any machine."""
    entered = [names.called(item.context_expr) for item in node.items]
    return any(
        called.endswith(managers.FAKE) or frame.interpreter.index.resolve(called).endswith(managers.FAKE)
        for called in entered
    )


def _definition(frame: Frame, called: str) -> FunctionInfo | ClassInfo | None:
    """The function or class of the file that makes the context."""
    index, name = frame.interpreter.index, called.rpartition(".")[2]
    found = next((info for info in index.functions.values() if info.name == name), None)
    return found or index.classes.get(name)


def _enters(frame: Frame, definition: FunctionInfo | ClassInfo) -> bool:
    """Whether a context manager of the file enters another one that may be a device."""
    for node in definition.nodes:
        if isinstance(node, ast.withitem) and not isinstance(node.context_expr, ast.Call):
            return True
        if frame.interpreter.index.resolve(names.called(node)) == concepts.DEVICE:
            return True
    return False


def _names_device(frame: Frame, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        value = frame.lookup(node.id)
        return isinstance(value, DeviceValue) or (isinstance(value, Opaque) and value.hint == "device")
    if isinstance(node, ast.Attribute):
        return is_device_name(node.attr)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and device.parse(node.value) is not None


def tries_versions(node: ast.Try) -> bool:
    """Whether it handles that a name is missing."""
    caught = _caught(node)
    imports = any(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in node.body)
    return not caught.isdisjoint(_VERSION_ERRORS) or (imports and not caught.isdisjoint(_ANY_ERROR))


def tries_device(node: ast.Try) -> bool:
    """Whether it handles what a missing accelerator raises."""
    return not _caught(node).isdisjoint(_DEVICE_ERRORS)


def _caught(node: ast.Try) -> set[str]:
    """The names of what it catches."""
    kinds = [handler.type for handler in node.handlers]
    parts = [part for kind in kinds if kind is not None for part in nodes.walk(kind)]
    found = {names.dotted(part) for part in parts if isinstance(part, (ast.Name, ast.Attribute))}
    return found | {_ANY} if None in kinds else found
