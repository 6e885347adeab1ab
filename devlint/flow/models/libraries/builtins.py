"""Python's own functions, and such of its library as hand on what they are given."""

from __future__ import annotations

from devlint.flow.catalog.libraries import canonical
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import MODELS, Model
from devlint.flow.domain import parameters
from devlint.flow.domain.objects import PARTIAL, Module, Stateful
from devlint.flow.domain.tensors import Batches, DeviceValue, Loader, Tensor, as_tensor
from devlint.flow.domain.values import UNKNOWN, Const, Mapping, Named, Opaque, Sequence, Unknown, Value
from devlint.flow.models.libraries import unknown
from devlint.flow.models.nn import construction, methods
from devlint.flow.models.torch import factories, tensor_methods
from devlint.flow.transfer import api_use, containers, device_queue, placement
from devlint.flow.transfer.device_queue import DeviceQueue, Reading
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.indexing import item
from devlint.flow.transfer.iteration import iterate
from devlint.immutable import replace
from devlint.sites.placement import OperationKind

_ELEMENTS = ("itertools.cycle", "itertools.islice", "copy.copy")
"""Wrappers whose elements are those of their first argument."""
_FIXED = frozenset({"builtins.iter", "builtins.reversed", "builtins.tuple"})
_LISTS = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted", "builtins.set"})
_PAIR = 2
_OWNER_NAME_AND_VALUE = 3


def _elements(frame: Frame, call: Call, path: str) -> Value:
    """What goes through the elements of its argument, or lists them."""
    first = call.first
    if isinstance(first, Sequence):
        # another list, with the same in it
        return containers.made(frame, replace(first, oid=0, mutable=path not in _FIXED))
    if isinstance(first, Tensor) and path in _LISTS:
        # no tensor any more, which has a device, but one of tensors
        return containers.made(frame, Sequence(None, iterate(first), mutable=path not in _FIXED))
    return first if isinstance(first, (Loader, Batches, Tensor)) else UNKNOWN


def _deep_copy(frame: Frame, call: Call, path: str) -> Value:
    first = call.first
    return construction.twin(frame, first) if isinstance(first, Module) else unknown.function(frame, call, path)


def _enumerate(frame: Frame, call: Call, path: str) -> Value:
    inner = iterate(call.positional[0]) if call.positional else UNKNOWN
    return Sequence(None, Sequence((UNKNOWN, inner), UNKNOWN))


def _zip(frame: Frame, call: Call, path: str) -> Value:
    return Sequence(None, Sequence(tuple(iterate(value) for value in call.positional), UNKNOWN))


def _next(frame: Frame, call: Call, path: str) -> Value:
    return iterate(call.positional[0]) if call.positional else UNKNOWN


def _sum(frame: Frame, call: Call, path: str) -> Value:
    value = call.first
    if isinstance(value, Sequence):
        found = [(call.nodes[0], kind, "") for kind in tensor_methods.kinds(value.item)]
        clash = len(found) > 1 and placement.meet(frame, call.node, "sum", OperationKind.OPERANDS, found)
        return placement.stranded(placement.blend(*(kind for _, kind, _ in found))) if clash else value.item
    return item(value) if isinstance(value, Tensor) else UNKNOWN


def _unknown(frame: Frame, call: Call, path: str) -> Value:
    return UNKNOWN


def _range(frame: Frame, call: Call, path: str) -> Value:
    for node, value in call.given():
        device_queue.numbered(frame, call.node, node, value, "range")
    return UNKNOWN


def _getattr(frame: Frame, call: Call, path: str) -> Value:
    """A name of something imported, looked up by its text: ``getattr(torch, "ones")``."""
    if len(call.positional) != _PAIR or call.open or call.starred:
        return UNKNOWN
    base, asked = call.positional
    if not isinstance(base, Named):
        return UNKNOWN
    if isinstance(asked, Const) and isinstance(asked.value, str):
        return Named(canonical(f"{base.path}.{asked.value}"))
    found = Named(canonical(f"{base.path}.{_default_text(frame, asked)}"))
    # whatever else a caller names has to take the same arguments, and makes a tensor of them, too
    return found if factories.is_plain(found.path) else UNKNOWN


def _default_text(frame: Frame, value: Value) -> str:
    """The string that an argument of this function is where the caller gives none."""
    slots = parameters.slots(frame.info) if frame.info is not None and isinstance(value, Opaque) else ()
    for slot in slots:
        if isinstance(value, Opaque) and slot.unknown.key == value.key and isinstance(slot.constant, Const):
            return str(slot.constant.value)
    return ""


def _setattr(frame: Frame, call: Call, path: str) -> Value:
    """An attribute of an object under a name that the code computes, perhaps of a part of a batch."""
    if len(call.positional) == _OWNER_NAME_AND_VALUE and not call.starred:
        owner, name, value = call.positional
        containers.put_into(frame, owner, call.nodes[0], value)
        if isinstance(owner, Module):
            methods.set_by_name(frame, owner, call.nodes[1], name, value)
    return unknown.function(frame, call, path)


def _hasattr(frame: Frame, call: Call, path: str) -> Value:
    flag = frame.interpreter.condition(frame, call.node)
    return flag if flag.telling else UNKNOWN


def _number(frame: Frame, call: Call, path: str) -> Value:
    node = call.node
    device_queue.reads(frame, call, path)
    return Opaque(f"number@{frame.at(node)}", frame.interpreter.text(node), "number")


def _count(frame: Frame, call: Call, path: str) -> Value:
    """How many there are, which nobody has to wait for."""
    return Opaque(f"number@{frame.at(call.node)}", frame.interpreter.text(call.node), "number")


def _str(frame: Frame, call: Call, path: str) -> Value:
    value = call.first
    if isinstance(value, DeviceValue):
        return replace(value, form="text")
    return value if isinstance(value, Const) else UNKNOWN


def _dict(frame: Frame, call: Call, path: str) -> Value:
    given = call.positional[0] if call.positional else Mapping(())
    if isinstance(given, Sequence) and isinstance(given.item, Sequence) and len(given.item.items or ()) == _PAIR:
        given = Mapping((), (given.item.items or ())[1])
    if not isinstance(given, Mapping) or call.open:
        return UNKNOWN
    entries: dict[object, Value] = dict(given.items)
    entries.update(call.keywords.items())
    return containers.made(frame, Mapping(tuple(entries.items()), given.other))


def _ordered(frame: Frame, call: Call, path: str) -> Value:
    """A dict, or what was computed from what it is made of."""
    made = _dict(frame, call, path)
    return placement.derive(frame, call) if isinstance(made, Unknown) else made


def _partial(frame: Frame, call: Call, path: str) -> Value:
    """A function with some of its arguments: whoever calls it, calls the function."""
    frame.component(Escapes).everything(call.values())
    given = call.first
    api_use.devices(frame, call, given.path if isinstance(given, Named) else "")
    return Stateful(PARTIAL, node=call.node)


def _isinstance(frame: Frame, call: Call, path: str) -> Value:
    return frame.interpreter.condition(frame, call.node)


def _super(frame: Frame, call: Call, path: str) -> Value:
    return Stateful("super")


def _absolute(frame: Frame, call: Call, path: str) -> Value:
    value = call.first
    return as_tensor(value) if isinstance(value, Tensor) else UNKNOWN


_CLOCKS = frozenset(
    f"time.{clock}{unit}" for clock in ("time", "perf_counter", "monotonic") for unit in ("", "_ns")
) | {"timeit.default_timer"}
"""Functions that read a clock."""


def _read(frame: Frame, call: Call, path: str) -> Value:
    """A reading of a clock."""
    return Reading(call.node, len(frame.component(DeviceQueue).events), len(frame.loops))


_FUNCTIONS: dict[str, Model] = {
    "enumerate": _enumerate,
    "zip": _zip,
    "next": _next,
    "sum": _sum,
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
    "str": _str,
    "dict": _dict,
    "super": _super,
    "isinstance": _isinstance,
    "abs": _absolute,
    "len": _count,
    **dict.fromkeys(("type", "id", "min", "max"), _unknown),
    "range": _range,
    **dict.fromkeys(("print", "bool", "repr"), device_queue.reads),
    **dict.fromkeys(("float", "int", "round"), _number),
    **dict.fromkeys(("iter", "reversed", "sorted", "list", "tuple", "set"), _elements),
}
MODELS.register(
    {
        **{f"builtins.{name}": model for name, model in _FUNCTIONS.items()},
        **dict.fromkeys(_CLOCKS, _read),
        "collections.OrderedDict": _ordered,
        "copy.deepcopy": _deep_copy,
        PARTIAL: _partial,
        **dict.fromkeys(_ELEMENTS, _elements),
    }
)
