"""Teardown: taking an engine apart, whose parts know each other in circles."""

from __future__ import annotations

from devlint.flow.engine.engine import Engine
from devlint.flow.program.release import definitions, empty


def release(host: Engine) -> None:
    """Take the engine of a file that was checked apart, and those that it had for others; its sites stay."""
    guests = () if host.imports is None else tuple(host.imports.family.guests.values())
    definitions(host.index)
    for one in (host, *guests):
        for frame in one.kept:
            empty(frame)
        empty(one)
