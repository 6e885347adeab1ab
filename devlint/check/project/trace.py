"""What an analysis has looked at, and what its results depend on therefore."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from devlint.check.project.content import Fingerprint

Key = TypeVar("Key")
T = TypeVar("T")


class Name(NamedTuple):
    """A name in a folder."""

    folder: str
    name: str


@dataclass(slots=True)
class Trace:
    """What was looked at: ``read`` are files, ``names`` what stands under a name.

    That is a folder (True), a file (False), or nothing (None).
    """

    read: set[str] = field(default_factory=set)
    names: dict[Name, bool | None] = field(default_factory=dict)

    def add(self, other: Trace) -> None:
        """Look at what another has looked at, too."""
        self.read |= other.read
        self.names.update(other.names)


def recalled(known: dict[Key, tuple[T, Trace]], key: Key, trace: Trace, find: Callable[[Trace], T]) -> T:
    """What was found for a key, once, by looking at what goes into ``trace`` each time that it is asked for."""
    answer = known.get(key)
    if answer is None:
        looked = Trace()
        answer = known[key] = find(looked), looked
    trace.add(answer[1])
    return answer[0]


class Dependencies(NamedTuple):
    """What the findings of a file depend on: what files held, itself among them, and what was where modules are.

    The latter says of a name in a folder whether it is that of a folder (True), of a file (False) or of nothing (None).
    """

    files: dict[str, Fingerprint]
    names: dict[Name, bool | None]
