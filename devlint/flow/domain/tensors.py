"""Tensors, the batches of loaders, and devices: what is somewhere, or says where."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import UNKNOWN as NOWHERE
from devlint.device import Device
from devlint.flow.domain.provenance import NO_ORIGIN, Origin
from devlint.flow.domain.values import Const, Opaque, Value
from devlint.immutable import immutable, replace
from devlint.sites.base import Step


@immutable(frozen=True, slots=True)
class Tensor(Value):
    """A tensor: where it lives, whether it has dimensions, and whose memory it is.

    ``rank`` is the number of dimensions where known, ``many`` whether there surely are some (or surely none).
    ``batch`` is its loader, or those of which one made it.
    """

    device: Device
    many: bool | None = None
    rank: int | None = None
    certain: bool = True
    batch: tuple[int, ...] = ()
    buffer: bool = False
    optional: bool = False
    """Whether it may be ``None``, or no tensor at all."""
    derived: bool = False
    """Whether it came out of a call that could not be followed."""
    grad: str = ""
    """"parameter" or "leaf" where it collects gradients, "graph" where it may be computed from such."""
    near: Device = NOWHERE
    """Where it probably is, where nothing surer is known."""
    number: bool = False
    """Whether it has no dimensions on some path: on the CPU, such a one may meet an accelerator."""
    element: bool = False
    """Whether it is a number, perhaps, out of a tensor of which nobody knows how many dimensions it has."""
    complex: bool = False
    """Whether its numbers are complex on some path."""
    pinned: Step | None = None
    """Where its memory was pinned."""
    apart: bool = False
    """Whether it was given other memory, with which its gradient did not go."""
    origin: Origin = NO_ORIGIN
    """How it came to be what and where it is."""

    def placed(self, place: Device, story: tuple[Step, ...] | None = None) -> Tensor:
        """The tensor where it was not created, with another story where that is given."""
        return replace(self, device=place, origin=self.origin.elsewhere(story))


@immutable(frozen=True, slots=True)
class Batches(Value):
    """What iterating a loader yields, or a part of it: tensors whose layout is not known."""

    loaders: tuple[int, ...]
    device: Device
    certain: bool = False
    part: bool = False
    """Whether it is a part of a batch, not the whole."""
    parts: tuple[Device, ...] = ()
    """Where its parts are, if they are in different places."""
    path: str = ""
    """The class of a library that it is an object of, where it comes from no loader."""
    trail: tuple[str | int | None, ...] = ()
    """Which part of the whole it is: the keys that lead to it, ``None`` for any of them."""
    makers: tuple[ast.Call, ...] = ()
    """The calls of which one made it, where it is an object whose ``.to(...)`` moves what it holds."""
    origin: Origin = NO_ORIGIN

    @property
    def in_place(self) -> bool:
        """Whether its ``.to(...)`` moves what it holds, and returns itself."""
        return bool(self.makers) and not self.trail

    @property
    def owners(self) -> tuple[object, ...]:
        """What it is, or is a part of, on the heap."""
        return (*self.loaders, *self.makers)

    def at(self, position: int) -> Batches:
        """One part of it."""
        place = self.parts[position] if position < len(self.parts) else self.device
        return replace(self, device=place, part=True, parts=(), trail=(*self.trail, position))

    def some(self) -> Batches:
        """Any part of it."""
        return replace(self, part=True, parts=(), trail=(*self.trail, None))

    def under(self, key: object) -> Batches:
        """What it holds under a key or by a name, which may have more to it than a tensor has."""
        return replace(self, trail=(*self.trail, key if isinstance(key, (str, int)) else None))


@immutable(frozen=True, slots=True)
class Loader(Value):
    """A ``DataLoader``: what was passed to it is kept by the interpreter under its identity.

    ``oids`` are several where it is one of several loaders.
    """

    oids: tuple[int, ...]
    batches: Device
    certain: bool = False
    """Whether the batches are known to be made of tensors alone."""
    wrapped: bool = False
    """Whether it is what an unknown call made of the loader: a progress bar, if it is looped over at once."""
    parts: tuple[Device, ...] = ()
    """Where the parts of a batch are, if they are in different places."""


@immutable(frozen=True, slots=True)
class DeviceValue(Value):
    """A ``torch.device`` or a string that names one."""

    device: Device
    node: ast.AST | None = None
    source: Origin | None = None
    """The origin of the tensor whose device it is, where that tensor is on the CPU by default."""
    form: str = ""
    """What is known of its own type: "tensor" if it is a ``torch.device`` read off a tensor, which names an index
    wherever there is one, "made" if it is one that the code made, "text" if it is a string; else empty."""

    @property
    def is_object(self) -> bool:
        """Whether it is proven to be a ``torch.device``, and no string."""
        return self.form in ("tensor", "made")


@immutable(frozen=True, slots=True)
class TensorType(Value):
    """One of several legacy tensor types, such as ``torch.cuda.FloatTensor``, which have their tensors in one place."""

    device: Device


PLACED = frozenset({Tensor, DeviceValue, Batches})
"""What has a device."""


def as_tensor(value: Value) -> Tensor:
    """The value where the program uses it as a tensor."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Opaque):
        # an object of the unknown is no argument: nothing says that its device is the caller's choice
        known = value.role is device.Role.INPUT and value.hint != "host"
        place = device.symbol(value.key, value.text, device.Role.INPUT) if known else NOWHERE
        certain = value.hint == "tensor"
        return Tensor(place, certain=certain, derived=value.derived, optional=value.optional, near=value.near)
    if isinstance(value, Batches):
        # an object of a library's class may do more in its methods than its tensors would
        tensor = Tensor(value.device, many=True, certain=value.certain, derived=bool(value.path), batch=value.loaders)
        return replace(tensor, origin=value.origin)
    return _ANYWHERE


_ANYWHERE = Tensor(NOWHERE, certain=False)


def surely_tensor(value: Value) -> bool:
    """Whether the value is one tensor, or an argument which the code shows to be one."""
    return isinstance(value, Tensor) or (isinstance(value, Opaque) and value.hint == "tensor")


def is_definite(value: Value) -> bool:
    """Whether the value is surely a tensor, or a batch of some, and so decides about the result of what gets it."""
    return isinstance(value, Batches) or surely_tensor(value)


def tensor_away(value: Value) -> bool:
    """Whether a tensor is known to be, or to be able to be, elsewhere than on the CPU."""
    return (
        isinstance(value, Tensor)
        and value.device.known
        and value.device.accelerates() is not False
        and bool(value.origin.story)
    )


def placement(value: Value) -> Device | None:
    """The device that a value names, ``None`` where it is no device."""
    if isinstance(value, DeviceValue):
        return value.device
    if isinstance(value, Const):
        return device.parse(value.value) if isinstance(value.value, str) else None
    if isinstance(value, Opaque) and value.hint == "device":
        return device.symbol(value.key, value.text)
    return None


def named_place(value: Value) -> Device | None:
    """The device that a value names where a device is asked for: anything unknown stands for one of its own."""
    place = placement(value)
    if place is None and isinstance(value, Opaque):
        return device.symbol(value.key, value.text)
    return place


def names_device(held: object) -> bool:
    """Whether something surely is a device."""
    return isinstance(held, DeviceValue) or (isinstance(held, Opaque) and held.hint == "device")


def may_be_away(held: object) -> bool:
    """Whether something surely is a device, and not surely the CPU; a rank may be that of a matrix."""
    if isinstance(held, Opaque) and held.text.rpartition(".")[2] == "rank":
        return False
    host = isinstance(held, DeviceValue) and held.device.accelerates() is False
    return names_device(held) and not host
