"""What a run has seen of the functions of a file: on which devices they had arguments, and what ``self`` keeps."""

from __future__ import annotations

from collections.abc import Mapping

from devlint.device import Device
from devlint.immutable import immutable


@immutable(frozen=True, slots=True)
class Sighting:
    """Where a run had something in all calls that were looked at, unknown if that was not always the same.

    ``kind`` is "tensor", "tensors" (a container of some), "module" or "device"; ``sized`` says that it always had
    dimensions, ``optional`` that it was ``None`` at times.
    """

    kind: str
    place: Device
    calls: int
    sized: bool = False
    optional: bool = False

    def says(self, text: str, run: str) -> str:
        """What a person reads of it."""
        verb = "named" if self.kind == "device" else "held what was on" if self.kind == "tensors" else "was on"
        calls = "1 call" if self.calls == 1 else f"{self.calls} calls"
        return f"`{text}` {verb} {self.place} in {run} ({calls})"


class Observations:
    """The sightings of one file: by the name of a function and its first line, then by the name of what was seen.

    ``run`` is what the run is called in messages.
    """

    def __init__(self, run: str, functions: Mapping[tuple[str, int], Mapping[str, Sighting]]) -> None:
        self.run = run
        self.functions = functions
