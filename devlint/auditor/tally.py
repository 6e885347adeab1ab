"""Sums of what happened: one tally for each thing that is counted together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from devlint.auditor.frames import NOWHERE
from devlint.record import FIRST_CALLS


class What(NamedTuple):
    """What is counted together; the fields are those of :class:`devlint.record.Event`."""

    kind: Literal["copy", "sync", "pin", "move", "call"]
    name: str
    place: int = NOWHERE
    source: str = ""
    target: str = ""
    subject: Literal["", "tensor", "module"] = ""
    backward: bool = False
    pinned: bool | None = None
    blocking: bool | None = None
    non_blocking: bool = False
    temporary: bool = False
    loader: int | None = None


@dataclass(slots=True)
class Tally:
    """The sum of one :class:`What` since the last step ended."""

    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0
    repeats: int = 0
    unwaited: int = 0
    example: str = ""
    threads: set[str] = field(default_factory=set)
    first: list[tuple[float, float, int]] = field(default_factory=list)
    """The first calls one by one: when each began, how long the host was blocked, and its bytes."""

    def take(self, tally: Tally) -> None:
        """Add another sum to this one."""
        self.calls += tally.calls
        self.bytes += tally.bytes
        self.seconds += tally.seconds
        self.repeats += tally.repeats
        self.unwaited += tally.unwaited
        self.example = self.example or tally.example
        self.threads |= tally.threads
        if len(self.first) < FIRST_CALLS:
            self.first = [*self.first, *tally.first][:FIRST_CALLS]


Pending = dict[What, Tally]
"""Sums that are not yet known to belong to a phase."""


def merged(parts: Iterable[Pending]) -> Pending:
    """The sum of several parts, none of which is changed."""
    whole: Pending = {}
    for part in parts:
        for what, tally in list(part.items()):  # a list, as another thread may add to the part
            whole.setdefault(what, Tally()).take(tally)
    return whole
