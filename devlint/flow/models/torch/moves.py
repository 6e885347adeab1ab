"""Moves: ``.to``, ``.cuda``, ``.cpu`` and their kin, on tensors, modules and what may be either."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import Device, Kind
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import CHANGED, DEVICE, STORY
from devlint.flow.domain.values import (
    UNKNOWN,
    Batches,
    Instance,
    Module,
    Opaque,
    Tensor,
    Unknown,
    Value,
    as_tensor,
)
from devlint.flow.models.data.loaders import Loaders
from devlint.flow.models.torch.move_targets import Target, target_of
from devlint.flow.transfer import api_use, creations, havoc, loop_invariance, memory, module_state, repeated_copies
from devlint.flow.transfer.placement import in_graph, stranded
from devlint.immutable import replace
from devlint.sites.base import Operand, Step
from devlint.sites.transfers import Transfer

_OF_CUDA = frozenset({"device", "non_blocking", "memory_format"})
"""What torch's own ``.cuda()`` can be told by name."""


def move(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> Value:
    """A move of anything but a module: the site, and the moved value."""
    name = node.attr
    if name == "cuda" and not set(call.keywords) <= _OF_CUDA:
        # a namesake of another library
        return UNKNOWN
    target = target_of(frame, call, name)
    _initialize(frame, call, target.device)
    tensor = as_tensor(receiver)
    if isinstance(receiver, Batches) and call.node in frame.discarded and _is_collated(frame, receiver):
        # what torch itself puts into a batch, and has a .to, is a tensor
        tensor = replace(tensor, certain=True)
        site = _transfer(frame, call, node, receiver, tensor, frame.operand(node.value, tensor), target)
    else:
        site = _transfer(frame, call, node, receiver, tensor, frame.operand(node.value, receiver), target)
    frame.emit(site)
    for observer in events.heard(frame, "on_move"):
        observer.on_move(frame, site, receiver, call)
    if target.device is None:
        # another layout of the memory is another memory
        copied = "memory_format" in call.keywords and isinstance(receiver, (Batches, Tensor))
        return memory.separate(replace(tensor, certain=True)) if copied else receiver
    return _result(frame, call, node, receiver, tensor, site)


def _is_collated(frame: Frame, batch: Batches) -> bool:
    """Whether torch itself makes the batches of which this is a part."""
    return batch.part and frame.component(Loaders).collates(batch.loaders)


def _transfer(
    frame: Frame, call: Call, node: ast.Attribute, receiver: Value, tensor: Tensor, operand: Operand, target: Target
) -> Transfer:
    """The site of a move of anything but a module."""
    scope = scope_of(frame)
    made = creations.creation(frame, call.node, node.value, tensor)
    pinned, by = _memory(frame, receiver)
    placed = target.device is not None
    return Transfer(
        call.node,
        scope,
        spelled=node.attr,
        kind="tensor" if tensor.certain else "",
        value=operand,
        target=target.device,
        target_node=target.node,
        plain=target.plain,
        discarded=call.node in frame.discarded,
        non_blocking=target.non_blocking,
        foreign=isinstance(receiver, Instance) and receiver.cls.method(node.attr) is not None,
        pinned=pinned,
        pinned_by=by,
        invariant=placed and repeated_copies.invariant(frame, scope, call.node, operand, target.node, made),
        unwaited=loop_invariance.read_early(frame, call.node) if _arrives_late(target) else None,
        creation=made,
        kept=repeated_copies.every_call(frame, call.node, node.value, tensor, target.device),
    )


def _result(frame: Frame, call: Call, node: ast.Attribute, receiver: Value, tensor: Tensor, site: Transfer) -> Value:
    """What a move to a device returns, and leaves behind."""
    place = site.target
    if place is None or isinstance(receiver, Instance):
        return UNKNOWN
    if site.discarded and isinstance(receiver, Opaque) and not tensor.certain and site.plain:
        # called for its effect, so it is no tensor: what it is stays there
        DEVICE.put(frame.state.heap, receiver.key, place)
        STORY.put(frame.state.heap, receiver.key, (Step(call.node, f"moved to {place} here"),))
        return receiver
    if site.discarded and tensor.certain and isinstance(node.value, ast.Name) and place.same(tensor.device) is not True:
        # the dropped result is reported, and what follows from it is not
        frame.state.env[node.value.id] = replace(stranded(tensor), device=device.UNKNOWN)
    if isinstance(receiver, Batches):
        return replace(receiver, device=place, parts=())
    if isinstance(receiver, (Unknown, Opaque)) and not tensor.certain:
        return _moved_stranger(frame, call, node.value, place)
    return _moved(frame, call, tensor, place)


def _memory(frame: Frame, receiver: Value) -> tuple[bool | None, Step | None]:
    """Whether what is copied is pinned, and by whom: known of the batches of loaders, and of what the code pins."""
    if isinstance(receiver, Tensor) and receiver.device.kind is Kind.CPU and receiver.pinned is not None:
        return True, receiver.pinned
    on_host = isinstance(receiver, Batches) and receiver.device == device.CPU
    by = frame.component(Loaders).pins(receiver.loaders) if isinstance(receiver, Batches) and on_host else None
    return (None if by is None else True), by


def _arrives_late(target: Target) -> bool:
    return target.non_blocking and target.device is not None and target.device.kind is Kind.CPU


def _moved(frame: Frame, call: Call, tensor: Tensor, place: Device) -> Tensor:
    settled = frame.state.settled(place)
    label = "copied to the CPU here" if settled.kind is Kind.CPU else f"moved to {place} here"
    return tensor if tensor.device.same(place) else moved(tensor, place, Step(call.node, label))


def moved(tensor: Tensor, place: Device, step: Step) -> Tensor:
    """The same tensor in another place."""
    return Tensor(
        place,
        many=tensor.many,
        rank=tensor.rank,
        certain=tensor.certain,
        story=(step,),
        batch=tensor.batch,
        grad=in_graph(tensor),
    )


def _moved_stranger(frame: Frame, call: Call, moved: ast.expr, place: Device) -> Value:
    """A moved value which may be a tensor or a module: its device is known."""
    story = Step(call.node, f"`{frame.interpreter.text(moved)}` is moved to {place} here")
    return Tensor(place, certain=False, story=(story,))


def move_module(frame: Frame, call: Call, module: Module, node: ast.Attribute) -> Value:
    """A move of a module: in place."""
    target = target_of(frame, call, node.attr)
    empty = module_state.is_empty(frame, module)
    _initialize(frame, call, target.device)
    place = device.UNKNOWN if (module.oid, CHANGED) in frame.state.heap else frame.place_of(module)
    operand = Operand(node.value, frame.interpreter.text(node.value), place, None, True, frame.story_of(module))
    site = Transfer(
        call.node,
        scope_of(frame),
        spelled=node.attr,
        kind="module",
        value=operand,
        target=target.device,
        target_node=target.node,
        plain=target.plain,
        discarded=call.node in frame.discarded,
        non_blocking=target.non_blocking,
        empty=empty,
    )
    frame.emit(site)
    for observer in events.heard(frame, "on_move"):
        observer.on_move(frame, site, module, call)
    if target.device is not None and target.device.same(place) is not True:
        text = frame.interpreter.text(node.value)
        relocate(frame, module, target.device, Step(call.node, f"`{text}` is moved to {target.device} here"))
    return module


def relocate(frame: Frame, module: Module, place: Device, step: Step) -> None:
    """A module goes elsewhere, with what is known to hang on where it is."""
    for observer in events.heard(frame, "on_relocation"):
        observer.on_relocation(frame, module, place, step)
    havoc.move(frame, frame.place_of(module))
    frame.put(module, place, step)


def _initialize(frame: Frame, call: Call, place: Device | None) -> None:
    if place is not None and place.kind is Kind.ACCELERATOR and place.type == "cuda":
        api_use.initialize(frame, call.node)
