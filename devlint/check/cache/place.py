"""The directory of a cache: made with a note to git and to backups, used by all runs on a project, and removed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

import click

from devlint.check.options import shortest
from devlint.config.load import Resolver
from devlint.config.schema import ConfigError
from devlint.report.terminal import one_line
from devlint.rules.selection import validate

EXIT_CLEAN, EXIT_FAILED = 0, 2
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


def remove(directory: str) -> bool:
    """Remove what devlint has written into a directory, and it too, if nothing else is there; whether there was any.

    An OSError says what cannot be removed.
    """
    ours = [entry.path for entry in _results(directory)]
    with suppress(OSError, ValueError), open(os.path.join(directory, TAG), encoding="utf-8") as stream:
        if stream.read() == _NOTES[TAG]:
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


def clean(chosen: str | None) -> int:
    """``devlint clean``: remove the cache in a directory, or else all that are in use here and below."""
    try:
        found = [os.path.abspath(chosen)] if chosen else list(dict.fromkeys(_in_use(os.getcwd())))
    except (ConfigError, OSError) as error:
        click.echo(one_line(f"error: {error}"), err=True)
        return EXIT_FAILED
    removed, code = 0, EXIT_CLEAN
    for directory in filter(os.path.isdir, found):
        shown = one_line(shortest(directory))
        try:
            if remove(directory):
                removed += 1
                click.echo(f"Removed {shown}")
        except OSError as error:
            code = EXIT_FAILED
            click.echo(f"error: {shown} cannot be removed: {error.strerror}", err=True)
    if not removed and code == EXIT_CLEAN:
        click.echo("There is no cache.")
    return code


def _in_use(here: str) -> Iterator[str]:
    """The caches below a directory, and that of its own configuration."""
    config = Resolver(validate).at(here)
    yield config.cache_dir or os.path.join(config.root, DIRECTORY)
    for folder, below, _ in os.walk(here):
        if DIRECTORY in below:
            yield os.path.join(folder, DIRECTORY)
        below[:] = [name for name in below if name not in (".git", DIRECTORY)]
