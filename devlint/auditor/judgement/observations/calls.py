"""Calls that cost, or do nothing: moves that return their input, functions of torch, and waiting for the device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from devlint.auditor.judgement.locator import Locator
from devlint.auditor.judgement.observations import syntax
from devlint.auditor.judgement.observations.measure import (
    Seen,
    Spot,
    by_spot,
    common,
    grouped,
    library,
    measure,
    places,
)
from devlint.record import Frame, Record
from devlint.sites.base import Operand, Site
from devlint.sites.costs import Sync
from devlint.sites.devices import ApiCall
from devlint.sites.transfers import Transfer


def moves(record: Record, locator: Locator, seen: Iterable[Seen]) -> Iterator[Site]:
    """A site for each move that returned its input whenever it ran."""
    events = [event for process in record.processes for event in process.events]
    copying = {Spot(event.frame, event.via) for event in events if event.kind == "copy" and event.frame is not None}
    for spot, entries in by_spot(entry for entry in seen if entry.event.kind == "move").items():
        if spot in copying:
            continue
        location = locator.locate(spot.frame, syntax.COPIERS)
        move = syntax.move_at(location)
        where = places(entry.event.target for entry in entries)
        kind = common(entry.event.subject for entry in entries) or ""
        yield Transfer(
            location.node,
            location.scope,
            entries[0].event.name,
            kind,
            Operand(move.value or location.node, move.text, where, many=kind == "tensor" or None, certain=True),
            where,
            move.target,
            plain=move.plain,
            discarded=syntax.is_discarded(location),
            measured=measure(entries),
            via=library(spot.via),
        )


def functions(locator: Locator, seen: Iterable[Seen]) -> Iterator[Site]:
    """A site for each call of a function of torch that costs by itself."""
    for (frame, via, name), entries in _by_name(entry for entry in seen if entry.event.kind == "call"):
        location = locator.locate(frame, {name.rpartition(".")[2]})
        measured = measure(entries)
        yield ApiCall(location.node, location.scope, name, {}, 0, False, measured=measured, via=library(via))


def syncs(locator: Locator, seen: Iterable[Seen]) -> Iterator[Site]:
    """A site for each place where the host waited for the device, to read something or without."""
    for (frame, via, name), entries in _by_name(entry for entry in seen if entry.event.waits):
        location = locator.locate(frame, {name})
        region = "train" if any(entry.event.phase == "train" for entry in entries) else "eval"
        name = syntax.called(location) or name
        measured = measure(entries)
        yield Sync(location.node, location.scope, name, region=region, measured=measured, via=library(via))


def _by_name(seen: Iterable[Seen]) -> Iterable[tuple[tuple[Frame, Frame | None, str], list[Seen]]]:
    """Events by where they happened, and there by their names."""
    for spot, here in by_spot(seen).items():
        for name, entries in grouped(here, lambda entry: entry.event.name).items():
            yield (*spot, name), entries
