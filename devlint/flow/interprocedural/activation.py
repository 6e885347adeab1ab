"""Activations of functions: what the parameters hold at the entry, and what the caller has after the exit."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import Condition, Device, Kind, PathTaken, Returned, Role
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain import parameters
from devlint.flow.domain.export import outside
from devlint.flow.domain.heap import Heap
from devlint.flow.domain.join import join
from devlint.flow.domain.objects import Function, Instance, Module, mapped
from devlint.flow.domain.state import State, rejoin
from devlint.flow.domain.tensors import Batches, DeviceValue, Tensor, placement
from devlint.flow.domain.values import UNKNOWN, Const, Mapping, Opaque, Unknown, Value
from devlint.flow.program.observations import Observed
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.flow.program.type_hints import annotated, is_device_name, may_be_none
from devlint.flow.syntax import names
from devlint.flow.transfer import api_use, havoc
from devlint.immutable import replace

_PLAIN_DECORATORS = frozenset(
    """no_grad inference_mode enable_grad set_grad_enabled autocast custom_fwd custom_bwd script script_method export
    ignore unused disable compile staticmethod classmethod property cached_property abstractmethod override overload
    final cache lru_cache setter""".split()
)
"""Decorators, by the last part of their names, that leave alone what a function returns."""


_SETTINGS = (Const, DeviceValue)
"""What a call says by values that are written there."""


def bind(frame: Frame, info: FunctionInfo, call: Call | None, bound: Value | None) -> None:
    """Bind the parameters: to what the call passes, else to their defaults, else to what has only an identity."""
    arguments = info.node.args
    slots = parameters.slots(info)
    env = frame.state.env
    count = len(arguments.posonlyargs) + len(arguments.args)
    if info.owner is not None and count and "staticmethod" not in info.decorators:
        if bound is None:
            bound = UNKNOWN if "classmethod" in info.decorators else frame.interpreter.self_value(info.owner)
        env[slots[0].name] = bound
        slots, count = slots[1:], count - 1
    told = call is not None and not (call.open or call.starred)
    positional = call.positional if call is not None and not call.starred else ()
    keywords = call.keywords if call is not None else {}
    if not told:
        # what `*` and `**` add is in other places than what is spelled out, and decides what becomes of tensors
        positional = tuple(value if isinstance(value, _SETTINGS) else UNKNOWN for value in positional)
        keywords = {name: value for name, value in keywords.items() if isinstance(value, _SETTINGS)}
    given = min(len(positional), count)
    for position, slot in enumerate(slots):
        value: Value | None = positional[position] if position < given else keywords.get(slot.name)
        if value is None and told:
            value = slot.constant
        if value is None and call is not None and slot.computed is not None:
            # what a default says of itself, it says where the function is defined
            with frame.interpreter.quiet():
                value = frame.evaluate(slot.computed)
        # the function's own word that it takes numbers outweighs what its caller seems to pass
        if value is None or (slot.number and isinstance(value, Opaque)) or isinstance(value, Unknown):
            value = slot.unknown
            if slot.default is not None:
                api_use.device(frame, slot.default, "parameter")
        elif slot.unknown.hint == "tensor" and (frame.interpreter.index.label or _is_strange(value)):
            value = _shown(value)
        env[slot.name] = _as_seen(frame, value)
    complete = told and keywords.keys() <= {slot.name for slot in slots}
    _bind_the_rest(info, env, complete)


def _bind_the_rest(info: FunctionInfo, env: dict[str, Value], complete: bool) -> None:
    """Bind what takes the arguments that have no name; ``complete`` is whether no keyword is given but such as have."""
    arguments = info.node.args
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            env[rest.arg] = Opaque(f"{info.qualname}:{rest.arg}", rest.arg, "", Role.INPUT, rest)
    if arguments.kwarg is not None and complete:
        env[arguments.kwarg.arg] = Mapping(())


def _as_seen(frame: Frame, value: Value) -> Value:
    """An argument of which the code does not show what it is, as a run has seen it: always a tensor, or tensors.

    That it is on the host, the code shows only by what it does with it in some place.
    """
    observed = frame.interpreter.observed
    known = observed.known(value.key) if observed is not None and isinstance(value, Opaque) else None
    if known is None or not isinstance(value, Opaque) or known.sighting.kind not in ("tensor", "tensors", "device"):
        return value
    if value.hint and (value.hint != "host" or known.sighting.place.kind is not Kind.ACCELERATOR):
        return value
    return replace(value, hint=known.sighting.kind, optional=value.optional or known.sighting.optional)


def kept_as_seen(observed: Observed | None, info: ClassInfo) -> Heap:
    """The tensors that a run has seen ``self`` to keep whenever a method began, whatever the method does with them."""
    heap: Heap = {}
    for name, symbol, known in () if observed is None else observed.attributes(info):
        seen = known.sighting
        # a property has no value of its own, and a device is where its owner says
        if seen.kind == "tensor" and not is_device_name(name) and info.method(name) is None:
            place = device.symbol(symbol, f"self.{name}", Role.INPUT)
            many = True if seen.sized else None
            heap[(info.oid, name)] = Tensor(place, many=many, certain=True, optional=seen.optional)
    return heap


def tell(frame: Frame, inner: Frame) -> None:
    """A call says where some of its arguments are, and the object is whose method it calls."""
    info, told = inner.info, frame.interpreter.host.told
    if info is None or told is None:
        return
    for name, value in inner.state.env.items():
        place = _said(frame, value)
        if place is not None and _is_said(place):
            told.add((f"{info.qualname}:{name}", place))


def _said(frame: Frame, value: Value) -> Device | None:
    """Where a value is, or which place it names, as far as the code says."""
    if isinstance(value, Module):
        return frame.place_of(value)
    return value.device if isinstance(value, (Tensor, Batches)) else placement(value)


def _is_said(place: Device) -> bool:
    """Whether the code itself says something of a place, and not only that it is an argument's."""
    return place.known and all(leaf.role not in (Role.INPUT, Role.PLACE) for leaf in place.leaves())


def _is_strange(value: Value) -> bool:
    """Whether nobody knows what it is, not even that it is an argument of the caller."""
    return isinstance(value, Tensor) or (isinstance(value, Opaque) and value.role is Role.DEVICE)


def _shown(value: Value) -> Value:
    """What a call passes to a function the text of which shows that it takes a tensor."""
    if isinstance(value, Opaque) and not value.hint:
        return replace(value, hint="tensor")
    return replace(value, certain=True) if isinstance(value, Tensor) and not value.certain else value


def after(frame: Frame) -> State:
    """The state in which a function's caller goes on."""
    states = [*frame.exits] if frame.state.dead else [*frame.exits, frame.state]
    if not states:
        return frame.state
    result = states[0]
    for position, state in enumerate(states[1:]):
        result = rejoin(result.copy(), state, PathTaken("exit", frame.name, position))
    return result


def returned(frame: Frame) -> Value:
    """What a call of the function gives: which of its results hangs on the conditions that part the ways out."""
    result, facts = frame.returns[-1], frame.exits[-1].facts
    for position in range(len(frame.returns) - 2, -1, -1):
        value, left = frame.returns[position], frame.exits[position].facts
        guard = next((key for key, truth in left.items() if facts.get(key) is (not truth)), None)
        if _on_an_argument(value) or _on_an_argument(result):
            # what an early exit returns may be for a case that never comes here
            result = join(value, result, Returned(position, frame.name))
        elif guard is not None:
            result = join(value, result, guard) if left[guard] else join(result, value, guard)
        else:
            result = _either(value, result, Returned(position, frame.name))
        facts = {key: truth for key, truth in facts.items() if left.get(key) is truth}
    return result


def returned_to(frame: Frame, call: Call, bound: Value | None) -> Value:
    """The same as the caller names it, who has the object under another name than ``self``."""
    result, called = returned(frame), call.node.func
    keeper = called.value if isinstance(called, ast.Attribute) else called
    inherited = isinstance(keeper, ast.Call) and names.dotted(keeper.func) == "super"
    if frame.info is None or frame.info.owner is None or inherited or not isinstance(bound, (Module, Instance)):
        return result
    return outside(result, ast.unparse(keeper))


def _either(first: Value, second: Value, path: Condition) -> Value:
    """One of two results, and nothing says which."""
    joined = join(first, second, path)
    if isinstance(joined, Tensor) and joined.device.guard is path:
        return joined.placed(device.UNKNOWN, ())
    return joined


def _on_an_argument(value: Value) -> bool:
    return isinstance(value, Tensor) and any(leaf.kind is Kind.SYMBOL for leaf in value.device.leaves())


def outcome(frame: Frame, function: Function, call: Call, result: Value) -> Value:
    """What the caller gets: what the function returns or says that it does, unless a decorator may have changed it."""
    havoc.grown(frame, call, function.info, function.bound)
    if any(name.rpartition(".")[2] not in _PLAIN_DECORATORS for name in function.info.decorators):
        return UNKNOWN
    return as_annotated(function.info) if isinstance(result, Unknown) else _abroad(f"{function.info.qualname}:", result)


def _abroad(own: str, value: Value) -> Value:
    """A result for the caller, to whom the parameters mean nothing: of what nobody knows only the callee has a name."""
    if isinstance(value, Opaque):
        return UNKNOWN if value.key.startswith(own) else value
    if isinstance(value, Tensor):
        named = any(leaf.symbol.startswith(own) for leaf in value.device.leaves())
        return value.placed(device.UNKNOWN, ()) if named else value
    return mapped(value, lambda held: _abroad(own, held))


def as_annotated(info: FunctionInfo) -> Value:
    """What a function says that it returns: a tensor, wherever that is, or nothing that is known."""
    says = info.node.returns
    if says is None or isinstance(info.node, ast.AsyncFunctionDef) or annotated(says) != "tensor":
        return UNKNOWN
    if any(isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) for node in info.own):
        # the annotation is wrong
        return UNKNOWN
    return Tensor(device.UNKNOWN, optional=may_be_none(says))
