"""Letting go of what is no longer needed.

Interpreters, frames and definitions know each other in circles, as large as all the code that was read.  Only Python's
garbage collector would find them, and each of its searches looks at everything that is still in use; taken apart, they
are gone at once.
"""

from __future__ import annotations

from devlint.flow.program.symbols import Index


def definitions(index: Index) -> None:
    """Take the definitions of a file apart, of which nobody else knows any."""
    for info in (*index.functions.values(), *index.classes.values()):
        empty(info)
    empty(index)


def others(index: Index) -> None:
    """Let a file ask again for what it knows of definitions of other files: some of them are gone."""
    index.outside_known.clear()
    for info in index.classes.values():
        info.inherited.clear()


def empty(one: object) -> None:
    """Drop all that an object refers to."""
    vars(one).clear()
