"""Values that never change, as a frozen dataclass has them, at the cost of a plain one.

A frozen dataclass sets each field through ``object.__setattr__``, so that making one takes three times as long; the
interpreter makes millions.  Here mypy alone sees to it that nobody assigns to a field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as immutable
else:
    from dataclasses import dataclass

    def immutable(*, frozen: bool, slots: bool) -> Callable[[type], type]:
        """A dataclass that compares and hashes by its fields; it is written as one that is frozen and has slots."""

        def made(kind: type) -> type:
            # a dataclass compiles these for each class, which takes three quarters of its time
            if "__repr__" not in vars(kind):
                kind.__repr__ = _written
            kind.__eq__, kind.__hash__ = _equal, _hash
            kind = dataclass(slots=slots, eq=False, repr=False)(kind)
            kind.compared_ = _values([field.name for field in fields(kind) if field.compare])
            kind.hashed_ = _values([field.name for field in fields(kind) if field.compare and field.hash is not False])
            return kind

        return made

    def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
        # of a single name, it gives no tuple
        return attrgetter(*(names if len(names) > 1 else names * 2))

    def _equal(value: Any, other: Any) -> bool:
        same = other.__class__ is value.__class__
        return value.compared_(value) == value.compared_(other) if same else NotImplemented

    def _hash(value: Any) -> int:
        return hash(value.hashed_(value))

    def _written(value: Any) -> str:
        parts = ", ".join(f"{field.name}={getattr(value, field.name)!r}" for field in fields(value) if field.repr)
        return f"{type(value).__qualname__}({parts})"


__all__ = ["UNCHANGED", "immutable", "replace"]

UNCHANGED = object()
"""What a compiled class is given for a field that stays as it is."""

_copiers: dict[type, Callable[[Any], Any]] = {}


def replace(value: T, **changes: object) -> T:
    """A copy of such a value with others in some fields: ``dataclasses.replace``, in an eighth of its time."""
    kind = type(value)
    copier = _copiers.get(kind)
    if copier is None:
        copier = _copiers[kind] = _copier(kind)
    twin: T = copier(value)
    for name, changed in changes.items():
        setattr(twin, name, changed)
    return twin


def _copier(kind: type) -> Callable[[Any], Any]:
    """What copies the values of a class, field by field, in code made for it; a compiled class has its own."""
    if hasattr(kind, "replaced_"):
        own: Callable[[Any], Any] = kind.replaced_
        return own
    copied = "".join(f"    twin.{field.name} = value.{field.name}\n" for field in fields(kind))
    code = f"def copy(value):\n    twin = new(kind)\n{copied}    return twin\n"
    names: dict[str, Any] = {"new": object.__new__, "kind": kind}
    exec(code, names)
    made: Callable[[Any], Any] = names["copy"]
    return made
