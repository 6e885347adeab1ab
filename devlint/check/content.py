"""What a file holds, told apart without keeping it: a digest, and what the system says of the file."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from typing import NamedTuple

LARGEST = 48 << 20
"""Python's tree of a file can be two hundred times its size: that of a larger one might take all memory there is."""
UNREADABLE = b""
"""The digest of what cannot be read."""
_SETTLED = 2_000_000_000
"""Nanoseconds after which a change shows in the times of a file, however coarse the clock of its file system is."""


class Stamp(NamedTuple):
    """What changes with the content of a file: a copy that keeps the time of modification changes the other one."""

    modified: int
    changed: int
    size: int


class Seen(NamedTuple):
    """What a file held when it was read; ``stamp`` is None where a change at that moment might not show in it."""

    digest: bytes
    stamp: Stamp | None


_unsaved: Mapping[str, bytes] = {}


def edited(unsaved: Mapping[str, bytes]) -> None:
    """From now on these contents count, by absolute path, instead of what the files hold."""
    global _unsaved
    _unsaved = unsaved


def digest_of(data: bytes) -> bytes:
    """16 bytes that stand for a content."""
    from hashlib import blake2b

    return blake2b(data, digest_size=16).digest()


def stamp_of(filename: str) -> Stamp | None:
    """The stamp of a regular file, ``None`` for anything else."""
    unsaved = _unsaved.get(filename)
    if unsaved is not None:
        return Stamp(hash(unsaved), 0, len(unsaved))
    try:
        status = os.stat(filename)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size)


def seen(data: bytes, stamp: Stamp | None) -> Seen:
    """A content that was read after the file had this stamp."""
    if stamp is not None and max(stamp.modified, stamp.changed) + _SETTLED > time.time_ns():
        stamp = None
    return Seen(digest_of(data), stamp)


def read(filename: str) -> tuple[bytes, Seen] | None:
    """The content of a regular file, ``None`` where there is none to be had.

    Of a file that is too large only so much comes back that this can be told.
    """
    unsaved = _unsaved.get(filename)
    if unsaved is not None:
        return unsaved, seen(unsaved, None)
    # a pipe that is called like a module would keep the run waiting for ever
    stamp = stamp_of(filename)
    if stamp is None:
        return None
    try:
        with open(filename, "rb") as stream:
            data = stream.read(LARGEST + 1)
    except (OSError, MemoryError):
        return None
    return data, seen(data, stamp)
