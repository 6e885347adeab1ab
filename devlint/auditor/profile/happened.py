"""What happened in a run, of what its trace holds: what was copied between host and device, and who waited."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from devlint.auditor.frames import NOWHERE
from devlint.auditor.history import What
from devlint.auditor.profile.calls import Call
from devlint.auditor.profile.lines import Lines
from devlint.auditor.profile.seen import AUTOGRAD, Seen
from devlint.auditor.profile.stacks import blamed, called, written
from devlint.auditor.profile.timeline import Span, Thread
from devlint.record import Frame

_DEVICE_WIDE = re.compile(r"(?:Device|Ctx)Synchronize")
_ATEN = "aten::"
_COPY, _ITEM = "aten::copy_", "aten::_local_scalar_dense"
_PROFILER = re.compile(r"(?:^|[/\\])torch[/\\](?:profiler|autograd)[/\\]profiler\.py\(")
"""Functions of the profiler itself, which waits for the device when it begins and ends."""
_Owner = int
"""An operator in which something was called, by its number in its thread."""
_NONE: _Owner = -1


class Happened(NamedTuple):
    """An event of the record, and when it was."""

    what: What
    start: float
    seconds: float
    size: int
    copying: float


class Log:
    """What happened, in little memory."""

    def __init__(self) -> None:
        self._whats: dict[What, int] = {}
        self._kinds, self._sizes = array("I"), array("q")
        self._starts, self._seconds, self._copying = array("d"), array("d"), array("d")

    def add(self, one: Happened) -> None:
        """Take one more."""
        self._kinds.append(self._whats.setdefault(one.what, len(self._whats)))
        self._starts.append(one.start)
        self._seconds.append(one.seconds)
        self._sizes.append(one.size)
        self._copying.append(one.copying)

    def in_order(self) -> Iterator[Happened]:
        """Yield it in order of time."""
        whats = list(self._whats)
        for index in sorted(range(len(self._starts)), key=self._starts.__getitem__):
            yield Happened(
                whats[self._kinds[index]],
                self._starts[index],
                self._seconds[index],
                self._sizes[index],
                self._copying[index],
            )

    def __len__(self) -> int:
        return len(self._starts)

    def devices(self) -> Counter[str]:
        """How often something went to or from each device."""
        found: Counter[str] = Counter()
        for what, calls in Counter(self._kinds).items():
            one = list(self._whats)[what]
            found.update({device: calls for device in (one.target, one.source) if device.startswith("cuda")})
        return found


class Places:
    """Frames as the small numbers by which a ledger tells places apart."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Frame | None, Frame | None], int] = {(None, None): NOWHERE}
        self._places: list[tuple[Frame | None, Frame | None]] = [(None, None)]

    def number(self, place: tuple[Frame | None, Frame | None]) -> int:
        """The number of a place."""
        number = self._numbers.setdefault(place, len(self._places))
        if number == len(self._places):
            self._places.append(place)
        return number

    def resolve(self, number: int) -> tuple[Frame | None, Frame | None]:
        """The frame of the project, and within it that of a library."""
        return self._places[number]

    def frame(self, number: int) -> Frame | None:
        """The one of both that is known."""
        project, via = self._places[number]
        return project or via


class Happenings:
    """What happened; ``directory`` is where the script's files are looked for."""

    def __init__(self, seen: Seen, directory: str) -> None:
        self.log = Log()
        self.places = Places()
        self.undirected = False
        """Whether there was a copy of which nothing says which way it went."""
        self._lines = Lines()
        self._seen = seen
        self._directory = directory
        for thread in seen.calls.threads():
            for one in self._in(thread):
                self.log.add(one)

    def _in(self, thread: Thread) -> Iterator[Happened]:
        owners, waits = self._owners(thread)
        told: set[_Owner] = set()
        """Operators whose waits are those of a copy."""
        for (call, operators, functions), owner in zip(self._seen.around(thread), owners, strict=True):
            if call.copies:
                waited = waits.get(owner)
                for one in self._copied(call, operators, functions, waited, owner in told):
                    yield one
                    if waited is not None:
                        told.add(owner)
        for (call, operators, functions), owner in zip(self._seen.around(thread), owners, strict=True):
            if not call.copies and owner not in told:
                yield from self._waited(call, operators, functions)

    def _owners(self, thread: Thread) -> tuple[array[int], dict[_Owner, float]]:
        """The innermost operator of each call of a thread, and how long each of them waited for a stream."""
        owners, waits = array("q"), dict[_Owner, float]()
        before: Call | None = None
        for call, operators, _ in self._seen.around(thread):
            owner = operators[-1].number if operators else _NONE
            if not call.copies:
                if owner == _NONE and self._belongs(call, before) and owners[-1] == _NONE:
                    # as if both were in an operator, whose number no other has
                    owner = owners[-1] = _NONE - len(owners)
                if owner != _NONE:
                    waits[owner] = waits.get(owner, 0.0) + call.seconds
            owners.append(owner)
            before = call
        return owners, waits

    def _belongs(self, call: Call, before: Call | None) -> bool:
        """Whether a wait outside any operator is that of the copy before it, in a trace which holds no operators."""
        return not self._seen.latest and before is not None and before.copies and not _DEVICE_WIDE.search(call.name)

    def _copied(
        self, call: Call, operators: list[Span], functions: list[Span], waited: float | None, told: bool
    ) -> Iterator[Happened]:
        copy, way = call.copy, call.copy.way
        inner = operators[-1].name if operators else ""
        # a call that is not asynchronous waits by itself
        waits = waited is not None or not call.name.endswith("Async")
        if inner == _ITEM and way == "DtoD" and waits:
            way = "DtoH"  # on ROCm the pinned memory that the value is read into passes for the device's
        if way not in ("HtoD", "DtoH"):
            self.undirected = self.undirected or not way
            return  # within a device, or between two: nothing crosses to the host
        device = f"cuda:{copy.device}"
        source, target = ("cpu", device) if way == "HtoD" else (device, "cpu")
        seconds = call.seconds + (0.0 if told else waited or 0.0)
        if inner not in (_COPY, _ITEM, "") and way == "DtoH":
            # the operator reads a number, to know the shape of its result
            if not told:
                name = _plain(inner)
                yield self._event(call, operators, functions, "sync", name, seconds, source=source)
            return
        if inner == _ITEM:
            # pinned or not is torch's own memory there, and the value is always waited for
            yield self._event(
                call, operators, functions, "copy", "item", seconds, copy.size, copy.seconds,
                source=source, target=target, blocking=True,
            )  # fmt: skip
            return
        # the call does not return before the last byte is in pageable memory
        blocking = waits or (way == "DtoH" and copy.pinned is False)
        yield self._event(
            call, operators, functions, "copy", "copy_", seconds, copy.size, copy.seconds,
            source=source, target=target, pinned=copy.pinned, blocking=blocking if blocking or copy.pinned else None,
            non_blocking=not waits,
        )  # fmt: skip

    def _waited(self, call: Call, operators: list[Span], functions: list[Span]) -> Iterator[Happened]:
        if not operators and not functions and not self._within_steps(call.start):
            return  # the profiler's own, when it begins and ends
        if any(_PROFILER.search(span.name) for span in functions):
            return
        inner = operators[-1].name if operators else ""
        name = _plain(inner) if _is_aten(inner) else call.name
        yield self._event(call, operators, functions, "sync", name, call.seconds)

    def _event(
        self, call: Call, operators: list[Span], functions: list[Span], kind: Any, name: str, seconds: float,
        size: int = 0, copying: float = 0.0, **fields: Any,
    ) -> Happened:  # fmt: skip
        backward = any(span.name.startswith(AUTOGRAD) for span in operators)
        by = ""
        if functions:
            frame, via, by = self._within(operators, functions)
        else:
            stack = next((span.stack for span in reversed(operators) if span.stack), "")
            frame, via = blamed(written(stack), self._directory)
        place = self.places.number((frame, via))
        if place == NOWHERE and operators:
            name = _path(operators, name)
        if kind == "sync":
            fields["blocking"] = True
        what = What(kind, name, place, backward=backward, by=by, **fields)
        return Happened(what, call.start, seconds, size, copying)

    def _within(self, operators: list[Span], functions: list[Span]) -> tuple[Frame | None, Frame | None, str]:
        """The place within functions, whose lines are not told, and what was called there."""
        parts = [span.name for span in reversed(functions)]
        frame, via = blamed(parts, self._directory)
        caller = frame or via
        if caller is None:
            return None, None, ""
        by = called(parts, caller)
        if by is None:  # by no function: `if tensor:` has only an operator
            start = functions[-1].start
            by = next((_plain(span.name) for span in operators if span.start >= start and _is_aten(span.name)), "")
        return (self._lines.located(frame, by), via, by) if frame else (None, via, by)

    def _within_steps(self, moment: float) -> bool:
        return bool(self._seen.steps) and self._seen.steps[0].start <= moment < self._seen.steps[-1].end


def _is_aten(operator: str) -> bool:
    return operator.startswith(_ATEN)


def _plain(operator: str) -> str:
    return operator.removeprefix(_ATEN)


def _path(operators: list[Span], name: str) -> str:
    """What stands for a line where there is none: the outermost operator, and what the script called it."""
    outer = next((span.name for span in operators if _is_aten(span.name)), "")
    notes = [span.name for span in operators if "::" not in span.name]
    what = _plain(outer) or name
    return f"{what} in {notes[-1].strip('# ')}" if notes else what
