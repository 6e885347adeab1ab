"""Output files: written atomically, whole or not at all, and never over what has changed meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterable

_CODE = (".ipynb", ".py", ".pyi")


def destination_problem(file: str, read: Iterable[str | None] = ()) -> str:
    """What is wrong with a file as the destination of a report, known before the work; empty if nothing is.

    It must not be code, nor what the run itself has ``read``: files by name, ``None`` for none.
    """
    if not file or "\0" in file:
        return "no file is named"
    directory = os.path.dirname(os.path.realpath(file) if os.path.islink(file) else file) or os.curdir
    try:
        # what is written takes the place of what is there, which would be the end of /dev/null
        status = _status(file)
    except OSError as error:
        return f"{file}: {error.strerror}"
    if status is not None and file.endswith(_CODE):
        return f"{file}: holds code, which would be lost"
    if status is not None and any(_is(status, other) for other in read):
        return f"{file}: is read by this very run, and would be lost"
    if not os.path.isdir(directory):
        return f"{directory}: No such directory"
    denied = _denied(directory)
    return f"{file}: {denied.strerror}" if denied is not None else ""


def _is(status: os.stat_result, other: str | None) -> bool:
    """Whether a file goes by another name, too."""
    try:
        return bool(other) and os.path.samestat(status, os.stat(other or ""))
    except (OSError, ValueError):
        return False


def write(path: str, data: bytes, before: bytes | None = None, durable: bool = True) -> None:
    """Let ``data`` take the place of a file's content at once; an OSError says why it could not be.

    The file keeps its owner, permissions and attributes, and a link goes on leading to it. Another name of the same
    file (a hard link) keeps the old content: so package managers share one copy of a file among environments, and a fix
    in one must not reach into the others. With ``before``, what was read, it is replaced only if it still holds that.
    """
    path = os.path.realpath(path)
    status = _status(path)
    # what is to resemble a file is nobody else's until it does
    handle, temporary = _beside(path, 0o666 if status is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        if status is not None:
            _resemble(temporary, path, status)
        if before is not None:
            with open(path, "rb") as current:
                if current.read() != before:
                    raise OSError(0, "it was changed while devlint was at it, and is left alone")
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
    if not writable:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    denied = _denied(path)
    if denied is not None:
        raise denied
    return status


def _denied(path: str) -> OSError | None:
    """Why a file or directory that is there cannot be written; None if it can."""
    if os.access(path, os.W_OK):
        return None
    # access says only that it is so
    read_only = hasattr(os, "statvfs") and os.statvfs(path).f_flag & os.ST_RDONLY
    number = errno.EROFS if read_only else errno.EACCES
    return OSError(number, os.strerror(number), path)


def _resemble(temporary: str, path: str, status: os.stat_result) -> None:
    """Give a new file what the old one has besides its content: owner, permissions, attributes; not its times."""
    if hasattr(os, "chown") and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(OSError):
            os.chown(temporary, status.st_uid, status.st_gid)
    shutil.copystat(path, temporary)
    os.utime(temporary)


def _beside(path: str, mode: int) -> tuple[int, str]:
    """A new file in the directory of another one, open for writing; its name is short enough for any file system."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        temporary = os.path.join(os.path.dirname(path), f".devlint-{os.urandom(8).hex()}.tmp")
        with contextlib.suppress(FileExistsError):
            return os.open(temporary, flags, mode), temporary
