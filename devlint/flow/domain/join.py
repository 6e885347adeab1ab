"""What a value is where two paths meet, and what any one item is of a list that was filled from several sources.

``join`` is idempotent.  Which side comes first matters to the guard of a choice, the identity of two joined arguments
and the story told, not to where a value may be.  The result is above both sides: it is wherever either may be, and
optional, derived or a bare number where either is.  Exceptions, each because a bug can be on that path alone: of a
tensor and a plain value the tensor stays (as optional), of a list, loader or sampler and ``None`` the former, of an
import and what stands in for it the import; what either side shows of a tensor (that it is one, has dimensions, came
from a batch) counts; an empty list or dict says nothing of what is put into it.  In states, a name bound on one path
stays bound.  The order itself is stated in the tests: nothing else asks for it.
"""

from __future__ import annotations

import functools

from devlint import device
from devlint.device import ITEMS, Condition, Device, Kind, LoopRound
from devlint.flow.catalog.accelerator_api import CUDA_TENSOR_TYPE
from devlint.flow.catalog.creation import is_legacy
from devlint.flow.domain import provenance, truths
from devlint.flow.domain.objects import Module, Stateful, is_host
from devlint.flow.domain.tensors import Batches, DeviceValue, Loader, Tensor, TensorType, as_tensor, placement
from devlint.flow.domain.values import UNKNOWN, Const, Mapping, Named, Opaque, Sequence, Unknown, Value
from devlint.immutable import replace

_MOST_KINDS = 4


def join(first: Value, second: Value, guard: Condition) -> Value:
    """What a name is after a branch: ``first`` where ``guard`` held, else ``second``."""
    if first is second or first == second or is_lost(second):
        return first
    return second if is_lost(first) else _join(first, second, guard)


def _join(first: Value, second: Value, guard: Condition) -> Value:
    if isinstance(first, (Tensor, Opaque)) and isinstance(second, (Tensor, Opaque)):
        return _join_values(first, second, guard)
    for one, two in ((first, second), (second, first)):
        if isinstance(one, Tensor) and isinstance(two, Batches) and two.certain and two.part:
            return _join_values(as_tensor(first), as_tensor(second), guard)
        if isinstance(one, Sequence) and isinstance(two, Opaque) and one.items and two.role is device.Role.INPUT:
            return _join_parts(one, two, guard)
        sampler = isinstance(one, Stateful) and one.path.endswith("Sampler")
        if (sampler or isinstance(one, (Sequence, Loader))) and isinstance(two, Const) and two.value is None:
            return one
        if isinstance(one, Tensor) and is_host(two):
            return replace(one, optional=True)
        if isinstance(one, Module) and one.wraps is not None and (one.wraps is two or one.wraps == two):
            return replace(one, spread=True, perhaps=(*one.perhaps, guard))
        if isinstance(one, Named) and guard is not ITEMS and (is_host(two) or isinstance(two, Unknown)):
            # a module that may fail to be imported is there where it is used
            return one
    one_place, two_place = placement(first), placement(second)
    if one_place is not None and two_place is not None:
        form = _form(first) if _form(first) == _form(second) else ""
        return DeviceValue(device.choice(guard, one_place, two_place), getattr(first, "node", None), form=form)
    one_place, two_place = type_place(first), type_place(second)
    if one_place is not None and two_place is not None:
        return TensorType(device.choice(guard, one_place, two_place))
    return _join_containers(first, second, guard)


def is_lost(value: Value) -> bool:
    """Whether it never comes to be, since what makes it, or something in it, raises."""
    if isinstance(value, Sequence):
        return is_lost(value.item) or any(map(is_lost, value.items or ()))
    return isinstance(value, Tensor) and value.device is device.NOWHERE


def type_place(value: Value | None) -> Device | None:
    """Where the tensors of a legacy tensor type are, ``None`` where the value is no such type."""
    if isinstance(value, TensorType):
        return value.device
    name = value.path if isinstance(value, Named) else value.value if isinstance(value, Const) else None
    if not isinstance(name, str):
        return None
    return device.accelerator("cuda") if CUDA_TENSOR_TYPE.fullmatch(name) else device.CPU if is_legacy(name) else None


def _join_containers(first: Value, second: Value, guard: Condition) -> Value:
    """Two containers of one kind."""
    if isinstance(first, Sequence) and isinstance(second, Sequence):
        # of two lists comes one of which it is not known which it is
        return replace(_join_sequences(first, second, guard), oid=first.oid if first.oid == second.oid else 0)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        joined = _join_mappings(first, second, guard)
        return replace(joined, oid=first.oid) if isinstance(joined, Mapping) and first.oid == second.oid else joined
    if isinstance(first, Stateful) and isinstance(second, Stateful) and first.path == second.path:
        return _join_held(first, second, guard)
    return _join_loaded(first, second, guard)


def _join_held(first: Stateful, second: Stateful, guard: Condition) -> Value:
    """Two data sets of tensors, or other objects of one kind that hold some: what they have in the same place."""
    if not first.tensors or not second.tensors:
        return UNKNOWN
    more = max(first.tensors, second.tensors, key=len)[min(len(first.tensors), len(second.tensors)) :]
    both = (join(one, two, guard) for one, two in zip(first.tensors, second.tensors, strict=False))
    return replace(first, tensors=(*both, *more))


def _join_loaded(first: Value, second: Value, guard: Condition) -> Value:
    """One of several loaders, a batch of one of them, or a truth value."""
    if isinstance(first, Batches) and isinstance(second, Batches):
        loaders = tuple(dict.fromkeys((*first.loaders, *second.loaders)))
        place = device.choice(guard, first.device, second.device)
        trail = tuple(one if one == two else None for one, two in zip(first.trail, second.trail, strict=False))
        makers = tuple(dict.fromkeys((*first.makers, *second.makers)))
        certain, part = first.certain and second.certain, first.part or second.part
        return Batches(loaders, place, certain, part, trail=trail, makers=makers)
    if isinstance(first, Loader) and isinstance(second, Loader):
        place = device.choice(guard, first.batches, second.batches)
        return Loader(tuple(dict.fromkeys((*first.oids, *second.oids))), place, first.certain and second.certain)
    return truths.either(first, second, guard) or UNKNOWN


def _form(value: Value) -> str:
    """What is known of the type of a value that names a device."""
    if isinstance(value, DeviceValue):
        return value.form
    return "text" if isinstance(value, Const) else ""


def _join_values(first: Tensor | Opaque, second: Tensor | Opaque, guard: Condition) -> Value:
    """A tensor or argument on both paths."""
    if isinstance(first, Opaque) and isinstance(second, Opaque):
        if placement(first) is not None and placement(second) is not None:
            return DeviceValue(
                device.choice(guard, placement(first) or device.UNKNOWN, placement(second) or device.UNKNOWN)
            )
        if first.role is second.role is device.Role.INPUT:
            hint = first.hint if first.hint == second.hint else ""
            derived = first.derived or second.derived
            key = first.key if first.key == second.key else f"{first.key}|{second.key}"
            return replace(first, key=key, hint=hint, derived=derived, computed=first.computed and second.computed)
        return UNKNOWN
    joined = _join_tensors(as_tensor(first), as_tensor(second), guard)
    # an argument of which nothing is known may be None as well
    argument = first if isinstance(first, Opaque) else second
    optional = isinstance(argument, Opaque) and (argument.optional or argument.hint != "tensor")
    return replace(joined, optional=joined.optional or optional)


def _join_parts(known: Sequence, argument: Opaque, guard: Condition) -> Sequence:
    """A tuple on one path, an argument on the other: each place holds the one or a part of the other."""
    items = tuple(
        join(item, replace(argument, key=f"{argument.key}[{place}]", text=f"{argument.text}[{place}]", hint=""), guard)
        for place, item in enumerate(known.items or ())
    )
    return replace(known, items=items, item=UNKNOWN)


def _join_sequences(first: Sequence, second: Sequence, guard: Condition) -> Sequence:
    if first.items is not None and second.items is not None and len(first.items) == len(second.items):
        pairs = zip(first.items, second.items, strict=True)
        items = tuple(join(one, two, guard) for one, two in pairs)
        return replace(first, items=items, item=join(first.item, second.item, guard))
    head = tuple(join(one, two, guard) for one, two in zip(first.first(), second.first(), strict=False))
    return Sequence(None, _join_items(first, second, guard), first.mutable, head=head)


def _join_items(first: Sequence, second: Sequence, guard: Condition) -> Value:
    """What any one item is of the one list or of the other."""
    grown = isinstance(guard, LoopRound) or any(
        isinstance(held.item, Tensor) and held.item.device.guard is ITEMS for held in (first, second)
    )
    branched = first.items and second.items and not isinstance(guard, LoopRound)
    if (grown and not branched) or first.items == () or second.items == ():
        return gather(first, second)
    return join(first.item, second.item, guard)


def _join_mappings(first: Mapping, second: Mapping, guard: Condition) -> Value:
    """Two dicts with the same literal keys; one that is empty says nothing of what is put into it."""
    if [key for key, _ in first.items] != [key for key, _ in second.items]:
        return _join_entries(first, second, guard)
    pairs = zip(first.items, second.items, strict=True)
    items = tuple((key, join(one, two, guard)) for (key, one), (_, two) in pairs)
    if first.items or first.other is not UNKNOWN is not second.other:
        return Mapping(items, join(first.other, second.other, guard))
    return Mapping((), second.other if first.other is UNKNOWN else first.other)


def _join_entries(first: Mapping, second: Mapping, guard: Condition) -> Value:
    """Two dicts of which nothing is known but what is in them."""
    held = []
    for mapping in (first, second):
        values = [value for _, value in mapping.items] + ([] if mapping.other is UNKNOWN else [mapping.other])
        if not values:
            return UNKNOWN
        held.append(functools.reduce(add_item, values))
    one, two = held
    every = add_item(one, two) if isinstance(guard, LoopRound) else join(one, two, guard)
    return UNKNOWN if every is UNKNOWN else Mapping((), every)


def gather(first: Sequence, second: Sequence) -> Value:
    """What any one item is of a list that was filled as ``first`` and as ``second``."""
    # an empty list says nothing about what is put into it
    if second.items == () or first.items == ():
        return first.item if second.items == () else second.item
    return add_item(first.item, second.item)


def add_item(known: Value, added: Value) -> Value:
    """What any one item is of a list of ``known`` things, when ``added`` is put into it."""
    if is_lost(added):
        return known
    if isinstance(known, Tensor) and isinstance(added, Tensor):
        if known.device.kind is added.device.kind is Kind.CPU or added.device in _among(known.device):
            return known
        if known.device in _among(added.device):
            return added
        if known.device.guard is ITEMS:
            return replace(_join_tensors(known, added, ITEMS), device=_all(known.device, added.device))
    return join(known, added, ITEMS)


def items_of(place: Device) -> tuple[Device, ...]:
    """Where the items of a list are, that holds several kinds."""
    if place.guard is not ITEMS or place.then is None or place.other is None:
        return (place,)
    return (*items_of(place.then), *items_of(place.other))


def _among(place: Device) -> tuple[Device, ...]:
    """The places that a list is known to have an item in, or to have had one in some round."""
    return place.leaves() if isinstance(place.guard, LoopRound) else items_of(place)


def _all(place: Device, added: Device) -> Device:
    """The places of a list's items, and those of others."""
    for more in items_of(added):
        kinds = items_of(place)
        if more in kinds or (more.kind is Kind.CPU and any(kind.kind is Kind.CPU for kind in kinds)):
            continue
        if not more.known or len(kinds) >= _MOST_KINDS:
            return device.UNKNOWN
        place = Device(Kind.CHOICE, guard=ITEMS, then=place, other=more)
    return place


def _join_tensors(first: Tensor, second: Tensor, guard: Condition) -> Tensor:
    number = _number(first, second)
    return Tensor(
        device=first.device if first.device == second.device else device.choice(guard, first.device, second.device),
        many=first.many if first.many == second.many else None if number else (first.many or second.many),
        rank=first.rank if first.rank == second.rank else None,
        certain=first.certain or second.certain,
        batch=first.batch or second.batch,
        buffer=first.buffer or second.buffer,
        optional=first.optional or second.optional,
        derived=first.derived or second.derived,
        grad=first.grad if first.grad == second.grad else "graph",
        near=first.near if first.near == second.near else device.UNKNOWN,
        number=number,
        element=first.element or second.element,
        complex=first.complex or second.complex,
        pinned=first.pinned if second.pinned else None,
        apart=first.apart or second.apart,
        origin=provenance.join(first.origin, second.origin),
    )


def _number(first: Tensor, second: Tensor) -> bool:
    """Whether a tensor surely has no dimensions on one of two paths, and may have some on the other."""
    return first.number or second.number or (first.many != second.many and False in (first.many, second.many))
