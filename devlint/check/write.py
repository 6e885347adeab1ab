"""Writing somebody's file: whole or not at all, and never over what has changed meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile

from devlint.config import ConfigError


class ChangedMeanwhileError(OSError):
    """The file is no longer what it was when it was read."""

    def __init__(self) -> None:
        super().__init__(0, "it was changed while devlint was at it, and is left alone")


def check_destination(option: str, file: str) -> None:
    """Refuse before the work, by a ConfigError, a file that could not be written after it."""
    if not file or "\0" in file:
        raise ConfigError(f"{option}: no file is named")
    directory = os.path.dirname(file) or os.curdir
    if os.path.isdir(file):
        raise ConfigError(f"{option}: {file}: Is a directory")
    if os.path.exists(file) and not os.path.isfile(file):
        # what is written takes the place of what is there, which would be the end of /dev/null
        raise ConfigError(f"{option}: {file}: Is no regular file")
    if not os.path.isdir(directory):
        raise ConfigError(f"{option}: {directory}: No such directory")
    if not os.access(directory, os.W_OK):
        raise ConfigError(f"{option}: {directory}: Permission denied")


def write(path: str, data: bytes, before: bytes | None = None) -> None:
    """Let ``data`` take the place of a file's content at once; an OSError says why it could not be.

    The file keeps its owner, permissions and attributes, and a link goes on leading to it. Another name of the same
    file (a hard link) keeps the old content: so package managers share one copy of a file among environments, and a fix
    in one must not reach into the others. With ``before``, the content
    that was read, it is replaced only if that is still what it holds.
    """
    path = os.path.realpath(path)
    status = _status(path)
    directory, name = os.path.split(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{name[:100]}.", suffix=".tmp", dir=directory)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if status is None:
            os.chmod(temporary, 0o666 & ~_mask())
        else:
            _resemble(temporary, path, status)
        if before is not None:
            with open(path, "rb") as current:
                if current.read() != before:
                    raise ChangedMeanwhileError
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _status(path: str) -> os.stat_result | None:
    """What is known of the file, None if there is none; what must not be replaced is an OSError."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(21, "Is a directory", path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(22, "Is no regular file", path)
    # Its directory, or being root, would allow it; somebody wanted the file left alone.
    writable = status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    if not writable or not os.access(path, os.W_OK):
        raise PermissionError(13, "Permission denied", path)
    return status


def _resemble(temporary: str, path: str, status: os.stat_result) -> None:
    """Give a new file what the old one has besides its content: owner, permissions, attributes; not its times."""
    if hasattr(os, "chown") and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(OSError):
            os.chown(temporary, status.st_uid, status.st_gid)
    shutil.copystat(path, temporary)
    os.utime(temporary)


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
