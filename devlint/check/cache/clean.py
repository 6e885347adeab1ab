"""``devlint clean``: removing the caches of a project."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from devlint.check.cache.place import DIRECTORY, remove
from devlint.check.options import shortest
from devlint.config.load import Resolver
from devlint.config.schema import ConfigError
from devlint.report.terminal import one_line
from devlint.rules.selection import validate

EXIT_CLEAN, EXIT_FAILED = 0, 2


def clean(chosen: str | None) -> int:
    """Remove the cache in a directory, or else all that are in use here and below; returns the exit code."""
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
