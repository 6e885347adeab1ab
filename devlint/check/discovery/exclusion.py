"""Which paths are left out: by the configuration, and by the ignore files of git."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from devlint.check.discovery.patterns import compiled
from devlint.config.messages import leads_out
from devlint.config.schema import DEFAULT_EXCLUDE, Config
from devlint.source.file_kinds import PATTERNS

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


class IgnoreFile(NamedTuple):
    """One ignore file's patterns and the directory they are relative to."""

    root: str
    spec: GitIgnoreSpec


def excluded(path: str, name: str, is_directory: bool, config: Config) -> bool:
    """Whether the configuration leaves out a path of that name."""
    if config.exclude == DEFAULT_EXCLUDE:
        # The usual case is a set of plain names, which costs nothing.
        if name in _DEFAULT_NAMES:
            return True
        patterns = config.extend_exclude
    else:
        patterns = (*config.exclude, *config.extend_exclude)
    for kind in config.exclude_kinds:
        patterns += PATTERNS[kind]
    if not patterns:
        return False
    relative = os.path.relpath(path, config.root or None)
    if leads_out(relative):
        # Outside the project only a pattern for a bare name can be meant.
        relative = name
    return bool(compiled(patterns).match_file(relative + "/" if is_directory else relative))


def kind_of(path: str, config: Config) -> str:
    """The kind of files by which the configuration could leave out a path; empty if there is none."""
    alone = (replace(config, exclude=(), extend_exclude=(), exclude_kinds=(kind,)) for kind in PATTERNS)
    return next((one.exclude_kinds[0] for one in alone if excluded(path, os.path.basename(path), False, one)), "")


def force_excluded(path: str, config: Config) -> bool:
    """Whether a path that was named, or a directory above it within the project, is excluded."""
    is_directory = os.path.isdir(path)
    root = config.root or os.getcwd()
    while path.startswith(root) and path != root:
        if excluded(path, os.path.basename(path), is_directory, config):
            return True
        path, is_directory = os.path.dirname(path), True
    return False


_DEFAULT_NAMES = frozenset(DEFAULT_EXCLUDE)


def ignored(path: str, is_directory: bool, ignores: tuple[IgnoreFile, ...]) -> bool:
    """Whether git leaves out a path, as ignore files from the outside to the inside say."""
    # The deepest file that has an opinion decides, and within a file its last word.
    for ignore in reversed(ignores):
        relative = path[len(ignore.root) :].replace(os.sep, "/").lstrip("/")
        verdict = ignore.spec.check_file(relative + "/" if is_directory else relative).include
        if verdict is not None:
            return verdict
    return False


def ignores_above(directory: str) -> tuple[IgnoreFile, ...]:
    """The ignore files between the root of the git repository and a directory, that directory's own left out."""
    above: list[str] = []
    current = directory
    while not os.path.lexists(os.path.join(current, ".git")):
        parent = os.path.dirname(current)
        if parent == current:
            return ()
        above.append(parent)
        current = parent
    if not above:
        return ()
    found = [*ignore_file(current, os.path.join(".git", "info", "exclude"))]
    for ancestor in reversed(above):
        found += ignore_file(ancestor, ".gitignore")
    # Whoever names an ignored directory means it; the patterns that ignore it are not asked about its content.
    return tuple(ignore for ignore in found if not ignored(directory, True, (ignore,)))


def ignore_file(root: str, name: str) -> tuple[IgnoreFile, ...]:
    """The ignore file of that name in a folder, if there is one."""
    path = os.path.join(root, name)
    try:
        # Anybody's tree may hold a pipe of that name, and nobody may be at its other end.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return ()
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return ()
    return (IgnoreFile(root, _tolerant(lines)),)


def _tolerant(lines: list[str]) -> GitIgnoreSpec:
    """Compile what can be compiled: git, too, passes over a pattern that makes no sense."""
    try:
        return compiled(tuple(lines))
    except Exception:
        usable = []
        for line in lines:
            try:
                compiled((line,))
            except Exception:
                continue
            usable.append(line)
        return compiled(tuple(usable))
