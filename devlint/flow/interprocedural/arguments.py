"""Parameters: what the names of a function's arguments hold when it begins."""

from __future__ import annotations

import ast

from devlint.device import Role
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain import parameters
from devlint.flow.domain.values import UNKNOWN, Opaque, Tensor, Unknown, Value
from devlint.flow.observers.portability import device_literals
from devlint.flow.program.symbols import FunctionInfo
from devlint.immutable import replace


def bind(frame: Frame, info: FunctionInfo, call: Call | None, bound: Value | None) -> None:
    """Bind the parameters: to what the call passes, else to their defaults, else to what has only an identity."""
    arguments = info.node.args
    slots = parameters.slots(info)
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
        elif slot.unknown.hint == "tensor" and frame.interpreter.index.label:
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
    with frame.interpreter.quiet():
        return frame.evaluate(default)


def _self_for(frame: Frame, info: FunctionInfo) -> Value:
    if info.owner is None or "classmethod" in info.decorators:
        return UNKNOWN
    return frame.interpreter.self_value(info.owner)
