"""What the interpreter knows of a value: a tensor, a module, a loader, a device, a container, or how it is called.

Values are immutable and shared; what changes in place (a module's device, an object's attributes) lives in the state's
heap under the value's identity.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import field

from devlint import device
from devlint.device import UNKNOWN as NOWHERE
from devlint.device import Condition, Device, Topic, Truth
from devlint.flow.catalog.concepts import ARRAY
from devlint.flow.domain.provenance import NO_ORIGIN, Origin
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.immutable import immutable, replace
from devlint.sites.base import Step


class Value:
    """Something the program computes."""

    __slots__ = ()


class Environment:
    """The names that a nested function closes over, as they are whenever it is called."""

    def binding(self, name: str) -> Value | None:
        """What a name is bound to there."""
        raise NotImplementedError


class Unknown(Value):
    """Nothing is known."""

    __slots__ = ()


UNKNOWN = Unknown()


@immutable(frozen=True, slots=True)
class Opaque(Value):
    """A value of which only the identity is known: an argument, a stranger's attribute, the result of an unknown call.

    Two loads of the same name give the same ``key``, which makes ``args.device`` a device symbol.  ``hint`` says what
    the code itself shows it to be: "tensor", "tensors", "device", "module", "number" or nothing; ``role`` whether it is
    an argument.
    """

    key: str
    text: str
    hint: str = ""
    role: device.Role = device.Role.DEVICE
    node: ast.AST | None = None
    derived: bool = False
    """Whether it came out of a call that could not be followed."""
    computed: bool = False
    """Whether that call was given tensors, or what may be some."""
    optional: bool = False
    """Whether it may be ``None``."""
    near: Device = NOWHERE
    """Where it probably is: the device of the module that returned it."""
    managed: Managed | None = None
    """Who places it."""
    kept: Value | None = None
    """The object that keeps it, where that was made in code that is known: not any ``self`` of a class."""


@immutable(frozen=True, slots=True)
class Managed:
    """Who places something instead of the code: ``kind`` as in ``sites.placement.ManagedMove``, ``by`` where.

    ``part`` says that it is no module.
    """

    kind: str
    by: Step
    part: bool = False


@immutable(frozen=True, slots=True)
class Const(Value):
    """A Python literal."""

    value: object


@immutable(frozen=True, slots=True)
class Named(Value):
    """Something imported, by its canonical dotted name, such as ``torch.nn.Linear``."""

    path: str


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
class Flag(Value):
    """A truth value: ``positive`` says whether it is true when ``condition`` holds.

    ``accelerated`` is +1 when the condition, where it holds, means that an accelerator is there, -1 when it does where
    it fails, else 0; +2 when it does where it holds, and its failing does not mean the CPU.  ``parts`` are the
    conditions which all hold when it does.
    """

    condition: Condition
    positive: bool = True
    accelerated: int = 0
    parts: tuple[Flag, ...] = ()

    @property
    def telling(self) -> bool:
        """Whether it is worth remembering under the name that it is given."""
        known = isinstance(self.condition, Truth) or Topic.VERSION in self.condition.topics
        return bool(self.accelerated or self.parts) or known

    def negated(self) -> Flag:
        """The opposite."""
        return replace(self, positive=not self.positive)


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
class Module(Value):
    """An ``nn.Module``, of torch's class ``path`` or of the file's class ``cls``; the heap has its device."""

    oid: int
    path: str = ""
    cls: ClassInfo | None = None
    text: str = ""
    has_state: bool = True
    item: str = ""
    """The class of torch that all modules of a container have."""
    item_cls: ClassInfo | None = None
    """The class of the file that they have."""
    spread: bool = False
    """Whether its call moves the inputs itself (DataParallel, DDP with device ids, managed models)."""
    wraps: Value | None = field(default=None, compare=False)
    """What it was made of, where it is a wrapper for several devices."""
    perhaps: tuple[Condition, ...] = ()
    """The conditions under which it was wrapped, or was not, if it was on one path only."""
    empty: bool = False
    """Whether it is known to have been made without a parameter, a buffer or another module."""


@immutable(frozen=True, slots=True)
class Instance(Value):
    """An object of a class of the file that is no module; its attributes are in the heap."""

    oid: int
    cls: ClassInfo


_LONGEST_HEAD = 8


@immutable(frozen=True, slots=True)
class Sequence(Value):
    """A list or tuple: its ``items`` where they are known, and what any one item is.

    What is in a list now is on the heap, under its ``oid``; ``head`` is how it begins, where only that is known.
    """

    items: tuple[Value, ...] | None
    item: Value = UNKNOWN
    mutable: bool = False
    oid: int = 0
    head: tuple[Value, ...] = ()

    def parts(self) -> tuple[Value, ...]:
        """All that is known of what is in it."""
        return (*(self.items or ()), *self.head, self.item)

    def first(self) -> tuple[Value, ...]:
        """The first items, as far as they are known and worth to be kept where the others are not."""
        return (self.head if self.items is None else self.items)[:_LONGEST_HEAD]


@immutable(frozen=True, slots=True)
class Mapping(Value):
    """A dict with literal keys, and what any other value in it is."""

    items: tuple[tuple[object, Value], ...]
    other: Value = UNKNOWN
    oid: int = 0

    def parts(self) -> tuple[Value, ...]:
        """All that is known of what is in it."""
        return (*(value for _, value in self.items), self.other)


@immutable(frozen=True, slots=True)
class Function(Value):
    """A function of the file, with the names that it closes over."""

    info: FunctionInfo
    closure: tuple[Environment, ...] = ()
    bound: Value | None = None


@immutable(frozen=True, slots=True)
class Class(Value):
    """A class of the file."""

    info: ClassInfo


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

    def at(self, position: int) -> Batches:
        """One part of it."""
        place = self.parts[position] if position < len(self.parts) else self.device
        return replace(self, device=place, part=True, parts=())


@immutable(frozen=True, slots=True)
class Stateful(Value):
    """An optimizer, a dataset, a generator, a context manager: something of torch that is neither tensor nor module."""

    path: str
    tensors: tuple[Value, ...] = ()
    node: ast.AST | None = None
    """The call that made it, where that matters."""


PARTIAL = "functools.partial"
"""The path of a :class:`Stateful` that is a function with some of its arguments."""


CONTAINERS = frozenset({Sequence, Mapping})
"""What holds other values, which change in place."""
PLACED = frozenset({Tensor, DeviceValue, Batches})
"""What has a device."""


def mapped(value: Value, change: Callable[[Value], Value]) -> Value:
    """What holds other values, each of them changed."""
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(map(change, value.items))
        return replace(value, items=items, head=tuple(map(change, value.head)), item=change(value.item))
    if isinstance(value, Mapping):
        return replace(value, items=tuple((key, change(held)) for key, held in value.items), other=change(value.other))
    if isinstance(value, Stateful) and value.tensors:
        return replace(value, tensors=tuple(map(change, value.tensors)))
    return value


def is_host(value: Value) -> bool:
    """A plain Python value or an array: of that and a tensor, only the tensor can be on the wrong device."""
    return isinstance(value, Const) or (isinstance(value, Stateful) and value.path == ARRAY)


def as_tensor(value: Value) -> Tensor:
    """The value where the program uses it as a tensor."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Opaque):
        place = device.symbol(value.key, value.text, device.Role.INPUT)
        # an object of the unknown is no argument: nothing says that its device is the caller's choice
        known = value.role is device.Role.INPUT and value.hint != "host"
        return Tensor(
            place if known else device.UNKNOWN,
            many=None,
            certain=value.hint == "tensor",
            derived=value.derived,
            optional=value.optional,
            near=value.near,
        )
    if isinstance(value, Batches):
        # an object of a library's class may do more in its methods than its tensors would
        return Tensor(value.device, many=True, certain=value.certain, derived=bool(value.path), batch=value.loaders)
    return _ANYWHERE


_ANYWHERE = Tensor(device.UNKNOWN, certain=False)


def placement(value: Value) -> Device | None:
    """The device that a value names, ``None`` where it is no device."""
    if isinstance(value, DeviceValue):
        return value.device
    if isinstance(value, Const):
        if isinstance(value.value, str):
            return device.parse(value.value)
        return None
    if isinstance(value, Opaque) and value.hint == "device":
        return device.symbol(value.key, value.text)
    return None


def named_place(value: Value) -> Device | None:
    """The device that a value names where a device is asked for: anything unknown stands for one of its own."""
    place = placement(value)
    if place is None and isinstance(value, Opaque):
        return device.symbol(value.key, value.text)
    return place


def surely_set(value: Value | None) -> bool:
    """Whether it is something, and cannot be ``None``."""
    if isinstance(value, DeviceValue):
        return value.is_object
    return isinstance(value, (Module, Sequence)) or (isinstance(value, Tensor) and value.certain and not value.optional)


def is_none(value: Value) -> bool:
    """Whether it surely is ``None``."""
    return isinstance(value, Const) and value.value is None


def surely_tensor(value: Value) -> bool:
    """Whether the value is one tensor, or an argument which the code shows to be one."""
    return isinstance(value, Tensor) or (isinstance(value, Opaque) and value.hint == "tensor")


def names_device(held: object) -> bool:
    """Whether something surely is a device."""
    return isinstance(held, DeviceValue) or (isinstance(held, Opaque) and held.hint == "device")


def may_be_away(held: object) -> bool:
    """Whether something surely is a device, and not surely the CPU."""
    host = isinstance(held, DeviceValue) and held.device.accelerates() is False
    return names_device(held) and not host


def tensor_away(value: Value) -> bool:
    """Whether a tensor is known to be, or to be able to be, elsewhere than on the CPU."""
    return (
        isinstance(value, Tensor)
        and value.device.known
        and value.device.accelerates() is not False
        and bool(value.origin.story)
    )
