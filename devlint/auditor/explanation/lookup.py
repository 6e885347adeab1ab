"""What the names in a line of code stood for when it ran: looked up, never evaluated.

A name is read from the frame, an attribute from an instance's ``__dict__`` (or what torch registers there), an element
from a built-in container.  Whatever would run code of the script is not known.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections import UserDict
from typing import Any

import torch
from torch import nn

from devlint.auditor.introspection.tensors import fields

MISSING: Any = object()
"""Nothing is known."""
_VIEWS = frozenset({"T", "H", "mT", "mH", "data", "real", "imag"})


def look_up(node: ast.expr, frame: types.FrameType) -> Any:
    """The value of a name, attribute or element, :data:`MISSING` where that cannot be told safely."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return _name(node.id, frame)
    if isinstance(node, ast.Attribute):
        base = look_up(node.value, frame)
        return MISSING if base is MISSING else attribute(base, node.attr)
    if isinstance(node, ast.Subscript):
        base, key = look_up(node.value, frame), _key(node.slice, frame)
        return MISSING if base is MISSING or key is MISSING else _element(base, key)
    return MISSING


def attribute(value: Any, name: str) -> Any:
    """An attribute of a value, as far as it can be read without running anything."""
    if isinstance(value, torch.Tensor):
        return value if name in _VIEWS else MISSING
    own = fields(value)
    parts = ("_parameters", "_buffers", "_modules") if isinstance(value, nn.Module) else ()
    for scope in (*(own.get(part) or {} for part in parts), own):
        if name in scope:
            return scope[name]
    return _element(value, name) if isinstance(value, UserDict) else _inherited(value, name)


def _inherited(value: Any, name: str) -> Any:
    """What a class says of the name: a constant, a slot or the field of a named tuple."""
    if isinstance(value, types.ModuleType):
        return MISSING
    classes = value.__mro__ if isinstance(value, type) else type(value).__mro__
    for cls in (cls for cls in classes if name in vars(cls)):
        found = vars(cls)[name]
        if isinstance(found, types.MemberDescriptorType) and not isinstance(value, type):
            try:
                return found.__get__(value)
            except AttributeError:  # never assigned
                return MISSING
        names = getattr(cls, "_fields", ())
        if isinstance(value, tuple) and name in names:
            return tuple.__getitem__(value, names.index(name))
        if isinstance(found, (staticmethod, types.FunctionType)) or not hasattr(type(found), "__get__"):
            return found
        return MISSING
    return MISSING


def _name(name: str, frame: types.FrameType) -> Any:
    for scope in (frame.f_locals, frame.f_globals, vars(builtins)):
        if name in scope:
            return scope[name]
    return MISSING


def _key(node: ast.expr, frame: types.FrameType) -> Any:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if isinstance(value, int) else MISSING
    found = look_up(node, frame)
    return found if type(found) in (int, str) else MISSING


def _element(value: Any, key: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return MISSING
    if isinstance(value, nn.Module):
        return _registered(value, key)
    if isinstance(value, UserDict):
        value = fields(value).get("data")
    if isinstance(value, dict):
        return dict.get(value, key, MISSING)
    if isinstance(value, (list, tuple)) and isinstance(key, int):
        base: Any = tuple if isinstance(value, tuple) else list
        return base.__getitem__(value, key) if -len(value) <= key < len(value) else MISSING
    return MISSING


def _registered(container: nn.Module, key: Any) -> Any:
    """The element of a ``ModuleList``, ``Sequential``, ``ModuleDict``, ``ParameterList`` or ``ParameterDict``."""
    if not isinstance(container, (nn.ModuleList, nn.Sequential, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)):
        return MISSING
    own = fields(container)
    found: dict[str, Any] = own.get("_modules") or own.get("_parameters") or {}
    if isinstance(key, int):
        names = list(found)
        return found[names[key]] if -len(names) <= key < len(names) else MISSING
    return found.get(key, MISSING)


def dotted(node: ast.expr, frame: types.FrameType) -> str:
    """The full name of a function of torch that an expression names: ``torch.zeros``; empty for any other."""
    if isinstance(node, ast.Attribute):
        base = dotted(node.value, frame)
        return f"{base}.{node.attr}" if base else ""
    if not isinstance(node, ast.Name):
        return ""
    value = _name(node.id, frame)
    if isinstance(value, types.ModuleType):
        name = value.__name__
        return name if name.partition(".")[0] in ("torch", "numpy") else ""
    for module in (torch, nn.functional):
        if value is not MISSING and vars(module).get(node.id) is value:
            return f"{module.__name__}.{node.id}"
    return ""
