"""The calls of the runtime that copy or wait, and what the device did for them, in little memory.

Of each call some numbers are kept.  The device's side of a copy is told apart from the call, before it or after it;
both have the same correlation, which is forgotten when both were seen.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from devlint.auditor.profile.timeline import Names, Thread

MICROSECOND = 1e-6
MOST = 10**18
"""No trace counts further than this, and no record may."""
_COPYING = re.compile(r"(?:cuda|hip|cu)Memcpy")
_WAITING = re.compile(r"(?:cuda|hip|cu)(?:Stream|Device|Event|Ctx)Synchronize")
_KIND = re.compile(r"Memcpy (?P<way>[HDP]to[HDP]) \((?P<source>\w+) -> (?P<target>\w+)\)")
_BY_NUMBER = {"1": "HtoD", "2": "DtoH", "3": "DtoD"}
"""``hipMemcpyKind``, of calls that no copy on the device is told of."""
_MEMORY = (None, True, False)
"""Whether memory of the host was pinned, by what is kept of it."""


class Copy(NamedTuple):
    """What the device did for a call; sizes are bytes."""

    way: str = ""
    pinned: bool | None = None
    size: int = 0
    device: int = 0
    seconds: float = 0.0


class Call(NamedTuple):
    """A call of the runtime that copies or waits; ``start`` is the trace's own time, in microseconds."""

    start: float
    seconds: float
    name: str
    copy: Copy

    @property
    def copies(self) -> bool:
        """Whether it copies; it waits for the device otherwise."""
        return _COPYING.match(self.name) is not None

    @property
    def matters(self) -> bool:
        """Whether something may cross to the host, or wait: on ROCm a value is read by a copy within the device."""
        return not self.copies or self.copy.way in ("", "HtoD", "DtoH") or self.name.startswith("hip")


class Calls:
    """All such calls of a trace."""

    def __init__(self) -> None:
        self._threads: dict[Thread, array[int]] = {}
        """The numbers of the calls of each thread."""
        self._names = Names()
        self._starts, self._seconds, self._called = array("d"), array("d"), array("I")
        self._ways, self._memory = array("I"), array("B")
        self._sizes, self._devices, self._copying = array("q"), array("q"), array("d")
        self._awaited: dict[str, int] = {}
        """The calls whose copies were not seen yet, by their correlation."""
        self._early: dict[str, Copy] = {}
        """The copies whose calls were not seen yet."""

    def add(self, thread: Thread, start: float, microseconds: float, name: str, given: dict[str, Any]) -> None:
        """A call of the runtime, of whatever kind; ``given`` are its arguments in the trace."""
        copies = _COPYING.match(name) is not None
        if not copies and not _WAITING.match(name):
            return
        number = len(self._starts)
        self._threads.setdefault(thread, array("I")).append(number)
        self._starts.append(start)
        self._seconds.append(microseconds * MICROSECOND)
        self._called.append(self._names.number(name))
        for column in (self._ways, self._memory, self._sizes, self._devices, self._copying):
            column.append(0)
        if copies:
            way = _BY_NUMBER.get(str(given.get("kind")), "")
            self._set(number, Copy(way, size=count(given.get("size"))))
            correlation = str(given.get("correlation"))
            early = self._early.pop(correlation, None)
            if early is None:
                self._awaited[correlation] = number
            else:
                self._set(number, early)

    def copied(self, name: str, microseconds: float, given: dict[str, Any]) -> None:
        """A copy on the device."""
        found = _KIND.match(name)
        if found is None:
            return
        way = found["way"].replace("P", "H")
        host = found["source"] if way.startswith("H") else found["target"]
        pinned = {"Pinned": True, "Pageable": False}.get(host)
        size, device = count(given.get("bytes")), count(given.get("device"))
        copy = Copy(way, pinned, size, device, microseconds * MICROSECOND)
        correlation = str(given.get("correlation"))
        number = self._awaited.pop(correlation, None)
        if number is None:
            self._early[correlation] = copy
        else:
            self._set(number, copy)

    def threads(self) -> list[Thread]:
        """The threads that called, in an order that is the same each time."""
        return sorted(self._threads)

    def of(self, thread: Thread) -> Sequence[int]:
        """The numbers of the calls of a thread, in order of time."""
        numbers = self._threads.get(thread, ())
        return sorted(numbers, key=self._starts.__getitem__)

    def __getitem__(self, number: int) -> Call:
        copy = Copy(
            self._names.text(self._ways[number]),
            _MEMORY[self._memory[number]],
            self._sizes[number],
            self._devices[number],
            self._copying[number],
        )
        return Call(self._starts[number], self._seconds[number], self._names.text(self._called[number]), copy)

    def _set(self, number: int, copy: Copy) -> None:
        self._ways[number] = self._names.number(copy.way) or self._ways[number]
        self._memory[number] = _MEMORY.index(copy.pinned)
        self._sizes[number] = copy.size or self._sizes[number]
        self._devices[number], self._copying[number] = copy.device, copy.seconds


def count(value: object) -> int:
    """A count, 0 of what is none."""
    try:
        number = int(str(value))
    except ValueError:
        return 0
    return number if 0 <= number <= MOST else 0
