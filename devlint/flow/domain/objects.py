"""Objects and what makes them: modules, instances, classes, functions, and other things of torch that keep a state."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import field

from devlint.device import Condition
from devlint.flow.catalog.concepts import ARRAY
from devlint.flow.domain.values import Const, Environment, Mapping, Sequence, Value
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.immutable import immutable, replace


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
class Stateful(Value):
    """An optimizer, a dataset, a generator, a context manager: something of torch that is neither tensor nor module."""

    path: str
    tensors: tuple[Value, ...] = ()
    node: ast.AST | None = None
    """The call that made it, where that matters."""


PARTIAL = "functools.partial"
"""The path of a :class:`Stateful` that is a function with some of its arguments."""


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
