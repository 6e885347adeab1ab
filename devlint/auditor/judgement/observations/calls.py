"""Calls that cost, or do nothing: moves that return their input, functions of torch, and waiting for the device."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from devlint.auditor.judgement.locator import Locator
from devlint.auditor.judgement.observations import syntax
from devlint.auditor.judgement.observations.measure import Found, Seen, Spot, by_spot, common, library, measure, places
from devlint.record import Record
from devlint.sites.base import Operand
from devlint.sites.costs import Sync
from devlint.sites.devices import ApiCall
from devlint.sites.transfers import Transfer


def moves(record: Record, locator: Locator, seen: Iterable[Seen]) -> Iterator[Found]:
    """A site for each move that returned its input whenever it ran."""
    events = [event for process in record.processes for event in process.events]
    copying = {Spot(event.frame, event.via) for event in events if event.kind == "copy" and event.frame is not None}
    for spot, entries in by_spot(entry for entry in seen if entry.event.kind == "move").items():
        if spot in copying:
            continue
        location = locator.locate(spot.frame, syntax.COPIERS)
        call = syntax.mover(location)
        value = syntax.receiver(call)
        where = places(entry.event.target for entry in entries)
        kind = common(entry.event.subject for entry in entries) or ""
        site = Transfer(
            location.node,
            location.scope,
            entries[0].event.name,
            kind,
            Operand(value or location.node, syntax.text(value), where, many=kind == "tensor" or None, certain=True),
            where,
            syntax.target(call),
            plain=syntax.is_plain(call),
            discarded=syntax.is_discarded(location),
            measured=measure(entries),
            via=library(spot.via),
        )
        yield Found(location, site)


def functions(locator: Locator, seen: Iterable[Seen]) -> Iterator[Found]:
    """A site for each call of a function of torch that costs by itself."""
    for (spot, name), entries in _by_name(entry for entry in seen if entry.event.kind == "call").items():
        location = locator.locate(spot.frame, {name.rpartition(".")[2]})
        site = ApiCall(
            location.node, location.scope, name, {}, 0, False, measured=measure(entries), via=library(spot.via)
        )
        yield Found(location, site)


def syncs(locator: Locator, seen: Iterable[Seen]) -> Iterator[Found]:
    """A site for each place where the host waited for the device, to read something or without."""
    for (spot, name), entries in _by_name(entry for entry in seen if _waits(entry)).items():
        location = locator.locate(spot.frame, {name})
        region = "train" if any(entry.event.phase == "train" for entry in entries) else "eval"
        node = location.node
        spelled = syntax.called(node) if isinstance(node, ast.Call) and location.exact else ""
        measured = measure(entries)
        site = Sync(node, location.scope, spelled or name, region=region, measured=measured, via=library(spot.via))
        yield Found(location, site)


def _waits(entry: Seen) -> bool:
    event = entry.event
    reading = event.kind == "copy" and event.target == "cpu" and event.source != "cpu" and event.blocking is True
    return event.kind == "sync" or reading


def _by_name(seen: Iterable[Seen]) -> dict[tuple[Spot, str], list[Seen]]:
    groups: dict[tuple[Spot, str], list[Seen]] = defaultdict(list)
    for spot, entries in by_spot(seen).items():
        for entry in entries:
            groups[(spot, entry.event.name)].append(entry)
    return groups
