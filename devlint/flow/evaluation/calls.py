"""Calls: what is called decides who knows the result."""

from __future__ import annotations

import ast
from collections.abc import Callable

from devlint.device import UNKNOWN as UNKNOWN_DEVICE
from devlint.device import Role
from devlint.flow.catalog import methods
from devlint.flow.catalog.libraries import canonical
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain import parameters
from devlint.flow.domain.values import (
    PARTIAL,
    UNKNOWN,
    Batches,
    Class,
    Const,
    DeviceValue,
    Function,
    Instance,
    Loader,
    Mapping,
    Module,
    Named,
    Opaque,
    Sequence,
    Stateful,
    Tensor,
    Unknown,
    Value,
    as_tensor,
)
from devlint.flow.evaluation import conditions
from devlint.flow.models.data.loaders import Loaders
from devlint.flow.models.libraries import managed, rows
from devlint.flow.models.nn import modules
from devlint.flow.models.torch import distributions, factories, functions, moves, rng, tensor_methods
from devlint.flow.models.torch.optim import Optimizers
from devlint.flow.observers.costs import device_queue, host_syncs
from devlint.flow.observers.costs.device_queue import Queue
from devlint.flow.observers.placement import host_reads
from devlint.flow.observers.portability import device_literals, gpu_selection
from devlint.flow.program.identity import identity
from devlint.flow.syntax import names
from devlint.flow.transfer import containers, havoc, placement
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.indexing import item
from devlint.flow.transfer.iteration import iterate
from devlint.immutable import replace

_PASS_THROUGH = frozenset(
    """builtins.iter builtins.reversed builtins.sorted builtins.list builtins.tuple builtins.set itertools.cycle
    itertools.islice copy.copy""".split()
)
"""Wrappers whose elements are those of their first argument."""
_FIXED = frozenset({"builtins.iter", "builtins.reversed", "builtins.tuple"})
_LISTS = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted", "builtins.set"})
_COPIES = frozenset({"copy.deepcopy", "torch.compile", "torch.jit.script", "torch.compiler.disable"})
_PAIR = 2
_HARMLESS = frozenset({"len", "print", "range", "type", "id", "bool", "repr", "min", "max"})


def function(frame: Frame, call: Call, called: Value) -> Value:
    """The result of calling a value."""
    if isinstance(called, Named):
        called = frame.interpreter.behind_call(frame, called)
    if isinstance(called, (Function, Class)) and called.info.stated:
        return _stated(frame, call, called)
    if isinstance(called, Named):
        return named(frame, call, frame.interpreter.catalog.canonical(called.path))
    if isinstance(called, Function):
        return frame.interpreter.enter(frame, called, call)
    if isinstance(called, Class):
        device_literals.literal_devices(frame, call)
        return frame.interpreter.construct(frame, called, call)
    if isinstance(called, Module):
        return modules.forward(frame, call, called)
    moved = isinstance(called, Tensor) and all(leaf.role is not Role.INPUT for leaf in called.device.leaves())
    if isinstance(called, Tensor) and moved and not called.certain and called.story:
        # it was moved, and is called: a module
        module = Module(identity(), text=frame.interpreter.text(call.node.func))
        frame.put(module, called.device, called.story[0])
        return modules.forward(frame, call, module)
    if isinstance(called, Opaque):
        device_literals.literal_devices(frame, call)
        placed = modules.placed_stranger(frame, called)
        if placed is not None:
            return modules.forward(frame, call, placed)
    events.unfollowed_call(frame, call)
    frame.component(Escapes).data(call.values())
    frame.component(Queue).unseen(frame, call.node)
    havoc.grown(frame, call)
    havoc.handed(frame, call)
    return _around_loader(call, placement.derive(frame, call))


def _stated(frame: Frame, call: Call, called: Function | Class) -> Value:
    """The result of a function, or a class, of the project for which a user has written a row."""
    receiver = called.bound if isinstance(called, Function) else None
    path = frame.interpreter.catalog.canonical(called.info.stated)
    row = frame.interpreter.catalog.row(path)
    if row is None or not row.speaks_of_calls:
        return named(frame, call, path)
    return rows.call(frame, call, path, row, receiver or UNKNOWN)


def _around_loader(call: Call, result: Value) -> Value:
    """The result of an unknown call, which may be a loader again where it is given one and nothing like it."""
    first = call.positional[0] if call.positional else UNKNOWN
    if not isinstance(first, Loader) or not isinstance(result, Unknown):
        return result
    if any(isinstance(value, (Loader, Module)) for value in call.values()[1:]):
        return UNKNOWN
    return replace(first, batches=UNKNOWN_DEVICE, certain=False, wrapped=True)


def named(frame: Frame, call: Call, path: str) -> Value:
    """The result of calling something imported or built in."""
    first = call.positional[0] if call.positional else UNKNOWN
    events.library_call(frame, call, path)
    if path.startswith("os."):
        gpu_selection.set_by_call(frame, call, path)
    if path in _PASS_THROUGH:
        if isinstance(first, Sequence):
            # another list, with the same in it
            return containers.made(frame, replace(first, oid=0, mutable=path not in _FIXED))
        if isinstance(first, Tensor) and path in _LISTS:
            # no tensor any more, which has a device, but one of tensors
            return containers.made(frame, Sequence(None, iterate(first), mutable=path not in _FIXED))
        return first if isinstance(first, (Loader, Batches, Tensor)) else UNKNOWN
    if path in _COPIES and isinstance(first, Module):
        return modules.twin(frame, first) if path == "copy.deepcopy" else first
    builtin = _BUILTINS.get(path)
    if builtin is not None:
        return builtin(frame, call)
    if path in device_queue.CLOCKS:
        return device_queue.read(frame, call)
    if path in functions.FLUSHES:
        return functions.flush(frame, call, path)
    row = frame.interpreter.catalog.row(path)
    if row is not None and row.speaks_of_calls:
        return _around_loader(call, rows.call(frame, call, path, row))
    if path.startswith("torch."):
        return functions.torch_function(frame, call, path)
    frame.component(Escapes).data(call.values())
    if not device_queue.harmless(call):
        frame.component(Queue).unseen(frame, call.node)
    havoc.handed(frame, call)
    return _around_loader(call, modules.stranger(frame, call, path))


def method(frame: Frame, call: Call, receiver: Value, node: ast.Attribute, attribute: Callable[[], Value]) -> Value:
    """The result of ``receiver.name(...)``."""
    name = node.attr
    _note(frame, call, receiver, node)
    stated = rows.method(frame, receiver, name)
    if stated is not None:
        return rows.call(frame, call, *stated, receiver)
    if isinstance(receiver, Named):
        return function(frame, call, attribute())
    if isinstance(receiver, Module):
        return modules.method(frame, call, receiver, node, attribute)
    if isinstance(receiver, (Tensor, Batches)):
        return tensor_methods.method(frame, call, receiver, node)
    if isinstance(receiver, (Sequence, Mapping)):
        return containers.method(frame, call, receiver, node)
    if isinstance(receiver, Instance):
        value = attribute()
        if not isinstance(value, Opaque):
            return function(frame, call, value)
    elif isinstance(receiver, Opaque):
        found = _opaque_method(frame, call, receiver, node)
        if found is not None:
            return found
    elif isinstance(receiver, Class):
        return _class_method(frame, call, receiver, name)
    elif isinstance(receiver, (Const, DeviceValue, Stateful)):
        return _plain_method(frame, call, receiver, node)
    return _stranger(frame, call, receiver, node)


def _plain_method(frame: Frame, call: Call, receiver: Const | DeviceValue | Stateful, node: ast.Attribute) -> Value:
    """A method of what is neither tensor, module nor container."""
    name = node.attr
    frame.component(Optimizers).method(frame, receiver, call, name)
    if not isinstance(receiver, Stateful):
        return UNKNOWN
    if distributions.is_one(receiver):
        return distributions.method(frame, call, receiver, node)
    return receiver if receiver.path == rng.GENERATOR and name == "manual_seed" else UNKNOWN


def _note(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
    """What a method call says by its name alone."""
    host_syncs.note(frame, call, receiver, node)
    if node.attr in host_reads.READERS:
        host_reads.method(frame, call, receiver, node.attr)
    elif node.attr in managed.OFFLOADS:
        managed.offload(frame, call, receiver, node)
    elif node.attr in managed.RELEASES:
        managed.release(frame, receiver)


def _opaque_method(frame: Frame, call: Call, receiver: Opaque, node: ast.Attribute) -> Value | None:
    """A method of something that shows itself to be a tensor, a device or a module; ``None`` of anything else."""
    name = node.attr
    proven = tensor_methods.proves(call, name)
    if receiver.hint == "tensor" or ((receiver.role is Role.INPUT or receiver.near.known) and proven):
        return tensor_methods.method(frame, call, replace(receiver, hint="tensor"), node)
    if receiver.hint == "device":
        return UNKNOWN
    if name in modules.PARAMETERS and (receiver.hint == "module" or _is_part(frame, node.value)):
        place = frame.own_place() if _is_part(frame, node.value) else as_tensor(receiver).device
        return modules.parameters(name, Tensor(place, buffer=True))
    return None


def _is_part(frame: Frame, node: ast.expr) -> bool:
    """Whether it is an attribute of a module's ``self`` in code that runs where the module is."""
    return frame.after_init and isinstance(node, ast.Attribute) and names.dotted(node.value) == "self"


def _stranger(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> Value:
    """A method of something unknown; a move still says where it leads."""
    if node.attr in methods.MOVERS:
        return moves.move(frame, call, receiver, node)
    device_literals.literal_devices(frame, call)
    frame.component(Loaders).hand_over(call.values(), node.attr)
    if node.attr == "prepare" and managed.is_accelerator(receiver):
        return managed.prepared(frame, call)
    frame.component(Queue).unseen(frame, call.node)
    if isinstance(receiver, Opaque) and node.attr in ("eval", "train", "half", "float", "requires_grad_", "bfloat16"):
        return receiver
    havoc.grown(frame, call)
    havoc.handed(frame, call)
    result = placement.derive(frame, call, receiver)
    if (
        isinstance(result, Unknown)
        and isinstance(receiver, (Opaque, Unknown))
        and tensor_methods.proves(call, node.attr)
    ):
        # it is a tensor, wherever that is
        return tensor_methods.method(frame, call, Tensor(UNKNOWN_DEVICE), node)
    return result


def _class_method(frame: Frame, call: Call, receiver: Class, name: str) -> Value:
    device_literals.literal_devices(frame, call)
    found = receiver.info.method(name)
    if found is not None and "staticmethod" in found.decorators:
        return frame.interpreter.enter(frame, Function(found), call)
    return UNKNOWN


def _enumerate(frame: Frame, call: Call) -> Value:
    inner = iterate(call.positional[0]) if call.positional else UNKNOWN
    return Sequence(None, Sequence((UNKNOWN, inner), UNKNOWN))


def _zip(frame: Frame, call: Call) -> Value:
    return Sequence(None, Sequence(tuple(iterate(value) for value in call.positional), UNKNOWN))


def _next(frame: Frame, call: Call) -> Value:
    return iterate(call.positional[0]) if call.positional else UNKNOWN


def _sum(frame: Frame, call: Call) -> Value:
    value = call.positional[0] if call.positional else UNKNOWN
    if isinstance(value, Sequence):
        found = [(call.nodes[0], kind, "") for kind in tensor_methods.kinds(value.item)]
        clash = len(found) > 1 and placement.meet(frame, call.node, "sum", "operands", found)
        return placement.stranded(placement.blend(*(kind for _, kind, _ in found))) if clash else value.item
    return item(value) if isinstance(value, Tensor) else UNKNOWN


def _unknown(frame: Frame, call: Call) -> Value:
    return UNKNOWN


def _getattr(frame: Frame, call: Call) -> Value:
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


def _hasattr(frame: Frame, call: Call) -> Value:
    return conditions.flag_of(frame, call.node) or UNKNOWN


def _number(frame: Frame, call: Call) -> Value:
    node = call.node
    host_syncs.read(frame, call)
    return Opaque(f"number@{frame.at(node)}", frame.interpreter.text(node), "number")


def _str(frame: Frame, call: Call) -> Value:
    value = call.positional[0] if call.positional else UNKNOWN
    if isinstance(value, DeviceValue):
        return replace(value, origin="text")
    return value if isinstance(value, Const) else UNKNOWN


def _dict(frame: Frame, call: Call) -> Value:
    given = call.positional[0] if call.positional else Mapping(())
    if isinstance(given, Sequence) and isinstance(given.item, Sequence) and len(given.item.items or ()) == _PAIR:
        given = Mapping((), (given.item.items or ())[1])
    if not isinstance(given, Mapping) or call.open:
        return UNKNOWN
    entries: dict[object, Value] = dict(given.items)
    entries.update(call.keywords.items())
    return containers.made(frame, Mapping(tuple(entries.items()), given.other))


def _ordered(frame: Frame, call: Call) -> Value:
    """A dict, or what was computed from what it is made of."""
    made = _dict(frame, call)
    return placement.derive(frame, call) if isinstance(made, Unknown) else made


def _partial(frame: Frame, call: Call) -> Value:
    """A function with some of its arguments: whoever calls it, calls the function."""
    frame.component(Escapes).everything(call.values())
    given = call.positional[0] if call.positional else UNKNOWN
    device_literals.literal_devices(frame, call, given.path if isinstance(given, Named) else "")
    return Stateful(PARTIAL, node=call.node)


def _isinstance(frame: Frame, call: Call) -> Value:
    return conditions.condition(frame, call.node)


def _super(frame: Frame, call: Call) -> Value:
    return Stateful("super")


def _absolute(frame: Frame, call: Call) -> Value:
    value = call.positional[0] if call.positional else UNKNOWN
    return as_tensor(value) if isinstance(value, Tensor) else UNKNOWN


_BUILTINS: dict[str, Callable[[Frame, Call], Value]] = {
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.next": _next,
    "builtins.sum": _sum,
    "builtins.getattr": _getattr,
    "builtins.hasattr": _hasattr,
    "builtins.str": _str,
    "builtins.dict": _dict,
    "collections.OrderedDict": _ordered,
    "builtins.super": _super,
    "builtins.isinstance": _isinstance,
    "builtins.abs": _absolute,
    PARTIAL: _partial,
    **{f"builtins.{name}": _unknown for name in _HARMLESS},
    **{f"builtins.{name}": host_syncs.read for name in ("print", "bool", "repr")},
    **{f"builtins.{name}": _number for name in ("float", "int", "round")},
}
BUILTINS = frozenset(path.partition(".")[2] for path in (*_BUILTINS, *_PASS_THROUGH) if path.startswith("builtins."))
"""The built-in functions that matter here."""
