"""Copies between the host and a device, and the loaders whose batches they take."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from devlint.auditor.judgement.locator import Location, Locator, name_of
from devlint.auditor.judgement.observations import syntax
from devlint.auditor.judgement.observations.measure import (
    Seen,
    Spot,
    common,
    grouped,
    library,
    measure,
    places,
    spot_of,
)
from devlint.finding import ENOUGH_STEPS, Measurement
from devlint.record import Event, Frame, Loader, Process, Record
from devlint.sites.base import Operand, Site, Step
from devlint.sites.loaders import Load
from devlint.sites.transfers import Transfer

_LOADER = "DataLoader"
_UNPINNABLE = "cannot pin"
"""What torch says of a batch that is on a device already."""


class _Kind(NamedTuple):
    """What the copies of one site have in common; ``inward`` means to the device, ``batch`` that of a loader."""

    spot: Spot
    inward: bool
    pinned: bool | None
    blocking: bool | None
    non_blocking: bool
    batch: bool


class _Made(NamedTuple):
    """A loader, and its number in the process that iterated it."""

    process: Process
    number: int
    loader: Loader


class Copies:
    """The copies of a run's steps."""

    def __init__(self, record: Record, locator: Locator, seen: Iterable[Seen]) -> None:
        self._record = record
        self._locator = locator
        between = (entry for entry in seen if _is_between(entry.event))
        self._groups = grouped(between, _kind)
        self._strays = _fetched(record, locator)
        back = {self._moved(kind) for kind in self._groups if not kind.inward} - {""}
        self._sites = {
            kind: self._transfer(kind, entries, self._moved(kind) in back) for kind, entries in self._groups.items()
        }

    def transfers(self) -> Iterator[Site]:
        """A site for each place and kind of copy."""
        yield from self._sites.values()

    def loads(self) -> Iterator[Site]:
        """A site for each place where loaders are made."""
        processes = self._record.processes
        made = [_Made(process, *each) for process in processes for each in enumerate(process.loaders)]
        for frame, loaders in grouped(made, lambda one: one.loader.frame).items():
            if frame is not None:
                location = self._locator.locate(frame, {_name(loaders[0].loader), _LOADER})
                yield self._load(location, loaders)

    def _transfer(self, kind: _Kind, entries: list[Seen], returns: bool) -> Transfer:
        location = self._locator.locate(kind.spot.frame, syntax.COPIERS)
        move = syntax.move_at(location)
        measured = measure(entries)
        unwaited = any(seen.event.unwaited for seen in entries)
        return Transfer(
            location.node,
            location.scope,
            move.name or entries[0].event.name,
            "tensor" if kind.batch else "",
            Operand(
                move.value or location.node,
                move.text,
                places(seen.event.source for seen in entries),
                many=True,
                certain=True,
                attribute=self._strays.get(kind.spot.frame),
            ),
            places(seen.event.target for seen in entries),
            move.target,
            plain=move.plain,
            non_blocking=kind.non_blocking,
            pinned=kind.pinned,
            pinned_by=self._pinned_by(kind, entries[0]),
            invariant=kind.inward and not kind.batch and not returns and _is_invariant(entries, measured),
            unwaited=Step(location.node, "read before anything waited for this copy") if unwaited else None,
            measured=measured,
            via=library(kind.spot.via),
        )

    def _pinned_by(self, kind: _Kind, seen: Seen) -> Step | None:
        if not kind.pinned or seen.event.loader is None:
            return None
        frame = seen.process.loaders[seen.event.loader].frame
        return Step(self._locator.locate(frame, {_LOADER}).node, "pinned by this loader") if frame else None

    def _moved(self, kind: _Kind) -> str:
        """The name of what is copied, with its function: the same name there is the same thing."""
        frame = kind.spot.frame
        value = syntax.move_at(self._locator.locate(frame, syntax.COPIERS)).text
        return f"{frame.file}:{frame.function}:{value}" if value else ""

    def _load(self, location: Location, made: list[_Made]) -> Load:
        first = made[0].loader
        numbers = {(id(one.process), one.number) for one in made}
        pageable: list[Seen] = []
        moves: list[Transfer] = []
        for kind, entries in self._groups.items():
            fed = [seen for seen in entries if (id(seen.process), seen.event.loader) in numbers]
            if fed and kind.inward and kind.pinned is False:
                pageable += fed
                moves.append(self._sites[kind])
        # a batch that could not be pinned was on the device of its process
        where = (one.process.device or "cuda" if _UNPINNABLE in one.loader.error else one.loader.device for one in made)
        node = location.node
        call = node if isinstance(node, ast.Call) and name_of(node) in (_name(first), _LOADER) else None
        return Load(
            node,
            location.scope,
            first.name,
            {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg} if call else {},
            open=call is not None and syntax.is_open(call),
            batches=places(filter(None, where)),
            moves=tuple(moves),
            custom_batches=any(one.loader.custom for one in made),
            pinned=common(one.loader.pin_memory if one.loader.pinned is None else one.loader.pinned for one in made),
            workers=common(one.loader.workers for one in made),
            measured=measure(pageable) if pageable else Measurement(sum(one.loader.batches for one in made)),
            # a loader that a library made for the code, as `accelerator.prepare` does
            via="" if call or not location.exact else first.name,
            given=any(one.loader.pin_memory_given for one in made),
        )


def _fetched(record: Record, locator: Locator) -> dict[Frame, Step]:
    """The places which copy a plain attribute of a module again and again, with its assignment."""
    strays = [stray for process in record.processes for stray in process.strays]
    return {
        frame: Step(locator.locate(stray.frame).node, f"`self.{stray.name}` is kept here, unregistered")
        for stray in strays
        if stray.frame is not None and stray.kind == "tensor"
        for frame in stray.moved
    }


def _name(loader: Loader) -> str:
    return loader.name.rpartition(".")[2]


def _is_between(event: Event) -> bool:
    """Whether it is a copy between the host and a device."""
    return event.kind == "copy" and (event.source == "cpu") != (event.target == "cpu")


def _kind(seen: Seen) -> _Kind:
    event = seen.event
    inward, batch = event.source == "cpu", event.loader is not None
    return _Kind(spot_of(seen), inward, event.pinned, event.blocking, event.non_blocking, batch)


def _is_invariant(entries: list[Seen], measured: Measurement) -> bool:
    """Whether every step copies what the first one copied: no more of it was new than one step takes."""
    processes = len({id(seen.process) for seen in entries})
    new = measured.calls - measured.repeats
    return measured.each_step and measured.repeats >= ENOUGH_STEPS and new <= processes * measured.per_step
