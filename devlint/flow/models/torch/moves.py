"""Moves: ``.to``, ``.cuda``, ``.cpu`` and their kin, on tensors, modules and what may be either, and where to."""

from __future__ import annotations

import ast
from typing import Any

from devlint import device
from devlint.device import Device, Kind
from devlint.flow.catalog.methods import MOVERS, is_dtype
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of, scope_of_placement
from devlint.flow.domain.heap import CHANGED, CHILDREN, DEVICE, ORIGIN
from devlint.flow.domain.join import type_place
from devlint.flow.domain.objects import Instance, Module
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.tensors import Batches, Tensor, as_tensor, named_place, placement, surely_tensor
from devlint.flow.domain.values import UNKNOWN, Const, Named, Opaque, Unknown, Value, is_literal
from devlint.flow.models.data.loaders import Loaders
from devlint.flow.syntax import names
from devlint.flow.transfer import api_use, creations, havoc, loop_invariance, memory, module_state
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.placement import in_graph, stranded
from devlint.immutable import immutable, replace
from devlint.sites.base import Act, Operand, Step
from devlint.sites.transfers import Transfer

_OF_CUDA = frozenset({"device", "non_blocking", "memory_format"})
"""What torch's own ``.cuda()`` can be told by name."""


def move(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> Value:
    """A move of anything but a module: the site, and the moved value."""
    name = node.attr
    if name == "cuda" and not set(call.keywords) <= _OF_CUDA:
        # a namesake of another library
        return UNKNOWN
    target = _target_of(frame, call, name)
    _initialize(frame, call, target.device)
    tensor = as_tensor(receiver)
    held = receiver
    if isinstance(receiver, Batches) and call.node in frame.discarded and _is_collated(frame, receiver):
        # what torch itself puts into a batch, and has a .to, is a tensor
        held = tensor = replace(tensor, certain=True)
    site = _transfer(frame, call, node, receiver, tensor, frame.operand(node.value, held), target)
    frame.emit(site)
    for observer in events.heard(frame, "on_move"):
        observer.on_move(frame, site, receiver, call)
    if target.device is None:
        # another layout of the memory is another memory
        copied = "memory_format" in call.keywords and isinstance(receiver, (Batches, Tensor))
        return memory.separate(replace(tensor, certain=True)) if copied else receiver
    return _result(frame, call, node, receiver, tensor, site)


def is_move(call: Call, name: str) -> bool:
    """Whether a method of that name puts something somewhere, as it is called."""
    return name in MOVERS or (name == "type" and (_typed_like(call) is not None or _type_elsewhere(call) is not None))


def _type_elsewhere(call: Call) -> Device | None:
    """Where the tensors of a legacy type are for which a ``.type(...)`` asks, if that may be an accelerator."""
    place = type_place(call.argument(0, "dtype"))
    return place if place is not None and place.accelerates() is not False else None


def _typed_like(call: Call) -> ast.expr | None:
    """The tensor whose type a ``.type(x.type())`` asks for, which says where its tensors are."""
    given = call.node.args[0] if len(call.node.args) == 1 and not call.node.keywords else None
    if not isinstance(given, ast.Call) or given.args or given.keywords or not isinstance(given.func, ast.Attribute):
        return None
    return given.func.value if given.func.attr == "type" else None


def _is_collated(frame: Frame, batch: Batches) -> bool:
    """Whether torch itself makes the batches of which this is a part."""
    return batch.part and frame.component(Loaders).collates(batch.loaders)


def _transfer(
    frame: Frame, call: Call, node: ast.Attribute, receiver: Value, tensor: Tensor, operand: Operand, target: _Target
) -> Transfer:
    """The site of a move of anything but a module."""
    scope = scope_of(frame)
    made = creations.creation(frame, call.node, node.value, tensor)
    pinned, by = _memory(frame, receiver)
    placed = target.device is not None
    whole = isinstance(receiver, Batches) and receiver.in_place
    late = target.non_blocking and target.device is not None and target.device.kind is Kind.CPU
    return replace(
        _site(frame, call, node, "tensor" if tensor.certain and not whole else "", operand, target),
        foreign=isinstance(receiver, Instance) and receiver.cls.method(node.attr) is not None,
        pinned=pinned,
        pinned_by=by,
        invariant=placed and loop_invariance.invariant_copy(frame, scope, call.node, operand, target.node, made),
        unwaited=loop_invariance.read_early(frame, call.node) if late else None,
        creation=made,
        kept=loop_invariance.copied_by_every_call(frame, call.node, node.value, tensor, target.device),
    )


def _site(frame: Frame, call: Call, node: ast.Attribute, kind: str, operand: Operand, target: _Target) -> Transfer:
    """The site of a move, with what can be said of any."""
    return Transfer(
        call.node,
        scope_of_placement(frame, call.node),
        spelled=node.attr,
        kind=kind,
        value=operand,
        target=target.device,
        target_node=target.node,
        plain=target.plain,
        discarded=call.node in frame.discarded,
        non_blocking=target.non_blocking,
    )


def _result(frame: Frame, call: Call, node: ast.Attribute, receiver: Value, tensor: Tensor, site: Transfer) -> Value:
    """What a move to a device returns, and leaves behind."""
    place = site.target
    if place is None or isinstance(receiver, Instance):
        return UNKNOWN
    whole = isinstance(receiver, Opaque) and (receiver.managed is not None or (site.discarded and site.plain))
    if isinstance(receiver, Opaque) and whole and not tensor.certain:
        # called for its effect, or known to a library, so it is no tensor: what it is stays there
        DEVICE.put(frame.state.heap, receiver.key, place)
        ORIGIN.put(frame.state.heap, receiver.key, Origin((Step(call.node, f"moved to {place} here", Act.MOVED),)))
        return receiver
    if isinstance(receiver, Batches) and receiver.in_place:
        return _moved_in_place(frame, call, node, receiver, place)
    if site.discarded and tensor.certain and isinstance(node.value, ast.Name) and place.same(tensor.device) is not True:
        # the dropped result is reported, and what follows from it is not
        frame.state.env[node.value.id] = stranded(tensor)
    if isinstance(receiver, Tensor) and site.discarded and not tensor.certain:
        return _moved_for_effect(frame, receiver, _moved(frame, call, tensor, place))
    if isinstance(receiver, Batches):
        if site.discarded and not tensor.certain:
            # called for its effect, so it is no tensor, and moves what it holds
            frame.state.moves(receiver)
        return replace(receiver, device=place, parts=())
    if isinstance(receiver, (Unknown, Opaque)) and not tensor.certain:
        # a tensor or a module: its device is known
        text = frame.interpreter.text(node.value)
        step = Step(call.node, f"`{text}` is moved to {place} here", Act.MOVED)
        return Tensor(place, certain=False, origin=Origin((step,)))
    return _moved(frame, call, tensor, place)


def _moved_for_effect(frame: Frame, receiver: Tensor, there: Tensor) -> Tensor:
    """What was moved before and is moved again, for its effect: a module, which goes there under all of its names."""
    for held in (frame.state.env, frame.state.heap):
        _exchange(held, receiver, there)
    outer = frame.caller
    while outer is not None:
        # perhaps on one path only
        _exchange(outer.state.env, receiver, there.placed(device.UNKNOWN, ()))
        outer = outer.caller
    return there


def _exchange(held: dict[Any, Any], old: Tensor, new: Tensor) -> None:
    same = [key for key, value in held.items() if isinstance(value, Tensor) and _is_same(value, old)]
    held.update(dict.fromkeys(same, new))


def _is_same(value: Tensor, other: Tensor) -> bool:
    """Whether two things that are known by their last move alone are one."""
    return not value.certain and value.origin.story == other.origin.story and value.device.same(other.device) is True


def _moved_in_place(frame: Frame, call: Call, node: ast.Attribute, batch: Batches, place: Device) -> Batches:
    """An object that moves what it holds; by other names it goes by, it is no longer known where that is."""
    frame.state.moves(batch)
    there = replace(batch, device=place, parts=(), makers=(call.node,))
    frame.state.forget(there)
    if isinstance(node.value, ast.Name):
        frame.state.env[node.value.id] = there
    return there


def _memory(frame: Frame, receiver: Value) -> tuple[bool | None, Step | None]:
    """Whether what is copied is pinned, and by whom: known of the batches of loaders, and of what the code pins."""
    if isinstance(receiver, Tensor) and receiver.device.kind is Kind.CPU and receiver.pinned is not None:
        return True, receiver.pinned
    on_host = isinstance(receiver, Batches) and receiver.device == device.CPU
    by = frame.component(Loaders).pins(receiver.loaders) if isinstance(receiver, Batches) and on_host else None
    return (None if by is None else True), by


def _moved(frame: Frame, call: Call, tensor: Tensor, place: Device) -> Tensor:
    settled = frame.state.settled(place)
    step = Step(call.node, f"moved to {place} here", Act.MOVED)
    if settled.kind is Kind.CPU:
        step = Step(call.node, "copied to the CPU here", Act.FETCHED)
    return tensor if tensor.device.same(place) else moved(tensor, place, step)


def moved(tensor: Tensor, place: Device, step: Step) -> Tensor:
    """The same tensor in another place."""
    return Tensor(
        place,
        many=tensor.many,
        rank=tensor.rank,
        certain=tensor.certain,
        origin=Origin((step,)),
        batch=tensor.batch,
        grad=in_graph(tensor),
    )


def move_module(frame: Frame, call: Call, module: Module, node: ast.Attribute) -> Value:
    """A move of a module: in place."""
    target = _target_of(frame, call, node.attr)
    empty = module_state.is_empty(frame, module)
    _initialize(frame, call, target.device)
    place = device.UNKNOWN if (module.oid, CHANGED) in frame.state.heap else frame.place_of(module)
    operand = Operand(node.value, frame.interpreter.text(node.value), place, None, True, frame.origin_of(module).story)
    site = replace(_site(frame, call, node, "module", operand, target), empty=empty)
    frame.emit(site)
    for observer in events.heard(frame, "on_move"):
        observer.on_move(frame, site, module, call)
    if target.device is not None and target.device.same(place) is not True:
        text = frame.interpreter.text(node.value)
        relocate(frame, module, target.device, Step(call.node, f"`{text}` is moved to {target.device} here", Act.MOVED))
    return module


def relocate(frame: Frame, module: Module, place: Device, step: Step) -> None:
    """A module goes elsewhere, with what is known to hang on where it is."""
    for observer in events.heard(frame, "on_relocation"):
        observer.on_relocation(frame, module, place, step)
    havoc.move(frame, frame.place_of(module))
    frame.put(module, place, step)
    _take_along(frame, module, place, step)


def _take_along(frame: Frame, module: Module, place: Device, step: Step) -> None:
    """What the code at hand has registered in a module, or in a part of it, goes with the module."""
    heap, whole, left = frame.state.heap, {module.oid}, [module]
    while left:
        parts = [part for part in CHILDREN.of(heap, left.pop().oid) or () if part.oid not in whole]
        whole.update(part.oid for part in parts)
        left += parts
    for key, held in list(heap.items()):
        if key[0] in whole and isinstance(held, Tensor) and held.buffer:
            heap[key] = held.placed(place, (step,))


def _initialize(frame: Frame, call: Call, place: Device | None) -> None:
    if place is not None and place.kind is Kind.ACCELERATOR and place.type == "cuda":
        api_use.initialize(frame, call.node)


@immutable(frozen=True, slots=True)
class _Target:
    """What a move asks for: a device (``None``: none), and whether it asks for nothing else."""

    device: Device | None
    node: ast.AST | None
    plain: bool
    non_blocking: bool


def _target_of(frame: Frame, call: Call, name: str) -> _Target:
    """What the arguments of ``.to(...)``, ``.cuda(...)``, ... ask for."""
    non_blocking = is_literal(call.argument(1, "non_blocking"), True)
    if name == "cpu":
        return _Target(device.CPU, None, not call.keywords and not call.positional, False)
    if name == "type" and (there := _type_elsewhere(call)) is not None:
        return _Target(there, call.argument_node(0, "dtype"), False, non_blocking)
    if name in ("type", "type_as"):
        node = _typed_like(call) if name == "type" else call.argument_node(0, "other")
        with frame.interpreter.quiet():
            other = frame.evaluate(node) if isinstance(node, ast.expr) else None
        return _Target(device.UNKNOWN if other is None else as_tensor(other).device, node, False, False)
    if name != "to":
        return _named_target(frame, call, name, non_blocking)
    given = call.argument(0, "device") if "device" in call.keywords or call.positional else call.keywords.get("other")
    node = call.argument_node(0, "device") or call.keyword_nodes.get("other")
    extra = len(call.positional) > 1 or bool(set(call.keywords) - {"device", "non_blocking"})
    if call.open or call.starred:
        return _Target(device.UNKNOWN, node, False, non_blocking)
    if given is None:
        return _Target(None, None, False, non_blocking)
    if isinstance(node, ast.Attribute) and node.attr == "device" and isinstance(node.value, ast.Name):
        # where this tensor is, others follow
        frame.component(Escapes).tensors((frame.lookup(node.value.id) or UNKNOWN,))
    place = _device_argument(given, node, frame)
    tensor = surely_tensor(given)
    return _Target(place, node, not extra and not tensor, non_blocking)


def _named_target(frame: Frame, call: Call, name: str, non_blocking: bool) -> _Target:
    given = call.argument(0, "device")
    node = call.argument_node(0, "device")
    place: Device | None
    if given is None or (isinstance(given, Const) and (given.value is None or isinstance(given.value, bool))):
        # a boolean is meant for another parameter
        place = device.accelerator(name)
    elif isinstance(given, Const) and isinstance(given.value, int) and not isinstance(given.value, bool):
        for observer in events.heard(frame, "on_device_index"):
            observer.on_device_index(frame, call.node, given, f".{name}({given.value})")
        place = device.accelerator(name, given.value)
    else:
        place = named_place(given) or device.UNKNOWN
    extra = bool(set(call.keywords) - {"device", "non_blocking"}) or len(call.positional) > 2
    return _Target(place, node, not extra and not call.open, non_blocking)


def _device_argument(given: Value, node: ast.AST | None, frame: Frame) -> Device | None:
    """The device that the first argument of ``.to`` names, ``None`` for a dtype."""
    for observer in events.heard(frame, "on_device_use"):
        observer.on_device_use(frame, node or frame.interpreter.tree, given, False)
    place = placement(given)
    if place is not None:
        return place
    if isinstance(given, Const):
        if isinstance(given.value, int) and not isinstance(given.value, bool):
            for observer in events.heard(frame, "on_device_index"):
                observer.on_device_index(frame, node or frame.interpreter.tree, given, f".to({given.value})")
            return device.accelerator("cuda", given.value)
        return None if given.value is None else device.UNKNOWN
    text = names.dotted(node) if isinstance(node, ast.expr) else ""
    if isinstance(given, Named):
        return None if is_dtype(given.path) else device.UNKNOWN
    if isinstance(given, Tensor):
        return given.device
    if isinstance(given, Opaque) and given.hint == "tensor":
        return as_tensor(given).device
    return None if is_dtype(text) else device.UNKNOWN
