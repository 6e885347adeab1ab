"""Calls that may give a module parts which are not where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devlint.flow import names, table
from devlint.flow.state import CHANGED
from devlint.flow.values import Instance, Module, Value

if TYPE_CHECKING:
    from devlint.flow.frame import Call, Frame
    from devlint.flow.index import FunctionInfo, Index

_GIVING = frozenset("append extend insert add_module register_module register_parameter __setattr__ setattr".split())
_DEEPEST = 3


def grown(frame: Frame, call: Call, info: FunctionInfo | None = None, owner: Value | None = None) -> None:
    """A call of ``info``, or of what cannot be seen: where the modules that it gets are is uncertain from here on."""
    heap = frame.state.heap
    given = [owner, *call.values()]
    if isinstance(owner, Instance):
        given += [value for place, value in heap.items() if place[0] == owner.oid and isinstance(value, Module)]
    modules = [value for value in given if isinstance(value, Module)]
    if not modules or (info is not None and not _is_giving(frame.machine.index, info)):
        return
    for value in modules:
        heap[(value.oid, CHANGED)] = True


def _is_giving(index: Index, info: FunctionInfo) -> bool:
    """The same of each call of a function."""
    if info.gives is None:
        info.gives = _gives(index, info)
    return info.gives


def _gives(index: Index, info: FunctionInfo, depth: int = 0) -> bool:
    """Whether a function of the file makes modules, or puts something into a module."""
    for node in info.calls:
        path = index.resolve(names.dotted(node.func))
        name = path.rpartition(".")[2] or getattr(node.func, "attr", "")
        made = index.classes.get(path)
        if name in _GIVING or table.module(path) is not None or (made is not None and made.is_module):
            return True
        inner = info.owner.method(name) if info.owner is not None and path.startswith("self.") else None
        if inner is not None and depth < _DEEPEST and _gives(index, inner, depth + 1):
            return True
    return False
