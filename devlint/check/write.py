"""Writing somebody's file: whole or not at all, and never over what has changed meanwhile."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile


class ChangedMeanwhileError(OSError):
    """The file is no longer what it was when it was read."""

    def __init__(self) -> None:
        super().__init__(0, "it was changed while devlint was at it, and is left alone")


def write(path: str, data: bytes, before: bytes | None = None) -> None:
    """Let ``data`` take the place of a file's content at once; an OSError says why it could not be.

    The file keeps its permissions, and a link goes on leading to it. With ``before``, the content that was read, it is
    replaced only if that is still what it holds.
    """
    path = os.path.realpath(path)
    mode = _mode(path)
    directory, name = os.path.split(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=directory)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, mode)
        if before is not None:
            with open(path, "rb") as current:
                if current.read() != before:
                    raise ChangedMeanwhileError
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _mode(path: str) -> int:
    """The permissions that the file has, or that a new one gets; what must not be replaced is an OSError."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(21, "Is a directory", path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(22, "Is no regular file", path)
    if not os.access(path, os.W_OK):
        raise PermissionError(13, "Permission denied", path)
    return stat.S_IMODE(status.st_mode)
