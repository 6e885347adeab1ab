"""The content of files, and fingerprints that tell it from another without keeping it."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Mapping
from typing import NamedTuple

LARGEST = 48 << 20
"""Python's tree of a file can be two hundred times its size: that of a larger one might take all memory there is."""
TOO_LARGE = f"the file is larger than {LARGEST >> 20} MiB and is not read; exclude it if that is intended"
UNREADABLE = b""
"""The digest of what cannot be read."""
_SETTLED = 2_000_000_000
"""Nanoseconds after which a change shows in the times of a file, however coarse the clock of its file system is."""


class Stamp(NamedTuple):
    """What changes with the content of a file: a copy that keeps the time of modification changes the other one."""

    modified: int
    changed: int
    size: int


class Fingerprint(NamedTuple):
    """What tells the content of a file; ``stamp`` is None where a change at that moment might not show in it."""

    digest: bytes
    stamp: Stamp | None


class Content(NamedTuple):
    """What a file held, and the stamp that it had before it was read."""

    data: bytes
    stamp: Stamp | None = None

    def fingerprint(self) -> Fingerprint:
        """What tells this content from any other."""
        stamp = self.stamp
        if stamp is not None and max(stamp.modified, stamp.changed) + _SETTLED > time.time_ns():
            stamp = None
        return Fingerprint(digest_of(self.data), stamp)


_overlay: Mapping[str, bytes] = {}


def overlay(unsaved: Mapping[str, bytes]) -> None:
    """From now on these contents count, by absolute path, instead of what the files hold."""
    global _overlay
    _overlay = unsaved


def digest_of(data: bytes) -> bytes:
    """16 bytes that stand for a content."""
    from hashlib import blake2b

    return blake2b(data, digest_size=16).digest()


def stamp_of(filename: str) -> Stamp | None:
    """The stamp of a regular file, ``None`` for anything else."""
    unsaved = _overlay.get(filename)
    if unsaved is not None:
        return Stamp(hash(unsaved), 0, len(unsaved))
    try:
        status = os.stat(filename)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size)


def read(filename: str) -> Content:
    """What a regular file holds; an OSError says why that cannot be had.

    Of a file that is too large only so much comes back that this can be told.
    """
    unsaved = _overlay.get(filename)
    if unsaved is not None:
        return Content(unsaved)
    stamp = stamp_of(filename)
    if stamp is None and os.path.exists(filename):
        # a pipe that is called like a module would keep the run waiting for ever
        raise OSError(errno.EINVAL, "Is no regular file", filename)
    try:
        with open(filename, "rb") as stream:
            return Content(stream.read(LARGEST + 1), stamp)
    except MemoryError:
        raise OSError(errno.ENOMEM, "the file does not fit into memory", filename) from None


def examine(filename: str) -> tuple[bytes, Fingerprint]:
    """What a file holds, with its fingerprint; nothing, and that of no file, where it cannot be read."""
    try:
        content = read(filename)
    except (OSError, ValueError):
        return b"", Fingerprint(UNREADABLE, None)
    return content.data, content.fingerprint()
