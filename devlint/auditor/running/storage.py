"""Records as files: where those of a run are kept, how they are written, and what is wrong with one that is read."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from devlint.finding import Measurement
from devlint.record import FORMAT, Record
from devlint.source.files import content
from devlint.source.output import write as replace

KEPT = 20
"""So many runs are kept for each user."""
SUFFIX = ".json"
WHOLE = "record" + SUFFIX
"""The record of a run as a whole, in the run's directory; the others there are those of single processes."""
_MOST = 10**18
"""No run copies more bytes than this."""
_MOST_ROWS = 10_000_000
_LARGE = re.compile(rb"[\s:,\[]-?(?:\d{19}|[\d.]+[eE]\+?\d\d)")
"""What a number beyond ``_MOST`` looks like; some smaller ones, and some text, look so, too."""
_NEITHER = "neither a record of devlint nor a trace of torch.profiler"
_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Position:
    row: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What a report takes for granted of a place in a finding."""

    location: _Position
    end_location: _Position
    message: str
    filename: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding(_Place):
    """The same of a finding, which a record keeps as it is in the JSON of `devlint check`."""

    code: str
    name: str
    severity: Literal["info", "warning", "error"]
    filename: str
    label: str | None = None
    help: str | None = None
    related: tuple[_Place, ...] | None = None
    measured: Measurement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    findings: tuple[_Finding, ...] | None = None


class RecordError(Exception):
    """A record cannot be read; the text is the one line that the user sees."""


def write(record: Record, path: str) -> None:
    """Write a record so that there is never a half of one under that name; an OSError says why it could not be."""
    # the run must not wait for the disk
    replace(path, encoded(record), durable=False)


def encoded(record: Record) -> bytes:
    """A record as its file holds it."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(record), indent=1)


def read(path: str, shown: Callable[[int, int], None] = lambda done, total: None) -> Record:
    """Read a record, or a trace of torch.profiler as one; raises a :class:`RecordError`.

    ``shown`` is told how many bytes of a trace have been read, and of how many.
    """
    import msgspec

    from devlint.auditor.profile import stream

    if stream.is_trace(path):
        from devlint.auditor.profile import reading

        try:
            return reading.read(path, shown)
        except stream.TraceError as error:
            raise RecordError(f"{path}: not a trace that can be read: {error}") from error
    try:
        data = content(path)
    except (OSError, ValueError) as error:  # ValueError: a null character
        raise RecordError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if problem := _foreign(path, data):
        raise RecordError(f"{path}: {problem}")
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        cut = " (it ends too early)" if "truncated" in str(error) else ""
        raise RecordError(f"{path}: {_NEITHER}: not valid JSON{cut}") from error
    number = found.get("format") if isinstance(found, dict) and "processes" in found else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise RecordError(f"{path}: {_NEITHER}")
    if number > FORMAT:
        raise RecordError(f"{path}: written by a newer devlint (format {number}, this one reads up to {FORMAT})")
    if _LARGE.search(data) and not _possible(found):
        raise RecordError(f"{path}: not a record of devlint: a number in it is larger than any that a run can count")
    try:
        msgspec.convert({"findings": found.get("findings")}, _Judged)
        record = msgspec.convert(found, Record, str_keys=True)
    except msgspec.ValidationError as error:
        raise RecordError(f"{path}: not a record of devlint: {error}") from error
    if any(row > _MOST_ROWS for lines in record.sources.values() for row in lines):
        raise RecordError(f"{path}: not a record of devlint: no file has so many lines")
    return record


def _foreign(path: str, data: bytes) -> str:
    """What keeps a file from being read that can be told without parsing it, empty if nothing does."""
    from devlint.auditor.profile.stream import looks_like_trace

    if not data.strip():
        return "it is empty"
    if data.startswith(_POINTER):
        return "a pointer of Git LFS: `git lfs pull` fetches the file that it stands for"
    if looks_like_trace(data) and not os.path.isfile(path):
        return "a trace of torch.profiler is read from a file, and this is none"
    return ""


def _possible(value: object) -> bool:
    """Whether all numbers in a JSON document are such that sums of them are numbers, too."""
    if isinstance(value, dict):
        return all(map(_possible, value.values()))
    if isinstance(value, list):
        return all(map(_possible, value))
    return not isinstance(value, int | float) or abs(value) <= _MOST


def home() -> str:
    """The directory of this user's runs, made if need be; nobody else may write there, or it is an OSError."""
    path = home_path()
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        ours = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
        if not stat.S_ISDIR(found.st_mode) or not ours:
            raise PermissionError(13, "is not a directory of this user alone", path) from None
    return path


def home_path() -> str:
    """Where the user's directory is, or would be."""
    owner = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return os.path.join(_temporary_directory(), f"devlint-{owner}")


def new_run() -> str:
    """A new directory for the records of a run; what is older than the latest runs goes."""
    parent = home()
    prune(parent)
    return tempfile.mkdtemp(prefix=time.strftime("run-%Y%m%d-%H%M%S-"), dir=parent)


def shared_run(key: str) -> str:
    """The directory that all processes share which know the key."""
    parent = home()
    path = os.path.join(parent, f"run-{key}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
        prune(parent)
    return path


def prune(parent: str, kept: int = KEPT) -> None:
    """Remove all but the latest runs, and never one of the last hour, which may still be running."""
    runs = sorted(_runs(parent), key=lambda path: _changed(path), reverse=True)
    for path in runs[kept:]:
        if time.time() - _changed(path) > 3600:
            shutil.rmtree(path, ignore_errors=True)


def parts(directory: str) -> list[Record]:
    """The records of the processes in a run's directory; one that is just being written does not count."""
    found: list[Record] = []
    try:
        names = sorted(os.listdir(directory))
    except OSError:  # cleaned away by somebody, during a long run
        return found
    for name in names:
        if name.endswith(SUFFIX) and not name.startswith(".") and name != WHOLE:
            with contextlib.suppress(RecordError):
                found.append(read(os.path.join(directory, name)))
    return found


def latest() -> list[Record]:
    """The record of this user's latest run: one, or those of its processes where the run was killed."""
    try:
        runs = [path for path in _runs(home()) if any(name.endswith(SUFFIX) for name in os.listdir(path))]
    except OSError as error:
        raise RecordError(f"the runs of this user cannot be read: {error}") from error
    if not runs:
        raise RecordError("there is no record of a run yet: `devlint audit SCRIPT` makes one")
    directory = max(runs, key=_changed)
    whole = os.path.join(directory, WHOLE)
    found = [read(whole)] if os.path.exists(whole) else parts(directory)
    if not found:
        raise RecordError(f"{directory}: none of the records there can be read")
    return found


def _runs(parent: str) -> Iterator[str]:
    with os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith("run-") and entry.is_dir(follow_symlinks=False):
                yield entry.path


def _changed(path: str) -> float:
    found = [0.0]
    with contextlib.suppress(OSError):  # gone meanwhile
        found.append(os.stat(path).st_mtime)
        found += [os.stat(os.path.join(path, name)).st_mtime for name in os.listdir(path)]
    return max(found)


def _temporary_directory() -> str:
    """As :func:`tempfile.gettempdir`, which must not remember it: the script may set TMPDIR before it asks."""
    before = tempfile.tempdir
    try:
        return tempfile.gettempdir()
    finally:
        tempfile.tempdir = before
