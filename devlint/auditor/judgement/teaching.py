"""What a record teaches the reader of a file: its observations, as far as they say where something is elsewhere, too.

A process that used no accelerator teaches nothing: what it had on the CPU may be anywhere on a machine that has one.
A simulated accelerator is one.  What was seen on the CPU and on an accelerator is wherever the caller keeps it, and so
is what was not always of one kind; of several accelerators of one type it is on one of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain

from devlint import device
from devlint.device import Device, Kind
from devlint.observation import RETURNED, Sight
from devlint.record import Record
from devlint.sites.observed import Observations, Sighting


def observations(record: Record, file: str, run: str) -> Observations | None:
    """What the run has seen of a file, as the record calls it; ``None`` where that is nothing."""
    functions: dict[tuple[str, int], list[tuple[Sight, ...]]] = defaultdict(list)
    for process in record.processes:
        for observation in process.observations if process.device else ():
            if observation.file == file:
                functions[observation.function, observation.line].append(observation.sights)
    found = {key: _sightings(chain.from_iterable(sights)) for key, sights in functions.items()}
    return Observations(run, found) if found else None


def _sightings(sights: Iterable[Sight]) -> Mapping[str, Sighting]:
    """What one function had under each name, in all processes."""
    named: dict[str, list[Sight]] = defaultdict(list)
    for sight in sights:
        if sight.name != RETURNED:
            named[sight.name].append(sight)
    return {name: _sighting(some) for name, some in named.items()}


def _sighting(sights: list[Sight]) -> Sighting:
    """All that was seen of one name; its place is unknown where that was not always the same."""
    kinds = {kind for sight in sights for kind in sight.kinds}
    optional = "none" in kinds
    kinds -= {"none"}
    calls = sum(sight.calls for sight in sights)
    place = _place({place for sight in sights for place in sight.devices}) if len(kinds) == 1 else device.UNKNOWN
    sized = not optional and not any(sight.scalar for sight in sights) and kinds <= {"tensor", "tensors"}
    return Sighting(next(iter(kinds)) if len(kinds) == 1 else "", place, calls, sized, optional)


def _place(names: set[str]) -> Device:
    """The one device of several names, if it is one; of several accelerators of one type, one of them."""
    places = [device.parse(name) or device.UNKNOWN for name in sorted(names)]
    if len(places) == 1:
        return places[0]
    if {place.kind for place in places} == {Kind.ACCELERATOR} and len({place.type for place in places}) == 1:
        return device.accelerator(places[0].type)
    return device.UNKNOWN
