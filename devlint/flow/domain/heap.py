"""The heap: what objects hold at a point of the program, under their identity: attributes by name, and typed fields.

An object is known by its number, or by the key of the opaque value that it is.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator
from typing import Any, Generic, TypeAlias, TypeVar

from devlint import device
from devlint.device import Device
from devlint.flow.domain.objects import Module
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.values import Value
from devlint.immutable import replace
from devlint.sites.distributed import Wrap

T = TypeVar("T")


class Field(Generic[T]):
    """What the interpreter keeps of an object besides its attributes: of one type, or nothing where paths disagree."""

    __slots__ = ("_kind", "_name")

    def __init__(self, name: str, kind: type[T]) -> None:
        self._name = name
        self._kind = kind

    def __repr__(self) -> str:
        return f"<{self._name}>"

    def of(self, heap: Heap, owner: object) -> T | None:
        """What the field of an object holds."""
        held = heap.get((owner, self))
        return held if isinstance(held, self._kind) else None

    def put(self, heap: Heap, owner: object, held: T) -> None:
        """From here on, the field of an object holds something."""
        heap[(owner, self)] = held


HeapKey: TypeAlias = "tuple[object, str | Field[Any]]"
Heap: TypeAlias = "dict[HeapKey, object]"

DEVICE = Field("device", Device)
"""Where a module is."""
ORIGIN = Field("origin", Origin)
"""How a module came to its device."""
CHILDREN: Field[tuple[Module, ...]] = Field("children", tuple)
"""The modules which a container, or a wrapper, was made of."""
CHANGED = Field("changed", bool)
"""Whether a method of a module may have given it parts that are somewhere else."""
REGISTERED: Field[tuple[str, ...]] = Field("registered", tuple)
"""The names of the attributes of a module that are parameters or buffers, if yet none."""
ANY = "?"
"""The name in it of an attribute whose name cannot be told."""
WRAPPED = Field("wrapped", Wrap)
"""The site where a module was wrapped for several devices."""
CONTENT = Field("content", Value)
"""What is in a list or dict now."""
ARGUMENTS: Field[tuple[Value, ...]] = Field("arguments", tuple)
"""What an object of a class of the file was made of."""
MOVED = Field("moved", bool)
"""Whether something of a batch, or of a part of it, may have been put elsewhere, by its loader and its trail."""
CONSUMER = Field("consumer", Device)
"""Where the module is that an argument, by its key, has gone into."""
MET: Field[tuple[ast.AST, ...]] = Field("met", tuple)
"""The creations of those tensors of the CPU that an argument, by its key, has met."""


def attributes(heap: Heap, owner: object) -> Iterator[tuple[str, object]]:
    """The attributes of an object, with what they hold."""
    for (known, name), held in heap.items():
        if known == owner and isinstance(name, str):
            yield name, held


def item(key: str | int) -> str:
    """The attribute that stands for the item of something under a literal key."""
    return f"[{key!r}]"


def identical(first: Heap, second: Heap) -> bool:
    """Whether two copies of a heap were left alone."""
    alike = len(first) == len(second) and all(map(operator.is_, first.values(), second.values()))
    return alike and all(map(operator.is_, first, second))


def made_since(heap: Heap, *values: object) -> bool:
    """Whether no module among some values is there already."""
    return not any(isinstance(value, Module) and (value.oid, DEVICE) in heap for value in values)


def alike(heap: Heap, other: Heap, one: object, two: object) -> Module | None:
    """One for two modules, unless either is there on the other path, too: what moves the one would move the other."""
    return either(heap, other, one, two) if made_since(other, one) and made_since(heap, two) else None


def either(heap: Heap, other: Heap, one: object, two: object) -> Module | None:
    """Two modules of one class in one place, each made on a path of its own: one is as good as the other."""
    if not isinstance(one, Module) or not isinstance(two, Module) or one.wraps or two.wraps or one.oid == two.oid:
        return None
    kind = one.path, one.cls, one.has_state, one.spread, one.item
    place = DEVICE.of(heap, one.oid)
    gone = (one.oid, CHANGED) in heap or (two.oid, CHANGED) in other
    if kind != (two.path, two.cls, two.has_state, two.spread, two.item) or gone or place is None:
        return None
    if DEVICE.of(other, two.oid) != place:
        return None
    mine, its = CHILDREN.of(heap, one.oid), CHILDREN.of(other, two.oid)
    if mine is not None and its is not None:
        CHILDREN.put(heap, one.oid, tuple(child for child in mine if child in its))
        for child in {*mine} ^ {*its}:
            # it goes along on one path only
            for side in (heap, other):
                if (child.oid, DEVICE) in side:
                    DEVICE.put(side, child.oid, device.UNKNOWN)
    return replace(one, empty=one.empty and two.empty)


def half_known(place: HeapKey, held: object) -> object:
    """What one path knows: of an object that only it made, everything; of one that was there before, nothing."""
    return device.UNKNOWN if isinstance(held, Device) and isinstance(place[0], str) else held
