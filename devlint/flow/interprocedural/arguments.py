"""Parameters: what the names of a function's arguments hold when it begins."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from devlint import device
from devlint.device import Kind, Role
from devlint.flow.core.frame import Call, Frame
from devlint.flow.domain.values import UNKNOWN, Const, Opaque, Tensor, Unknown, Value
from devlint.flow.observers.portability import device_literals
from devlint.flow.program.index import FunctionInfo
from devlint.flow.program.type_hints import defaults_of, is_device_name, is_numbers
from devlint.immutable import replace
from devlint.syntax import says_none


@dataclass(slots=True)
class Slot:
    """A parameter: what of its value is the same for all calls."""

    name: str
    default: ast.expr | None
    constant: Const | None
    """The default, where that is a constant."""
    computed: ast.expr | None
    """The default, where it has to be evaluated."""
    accelerator: str
    """The accelerator that the default names, empty where it names none."""
    number: bool
    """Whether the function's own text says that it is a number."""
    unknown: Opaque
    """What it holds where nothing is known of what a call gives."""


def _slots(info: FunctionInfo) -> list[Slot]:
    """The parameters of a function, the positional ones first."""
    if info.slots is None:
        defaults = defaults_of(info.node.args)
        info.slots = [_slot(info, parameter, defaults.get(parameter.arg)) for parameter in info.parameters]
    return info.slots


def _slot(info: FunctionInfo, parameter: ast.arg, default: ast.expr | None) -> Slot:
    constant = Const(default.value) if isinstance(default, ast.Constant) else None
    computed = default if isinstance(default, (ast.Call, ast.Attribute, ast.Name)) else None
    number = info.hints.get(parameter.arg) == "number"
    unknown = _unknown(info, parameter, default)
    return Slot(parameter.arg, default, constant, computed, _accelerator(default), number, unknown)


def bind(frame: Frame, info: FunctionInfo, call: Call | None, bound: Value | None) -> None:
    """Bind the parameters: to what the call passes, else to their defaults, else to what has only an identity."""
    arguments = info.node.args
    slots = _slots(info)
    env = frame.state.env
    count = len(arguments.posonlyargs) + len(arguments.args)
    if info.owner is not None and count and "staticmethod" not in info.decorators:
        env[slots[0].name] = bound if bound is not None else _self_for(frame, info)
        slots, count = slots[1:], count - 1
    told = call is not None and not (call.open or call.starred)
    positional = call.positional if call is not None and told else ()
    keywords = call.keywords if call is not None and told else {}
    given = min(len(positional), count)
    for position, slot in enumerate(slots):
        value: Value | None = positional[position] if position < given else keywords.get(slot.name)
        if value is None and told:
            value = slot.constant
        if value is None and call is not None and slot.computed is not None:
            value = _default(frame, slot.computed)
        # the function's own word that it takes numbers outweighs what its caller seems to pass
        if value is None or (slot.number and isinstance(value, Opaque)) or isinstance(value, Unknown):
            value = slot.unknown
            if slot.accelerator and slot.default is not None:
                device_literals.default(frame, info, slot.name, slot.default, slot.accelerator)
        elif slot.unknown.hint == "tensor" and frame.machine.index.label:
            value = _shown(value)
        env[slot.name] = value
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            env[rest.arg] = Opaque(f"{info.qualname}:{rest.arg}", rest.arg, "", Role.INPUT, rest)


def _shown(value: Value) -> Value:
    """What a call passes to a function of another file, the text of which shows that it takes a tensor."""
    if isinstance(value, Opaque) and not value.hint:
        return replace(value, hint="tensor")
    return replace(value, certain=True) if isinstance(value, Tensor) and not value.certain else value


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


def _accelerator(default: ast.expr | None) -> str:
    """The accelerator that a default names, empty where it names none."""
    literal = default.value if isinstance(default, ast.Constant) else None
    place = device.parse(literal) if isinstance(literal, str) else None
    return literal if isinstance(literal, str) and place is not None and place.kind is Kind.ACCELERATOR else ""


def _unknown(info: FunctionInfo, parameter: ast.arg, default: ast.expr | None) -> Opaque:
    """An argument of which only the identity is known, and what its name, its default and the function show."""
    name = parameter.arg
    hint = info.hints.get(name, "")
    literal = default.value if isinstance(default, ast.Constant) else None
    if isinstance(literal, str) and device.parse(literal) is not None:
        hint = "device"
    elif isinstance(literal, (int, float)) or is_numbers(default):
        hint = "number"
    elif not hint and is_device_name(name):
        hint = "device"
    role = Role.DEVICE if hint == "device" else Role.INPUT
    return Opaque(f"{info.qualname}:{name}", name, hint, role, parameter, optional=says_none(default))
