"""Replacing attributes of other people's modules and classes, hooking into them, and undoing it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

_ABSENT = object()


class Patches:
    """Attributes that were replaced, and whatever else is to be undone, newest last.

    What is put back is what was there; if somebody else has wrapped the replacement since, it stays, since taking
    it out would take theirs out too.  A replacement must therefore pass on once its session is no longer alive.
    """

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def set(self, owner: Any, name: str, value: object) -> None:
        """Replace an attribute, which may be inherited or missing; a function takes the name of what it replaces."""
        before, visible = vars(owner).get(name, _ABSENT), getattr(owner, name, None)
        setattr(owner, name, value)
        _name(value, owner, name, visible)
        self._undo.append(functools.partial(_restore, owner, name, before, value))

    def add(self, undo: Callable[[], object]) -> None:
        """Undo something else with the rest, such as a hook, which its handle removes."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Put everything back; where something cannot be, another call goes on with the rest."""
        while self._undo:
            self._undo.pop()()


def _restore(owner: Any, name: str, before: object, value: object) -> None:
    if vars(owner).get(name, _ABSENT) is not value:
        return
    if before is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, before)


def _name(value: object, owner: Any, name: str, before: object) -> None:
    """Let a function look like what it replaces, unless it is found by the name it has: so it is pickled as that.

    A function of C, which has no module, gives what wraps it a name that leads nowhere.
    """
    function = getattr(value, "__func__", value)  # of a static method
    if not isinstance(function, FunctionType) or _found(function.__module__, function.__qualname__) is function:
        return
    if callable(before):
        functools.update_wrapper(function, before)
    else:
        function.__name__ = name
    prefix = f"{owner.__qualname__}." if isinstance(owner, type) else ""
    module = owner.__module__ if isinstance(owner, type) else getattr(owner, "__name__", "")
    if _found(function.__module__, function.__qualname__) is not function and _found(module, prefix + name) is function:
        function.__module__, function.__qualname__ = module, prefix + name


def _found(module: str, path: str) -> object:
    try:
        return functools.reduce(getattr, path.split("."), sys.modules.get(module))
    except AttributeError:
        return None
