"""Values that come from another file: what of them still means something here.

A tensor keeps its device and its story, but not the place where it was made: that is not this file's to mend.
"""

from __future__ import annotations

from collections.abc import Iterable

from devlint import device
from devlint.device import AVAILABLE, Device, Kind, Role
from devlint.flow.domain.heap import Heap
from devlint.flow.domain.objects import mapped
from devlint.flow.domain.provenance import NO_ORIGIN, Origin
from devlint.flow.domain.tensors import Batches, DeviceValue, Tensor
from devlint.flow.domain.values import CONTAINERS, UNKNOWN, Const, Flag, Mapping, Named, Opaque, Value
from devlint.flow.program.identity import ELSEWHERE
from devlint.immutable import replace
from devlint.sites.base import Step


def scrubbed(value: Value) -> Value:
    """A value of another file without the place where it was made."""
    if isinstance(value, Tensor):
        origin = value.origin.plain()
        return value if origin == value.origin else replace(value, origin=origin)
    return mapped(value, scrubbed)


def scrubbed_heap(heap: Heap) -> Heap:
    """What another file left on the heap, in the same way."""
    return {key: scrubbed(held) if isinstance(held, Value) else held for key, held in heap.items()}


def named_in(place: Device, spelled: str) -> Device:
    """A device that another file names, under the name that it has here."""
    named = place.kind is Kind.CHOICE or (place.kind is Kind.SYMBOL and place.role is Role.DEVICE)
    return replace(place, text=spelled) if named else place


def outside(value: Value, keeper: str) -> Value:
    """What a method returned or keeps, its devices named after ``keeper``: so its caller calls ``self``."""
    if isinstance(value, Opaque):
        return replace(value, text=_outside(value.text, keeper))
    if isinstance(value, (Tensor, DeviceValue, Batches)):
        place = _renamed(value.device, keeper)
        return value if place is value.device else replace(value, device=place)
    return mapped(value, lambda held: outside(held, keeper)) if type(value) in CONTAINERS else value


def _renamed(place: Device, keeper: str) -> Device:
    then, other = (side and _renamed(side, keeper) for side in (place.then, place.other))
    return replace(place, text=_outside(place.text, keeper), then=then, other=other) if place.text or then else place


def _outside(text: str, keeper: str) -> str:
    return f"{keeper}.{text[5:]}" if text.startswith("self.") else text


def arrived(value: Value, given: Iterable[Value], step: Step) -> Value:
    """What a call of another file's function returned; ``step`` says that it did."""
    kept = {id(held) for held in given}
    places = {held.device for held in given if isinstance(held, (Tensor, DeviceValue, Batches))}
    return _Arrival(kept, places, step).take(value)


class _Arrival:
    """One value, with all that is in it, on its way."""

    def __init__(self, kept: set[int], places: set[Device], step: Step) -> None:
        self._kept = kept
        self._places = places
        self._step = step

    def take(self, value: Value) -> Value:
        """The value as it is known here."""
        if id(value) in self._kept:
            return value
        if isinstance(value, Tensor):
            story = value.origin.story
            origin = Origin((self._step, *story)) if story else NO_ORIGIN
            return replace(value, device=self._place(value.device), near=self._place(value.near), origin=origin)
        if isinstance(value, Batches):
            return replace(value, device=self._place(value.device), parts=())
        if isinstance(value, Mapping):
            # on the heap, under its identity, is what the other file knows of it
            value = replace(value, oid=0)
        return mapped(value, self.take) if type(value) in CONTAINERS else self._plain(value)

    def _plain(self, value: Value) -> Value:
        if isinstance(value, DeviceValue):
            place = self._place(value.device)
            return replace(value, device=place, source=None) if place.known else UNKNOWN
        if isinstance(value, Const):
            named = device.parse(value.value) if isinstance(value.value, str) else None
            return DeviceValue(named, self._step.node, form="text") if named is not None else UNKNOWN
        if isinstance(value, Opaque):
            return value if ELSEWHERE not in value.key or value.hint == "number" else UNKNOWN
        if isinstance(value, Flag):
            return value if value.accelerated else UNKNOWN
        if isinstance(value, Named):
            return UNKNOWN if value.path.startswith(".") else value
        return scrubbed(value)

    def _place(self, place: Device) -> Device:
        """A device, unless it is one that only the other file can name; its name there means nothing here."""
        if place in self._places:
            return place
        if any(ELSEWHERE in leaf.symbol and leaf.role is not Role.PLACE for leaf in place.leaves()):
            return device.UNKNOWN
        if any(guard is not AVAILABLE for guard in place.guards()):
            # on which of its paths the other file goes is not known here
            return device.UNKNOWN
        return replace(place, text="") if place.kind is Kind.CHOICE else place
