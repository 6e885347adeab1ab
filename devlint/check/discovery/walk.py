"""From the paths that a user names to the Python files behind them, less what git and the configuration leave out."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from devlint.check.discovery.exclusion import IgnoreFile, excluded, force_excluded, ignore_file, ignored, ignores_above
from devlint.check.discovery.target import Target
from devlint.config.load import Resolver
from devlint.config.schema import Config, ConfigError
from devlint.finding import Failure

_ENDS = (".py", ".ipynb")
"""How the names of files end that are checked without being named."""


class Discovery:
    """What discovery finds, and a line for each thing that it could not look at; no file is found twice."""

    def __init__(self, resolver: Resolver) -> None:
        self.targets: list[Target] = []
        self.errors: list[str] = []
        self._resolver = resolver
        self._seen: set[str] = set()
        self._real: set[str] = set()
        self._links: list[tuple[str, Config, str]] = []
        self._given = ""

    def start(self, path: str) -> None:
        """Take one path of the command line."""
        try:
            status = os.stat(path)
        except OSError as error:
            self._fail(path, error)
            return
        except ValueError as error:  # a NUL in the path
            self.errors.append(f"{path!r}: {error}")
            return
        path = _plain(path)
        absolute = os.path.abspath(path)
        self._given = absolute if stat.S_ISDIR(status.st_mode) else ""
        if not self._given and not stat.S_ISREG(status.st_mode):
            # Opening a pipe can wait for ever, and a device such as /dev/zero has no end.
            reason = "neither a file nor a directory (what comes from a pipe is read as `-`)"
            self.errors.append(Failure(path, reason))
            return
        config = self._resolver.at(self._given or os.path.dirname(absolute), self._given)
        if config.force_exclude and force_excluded(absolute, config):
            return
        if self._given:
            self._directory(path, absolute, config, ignores_above(absolute) if config.respect_gitignore else ())
            return
        self._add(path, absolute, status.st_size, config)
        if os.path.islink(path):
            self._real.add(os.path.realpath(path))

    def finish(self) -> None:
        """Take the links to files, now that it is known which of them lead to a file that was found anyway."""
        if not self._links:
            return
        directories = {directory: os.path.realpath(directory) for directory in {*map(os.path.dirname, self._seen)}}
        real = self._real
        real |= {os.path.join(directories[os.path.dirname(path)], os.path.basename(path)) for path in self._seen}
        for link, config, given in self._links:
            self._given = given
            target = os.path.realpath(link)
            if target in real:
                continue
            try:
                status = os.stat(link)
            except OSError as error:
                self._fail(link, error)
                continue
            if stat.S_ISREG(status.st_mode):
                self._add(link, os.path.abspath(link), status.st_size, config)
                real.add(target)

    def _directory(self, path: str, absolute: str, config: Config, ignores: tuple[IgnoreFile, ...]) -> None:
        # A stack instead of recursion: nothing limits how deep directories nest.
        stack = [(path, absolute, config, ignores)]
        while stack:
            path, absolute, config, ignores = stack.pop()
            try:
                with os.scandir(path) as entries:
                    listing = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                self._fail(path, error)
                continue
            try:
                config, ignores = self._enter(absolute, listing, config, ignores)
            except ConfigError as error:
                self.errors.append(str(error))
                continue
            below = list(self._entries(path, absolute, listing, config, ignores))
            stack.extend(reversed(below))

    def _enter(
        self, absolute: str, listing: list[os.DirEntry[str]], config: Config, ignores: tuple[IgnoreFile, ...]
    ) -> tuple[Config, tuple[IgnoreFile, ...]]:
        """What changes on entering a directory: a configuration or an ignore file of its own."""
        names = {entry.name for entry in listing}
        if self._resolver.differs(names):
            config = self._resolver.at(absolute, self._given)
        if config.respect_gitignore:
            if ".git" in names:
                # Another repository begins here; the ignore files above it have no say.
                ignores = ignore_file(absolute, os.path.join(".git", "info", "exclude"))
            if ".gitignore" in names:
                ignores = (*ignores, *ignore_file(absolute, ".gitignore"))
        return config, ignores

    def _entries(
        self,
        path: str,
        absolute: str,
        listing: list[os.DirEntry[str]],
        config: Config,
        ignores: tuple[IgnoreFile, ...],
    ) -> Iterator[tuple[str, str, Config, tuple[IgnoreFile, ...]]]:
        """Take a directory's files, and yield the directories to go into."""
        for entry in listing:
            name = entry.name
            # The path is shown as the user wrote it: `.` in front of everything says nothing.
            shown = name if path == os.curdir else os.path.join(path, name)
            try:
                # A link to a directory is not followed, as in git: what it shows lives elsewhere, perhaps above.
                is_directory = entry.is_dir(follow_symlinks=False)
            except OSError as error:
                self._fail(shown, error)
                continue
            if not is_directory and not name.endswith(_ENDS):
                continue
            full = os.path.join(absolute, name)
            if excluded(full, name, is_directory, config) or ignored(full, is_directory, ignores):
                continue
            if is_directory:
                yield shown, full, config, ignores
            elif entry.is_symlink():
                # Emacs keeps its locks as links to nowhere beside the file: `.#model.py`.
                if not name.startswith(".#") and not os.path.isdir(shown):
                    self._links.append((shown, config, self._given))
            elif entry.is_file(follow_symlinks=False):
                try:
                    size = entry.stat().st_size
                except OSError as error:  # a directory whose names can be read, but not what stands behind them
                    self._fail(shown, error)
                else:
                    self._add(shown, full, size, config)

    def _add(self, path: str, absolute: str, size: int, config: Config) -> None:
        if absolute not in self._seen:
            self._seen.add(absolute)
            self.targets.append(Target(path, size, config, self._given))

    def _fail(self, path: str, error: OSError) -> None:
        self.errors.append(Failure(path, error.strerror or str(error)))


def discover(paths: Sequence[str], resolver: Resolver) -> Discovery:
    """Find the files to check: a file that is named, whatever it is called, and the Python files of directories."""
    found = Discovery(resolver)
    for path in paths:
        try:
            found.start(path)
        except ConfigError as error:
            found.errors.append(str(error))
    found.finish()
    return found


def _plain(path: str) -> str:
    """An existing path without `.` and `..`, of which the latter means another directory behind a link."""
    plain = os.path.normpath(path)
    try:
        return plain if os.path.samefile(plain, path) else os.path.realpath(path)
    except OSError:
        return os.path.realpath(path)
