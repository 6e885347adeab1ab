"""The directory of a cache: made with a note to git and to backups, used by all runs on a project, and removed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

DIRECTORY = ".devlint_cache"
TAG = "CACHEDIR.TAG"
_SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55"
"""What backups and others look for: https://bford.info/cachedir/."""
_NOTES = {
    ".gitignore": "# Written by devlint.\n*\n",
    TAG: f"{_SIGNATURE}\n# This directory holds results of devlint, and can be removed at any time.\n",
}
_PREFIX, _END = "results-", ".msgpack"
_TOO_OLD = 30 * 24 * 3600
_MANY = 16
"""So many files are kept: of other releases of devlint, other Pythons, and projects that share the directory."""


def file_in(directory: str, name: str) -> str:
    """The file with the results that go by a name."""
    return os.path.join(directory, f"{_PREFIX}{name}{_END}")


def prepare(directory: str) -> None:
    """Make the directory of a cache; an OSError says why that cannot be done.

    The notes go only where nothing else is: a `.gitignore` must not hide somebody's files.
    """
    os.makedirs(directory, exist_ok=True)
    if not os.listdir(directory):
        for name, text in _NOTES.items():
            with open(os.path.join(directory, name), "x", encoding="utf-8") as stream:
                stream.write(text)


def tidy(directory: str) -> None:
    """Remove what nobody has written to for long, and what is left of runs that were killed."""
    with suppress(OSError):
        files = sorted(((entry.stat().st_mtime, entry.path) for entry in _results(directory)), reverse=True)
        now = time.time()
        for at, (modified, path) in enumerate(files):
            if at >= _MANY or now - modified > _TOO_OLD or (path.endswith(".tmp") and now - modified > 60):
                with suppress(OSError):
                    os.unlink(path)


def is_cache(directory: str) -> bool:
    """Whether a directory was made for the cache of devlint."""
    try:
        with open(os.path.join(directory, TAG), encoding="utf-8") as stream:
            return stream.read() == _NOTES[TAG]
    except (OSError, ValueError):
        return False


def remove(directory: str) -> bool:
    """Remove what devlint has written into a directory, and it too, if nothing else is there; whether there was any.

    An OSError says what cannot be removed.
    """
    ours = [entry.path for entry in _results(directory)]
    if is_cache(directory):
        ours += [os.path.join(directory, name) for name in _NOTES]
    for path in ours:
        with suppress(FileNotFoundError):
            os.unlink(path)
    if ours and not os.listdir(directory):
        os.rmdir(directory)
    return bool(ours)


def _results(directory: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        yield from (entry for entry in entries if entry.name.startswith(_PREFIX) and _END in entry.name)
