"""Replacing attributes of other people's modules and classes, and putting them back."""

from __future__ import annotations

from typing import Any

_ABSENT = object()


class Patches:
    """Attributes that were replaced, newest last.

    What is put back is what was there; if somebody else has wrapped the replacement since, it stays, since taking
    it out would take theirs out too.  A replacement must therefore pass on once its session is no longer alive.
    """

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, object, object]] = []

    def set(self, owner: Any, name: str, value: object) -> None:
        """Replace an attribute, which may be inherited or missing."""
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self._done.append((owner, name, before, value))

    def undo(self) -> None:
        """Put everything back."""
        while self._done:
            owner, name, before, value = self._done.pop()
            if vars(owner).get(name, _ABSENT) is not value:
                continue
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
