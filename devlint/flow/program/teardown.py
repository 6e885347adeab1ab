"""Letting go of what is no longer needed.

Machines, frames and definitions know each other in circles, as large as all the code that was read.  Only Python's
garbage collector would find them, and each of its searches looks at everything that is still in use; taken apart, they
are gone at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devlint.flow.engine.engine import Machine
    from devlint.flow.program.index import Index


def machine(host: Machine) -> None:
    """Take the machine of a file that was checked apart, and those that it had for others; its sites stay."""
    guests = () if host.imports is None else tuple(host.imports.family.guests.values())
    definitions(host.index)
    for one in (host, *guests):
        for frame in one.kept:
            _empty(frame)
        _empty(one)


def definitions(index: Index) -> None:
    """Take the definitions of a file apart, of which nobody else knows any."""
    for info in (*index.functions.values(), *index.classes.values()):
        _empty(info)
    _empty(index)


def others(index: Index) -> None:
    """Let a file ask again for what it knows of definitions of other files: some of them are gone."""
    index.outside_known.clear()
    for info in index.classes.values():
        info.inherited.clear()


def _empty(one: object) -> None:
    vars(one).clear()
