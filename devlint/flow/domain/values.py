"""What the interpreter knows of a value: nothing, its name, a literal, a condition, or what is in a list or dict.

Tensors, batches and devices are in ``tensors``, modules and other objects in ``objects``.

Values are immutable and shared; what changes in place (a module's device, an object's attributes) lives in the state's
heap under the value's identity.
"""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import UNKNOWN as NOWHERE
from devlint.device import Condition, Device, Topic, Truth
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
class Flag(Value):
    """A truth value: ``positive`` says whether it is true when ``condition`` holds.

    ``accelerated`` is +1 when the condition, where it holds, means that an accelerator is there, -1 when it does where
    it fails, else 0; +2 when it does where it holds, and its failing does not mean the CPU, -2 the other way round.
    ``parts`` are the conditions which all hold when it does.  ``by_name`` says that only the name of a setting says so.
    """

    condition: Condition
    positive: bool = True
    accelerated: int = 0
    parts: tuple[Flag, ...] = ()
    by_name: bool = False

    @property
    def telling(self) -> bool:
        """Whether it is worth remembering under the name that it is given."""
        known = isinstance(self.condition, Truth) or Topic.VERSION in self.condition.topics
        return bool(self.accelerated or self.parts) or known

    def negated(self) -> Flag:
        """The opposite."""
        return replace(self, positive=not self.positive)


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


CONTAINERS = frozenset({Sequence, Mapping})
"""What holds other values, which change in place."""


def is_literal(value: Value | None, expected: bool | None) -> bool:
    """Whether it surely is ``True``, ``False`` or ``None``, whichever is expected, and given at all."""
    return isinstance(value, Const) and value.value is expected


def is_none(value: Value | None) -> bool:
    """Whether it surely is ``None``, and given."""
    return is_literal(value, None)


def is_number(value: Value) -> bool:
    """Whether it surely is a number of Python."""
    number = isinstance(value, Const) and isinstance(value.value, (int, float))
    return number or (isinstance(value, Opaque) and value.hint == "number")
