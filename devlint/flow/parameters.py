"""Parameters: what the names of a function's arguments hold when it begins."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import Role
from devlint.flow import literals
from devlint.flow.evidence import defaults_of, is_device_name, is_numbers
from devlint.flow.frame import Call, Frame
from devlint.flow.index import FunctionInfo
from devlint.flow.values import UNKNOWN, Const, Opaque, Unknown, Value


def bind(frame: Frame, info: FunctionInfo, call: Call | None, bound: Value | None) -> None:
    """Bind the parameters: to what the call passes, else to their defaults, else to what has only an identity."""
    arguments = info.node.args
    taken = [*arguments.posonlyargs, *arguments.args]
    env = frame.state.env
    static = "staticmethod" in info.decorators
    if info.owner is not None and taken and not static:
        env[taken[0].arg] = bound if bound is not None else _self_for(frame, info)
        taken = taken[1:]
    defaults = defaults_of(arguments)
    positional = call.positional if call else ()
    for position, parameter in enumerate((*taken, *arguments.kwonlyargs)):
        name = parameter.arg
        value: Value | None = None
        if call is not None and not (call.open or call.starred):
            value = positional[position] if position < min(len(positional), len(taken)) else call.keywords.get(name)
            if value is None and isinstance(defaults.get(name), ast.Constant):
                value = Const(defaults[name].value)  # type: ignore[attr-defined]  # an ast.Constant, seen above
        # the function's own word that it takes numbers outweighs what its caller seems to pass
        number = isinstance(value, Opaque) and info.hints.get(name) == "number"
        default = defaults.get(name)
        if value is None and call is not None and isinstance(default, (ast.Call, ast.Attribute, ast.Name)):
            value = _default(frame, default)
        if value is None or number or isinstance(value, Unknown):
            value = _argument(frame, info, parameter, defaults.get(name))
        env[name] = value
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            env[rest.arg] = Opaque(f"{info.qualname}:{rest.arg}", rest.arg, "", Role.INPUT, rest)


def _default(frame: Frame, default: ast.expr) -> Value:
    """The value of a parameter's default; what it says of itself, it says where the function is defined."""
    frame.machine.muted += 1
    value = frame.evaluate(default)
    frame.machine.muted -= 1
    return value


def _self_for(frame: Frame, info: FunctionInfo) -> Value:
    if info.owner is None or "classmethod" in info.decorators:
        return UNKNOWN
    return frame.machine.self_value(info.owner)


def _argument(frame: Frame, info: FunctionInfo, parameter: ast.arg, default: ast.expr | None) -> Value:
    name = parameter.arg
    hint = info.hints.get(name, "")
    literal = default.value if isinstance(default, ast.Constant) else None
    if isinstance(literal, str) and (place := device.parse(literal)) is not None:
        hint = "device"
        if place.kind is device.Kind.ACCELERATOR and default is not None:
            literals.default(frame, info, name, default, literal)
    elif isinstance(literal, (int, float)) or is_numbers(default):
        hint = "number"
    elif not hint and is_device_name(name):
        hint = "device"
    role = Role.DEVICE if hint == "device" else Role.INPUT
    optional = isinstance(default, ast.Constant) and default.value is None
    return Opaque(f"{info.qualname}:{name}", name, hint, role, parameter, optional=optional)
