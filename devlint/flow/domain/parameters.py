"""Parameters: what of a parameter's value is the same for all calls of its function."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from devlint import device
from devlint.device import Role
from devlint.flow.domain.values import Const, Opaque
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.program.type_hints import defaults_of, hints, is_device_name, is_numbers
from devlint.flow.syntax.nodes import derived
from devlint.source.syntax import says_none


@dataclass(slots=True)
class Slot:
    """A parameter: what of its value is the same for all calls."""

    name: str
    default: ast.expr | None
    constant: Const | None
    """The default, where that is a constant."""
    computed: ast.expr | None
    """The default, where it has to be evaluated."""
    number: bool
    """Whether the function's own text says that it is a number."""
    unknown: Opaque
    """What it holds where nothing is known of what a call gives."""


@derived
def slots(info: FunctionInfo) -> list[Slot]:
    """The parameters of a function, the positional ones first."""
    defaults = defaults_of(info.node.args)
    return [_slot(info, parameter, defaults.get(parameter.arg)) for parameter in info.parameters]


def _slot(info: FunctionInfo, parameter: ast.arg, default: ast.expr | None) -> Slot:
    constant = Const(default.value) if isinstance(default, ast.Constant) else None
    computed = default if isinstance(default, (ast.Call, ast.Attribute, ast.Name)) else None
    number = hints(info).get(parameter.arg) == "number"
    unknown = _unknown(info, parameter, default)
    return Slot(parameter.arg, default, constant, computed, number, unknown)


def _unknown(info: FunctionInfo, parameter: ast.arg, default: ast.expr | None) -> Opaque:
    """An argument of which only the identity is known, and what its name, its default and the function show."""
    name = parameter.arg
    hint = hints(info).get(name, "")
    literal = default.value if isinstance(default, ast.Constant) else None
    if isinstance(literal, str) and device.parse(literal) is not None:
        hint = "device"
    elif isinstance(literal, (int, float)) or is_numbers(default):
        hint = "number"
    elif not hint and is_device_name(name):
        hint = "device"
    role = Role.DEVICE if hint == "device" else Role.INPUT
    return Opaque(f"{info.qualname}:{name}", name, hint, role, parameter, optional=says_none(default))
