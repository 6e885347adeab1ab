"""Reading a file that somebody names, whatever it is."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Any

MOST = 256 << 20
"""So many bytes are read of what is no regular file: a pipe may hold a file, but some devices never end."""


def held(path: str) -> bytes | None:
    """What a file holds, ``None`` where that cannot be had."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except (OSError, ValueError):
        return None


def content(path: str) -> bytes:
    """What a file or a pipe holds; an OSError, or a ValueError for no name at all, says why that cannot be had."""
    with open(path, "rb") as stream:
        try:
            if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return stream.read()
            data = stream.read(MOST + 1)
        except MemoryError:
            raise OSError(errno.ENOMEM, "It does not fit into memory", path) from None
    if len(data) > MOST:
        raise OSError(errno.EFBIG, f"Is no regular file, and holds more than {MOST >> 20} MiB", path)
    return data


def toml(data: bytes) -> dict[str, Any]:
    """The document that a TOML file holds; a ValueError says why it is none."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    # Some editors begin every file with a byte order mark.
    document: dict[str, Any] = tomllib.loads(data.decode("utf-8-sig"))
    return document
