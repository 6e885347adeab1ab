"""From events to figures: what was seen in one place, summed over phases and processes."""

from __future__ import annotations

import os.path
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeVar

from devlint import device
from devlint.device import CPU, UNKNOWN, Device, Kind
from devlint.finding import Measurement
from devlint.immutable import replace
from devlint.record import Event, Frame, Phase, Process, Record

_STEPS: tuple[Phase, ...] = ("train", "eval")
_T = TypeVar("_T", bound=Hashable)
_I = TypeVar("_I")


class Seen(NamedTuple):
    """An event, and the process that saw it."""

    process: Process
    event: Event


class Spot(NamedTuple):
    """The project's frame of an event, and the library's inside of it."""

    frame: Frame
    via: Frame | None


def stepping(record: Record) -> list[Seen]:
    """What happened in training and evaluation steps, but for what autograd did by itself.

    What makes results wrong counts whenever it happened.
    """
    return [
        Seen(process, event)
        for process in record.processes
        for event in process.events
        if (event.phase in _STEPS or event.unwaited) and event.frame is not None and not event.backward
    ]


def by_spot(seen: Iterable[Seen]) -> dict[Spot, list[Seen]]:
    """Events by where they happened."""
    return grouped((entry for entry in seen if entry.event.frame is not None), spot_of)


def spot_of(seen: Seen) -> Spot:
    """Where an event with a frame of the project happened."""
    assert seen.event.frame is not None
    return Spot(seen.event.frame, seen.event.via)


def grouped(items: Iterable[_I], key: Callable[[_I], _T]) -> dict[_T, list[_I]]:
    """Items by a key, in their order."""
    groups: dict[_T, list[_I]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def measure(entries: Iterable[Seen]) -> Measurement:
    """The sum of events from one place; at least one."""
    processes = grouped(entries, lambda seen: id(seen.process)).values()
    events = [seen.event for group in processes for seen in group]
    seconds = [event.seconds for event in events if event.seconds is not None]
    rates = [_per_step(group) for group in processes]
    return Measurement(
        calls=sum(event.calls for event in events),
        bytes=sum(event.bytes for event in events),
        seconds=sum(seconds) if seconds else None,
        steps=sum(map(_steps, processes)),
        per_step=sum(calls for calls, _ in rates) / len(rates),
        bytes_per_step=sum(size for _, size in rates) / len(rates),
        repeats=sum(event.repeats for event in events),
        ranks=ranks(group[0].process for group in processes),
    )


def ranks(processes: Iterable[Process]) -> tuple[int, ...]:
    """The ranks of processes, those without one left out."""
    return tuple(sorted({process.rank for process in processes if process.rank is not None}))


def _steps(group: list[Seen]) -> int:
    """In how many steps of a process it happened: events of one place and phase shared theirs."""
    return sum(max((seen.event.steps for seen in group if seen.event.phase == phase), default=0) for phase in _STEPS)


def _per_step(group: list[Seen]) -> tuple[float, float]:
    """Calls and bytes of a median training step, or else of an average evaluation step."""
    training = [seen.event.steady for seen in group if seen.event.phase == "train" and seen.event.steady is not None]
    if training:
        return sum(steady.calls for steady in training), sum(steady.bytes for steady in training)
    steps = max(group[0].process.steps.eval, 1)
    return sum(seen.event.calls for seen in group) / steps, sum(seen.event.bytes for seen in group) / steps


def place(text: str) -> Device:
    """The device of a record's text such as ``cuda:0``."""
    type_, _, index = text.partition(":")
    known = device.parse(text)
    if known is None and text:
        known = device.accelerator(type_, int(index) if index.isdigit() else None)
    return known or UNKNOWN


def places(texts: Iterable[str]) -> Device:
    """The device that all of them name; where ranks use several of one kind, that kind."""
    known = {place(text) for text in texts}
    if len(known) == 1:
        return known.pop()
    types = {found.type for found in known if found.kind is Kind.ACCELERATOR}
    if known and all(found.kind is Kind.ACCELERATOR for found in known) and len(types) == 1:
        return replace(known.pop(), index=None)
    return CPU if known and known == {CPU} else UNKNOWN


def common(values: Iterable[_T]) -> _T | None:
    """The one value that all of them are, ``None`` where they differ."""
    known = set(values)
    return known.pop() if len(known) == 1 else None


def library(via: Frame | None) -> str:
    """How a message names a library's line: ``transformers/trainer.py:2120``; empty for no frame."""
    if via is None:
        return ""
    _, installed, inside = via.file.replace(os.sep, "/").rpartition("-packages/")
    # of a library that lies elsewhere, nobody knows where it begins
    name = inside if installed else "/".join(inside.split("/")[-3:])
    return f"{name}:{via.line}"
