"""Which file a dotted name begins with: folders are looked at, and nothing is read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

from devlint.check.project.trace import Name, Trace, recalled

INIT = "__init__.py"
_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
"""What lies at the root of a project."""
_NEVER = sys.stdlib_module_names | {"torch"}


class Folders:
    """The folders of this moment, each listed once."""

    def __init__(self) -> None:
        self._listings: dict[str, dict[str, bool]] = {}

    def kind(self, folder: str, name: str) -> bool | None:
        """Whether what has that name in a folder is a folder itself, ``None`` if nothing has, or it cannot be read."""
        known = self._listings.get(folder)
        if known is None:
            try:
                with os.scandir(folder) as entries:
                    known = {entry.name: entry.is_dir() for entry in entries}
            except OSError:
                known = {}
            self._listings[folder] = known
        return known.get(name)


class Modules:
    """The modules in the folders of a project."""

    def __init__(self) -> None:
        self._folders = Folders()
        self._roots: dict[tuple[str, str], tuple[tuple[str, ...], Trace]] = {}

    def has(self, folder: str, given: str, root: str, trace: Trace) -> bool:
        """Whether there is a module, or a folder, called ``root`` where the files of a folder look for modules."""
        if root in _NEVER:
            return False
        return any(
            self._kind(around, name, trace) is not None
            for around in self._roots_of(folder, given, trace)
            for name in (root, f"{root}.py")
        )

    def find(self, folder: str, given: str, path: str, trace: Trace) -> tuple[str, tuple[str, ...]] | None:
        """The file that a dotted name begins with in the files of a folder, and the parts of the name that are left.

        ``None`` also where several files could be meant.
        """
        found = set(self._candidates(folder, given, path, trace))
        return found.pop() if len(found) == 1 else None

    def package_of(self, filename: str, trace: Trace) -> str | None:
        """The package whose module a file is, by its own file."""
        folder, last = os.path.split(filename)
        return os.path.join(folder, INIT) if last != INIT and self._holds(folder, INIT, trace) else None

    def _candidates(self, folder: str, given: str, path: str, trace: Trace) -> Iterator[tuple[str, tuple[str, ...]]]:
        plain = path.lstrip(".")
        level = len(path) - len(plain)
        parts = tuple(plain.split(".")) if plain else ()
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        if level:
            roots: tuple[str, ...] = (folder,)
        else:
            roots = () if parts[0] in _NEVER else self._roots_of(folder, given, trace)
        for root in roots:
            found = self._walk(root, parts, bool(level), trace)
            if found is not None:
                yield found

    def _walk(
        self, root: str, parts: tuple[str, ...], relative: bool, trace: Trace
    ) -> tuple[str, tuple[str, ...]] | None:
        """The longest way down from a folder that leads to a file."""
        folder, filename, used = root, "", 0
        if relative and self._holds(root, INIT, trace):
            filename = os.path.join(root, INIT)
        for position, part in enumerate(parts):
            is_folder = self._kind(folder, part, trace)
            below = os.path.join(folder, part)
            if is_folder and self._holds(below, INIT, trace):
                folder, filename, used = below, os.path.join(below, INIT), position + 1
            elif self._kind(folder, f"{part}.py", trace) is False:
                return f"{below}.py", parts[position + 1 :]
            elif is_folder:
                # a folder without __init__.py is a package, too
                folder = below
            else:
                break
        return (filename, parts[used:]) if filename else None

    def _roots_of(self, folder: str, given: str, trace: Trace) -> tuple[str, ...]:
        """The folders in which the files of a folder look for modules: their own, and the roots of their project."""

        def find(looked: Trace) -> tuple[str, ...]:
            package = self._up(folder, lambda around: not self._holds(around, INIT, looked))
            marked = self._up(folder, lambda around: any(self._holds(around, mark, looked) for mark in _MARKS))
            roots = [folder, *([package] if package else [])]
            for around in filter(None, (marked, given)):
                roots += [around, os.path.join(around, "src")]
            return tuple(dict.fromkeys(roots))

        return recalled(self._roots, (folder, given), trace, find)

    def _up(self, folder: str, wanted: Callable[[str], bool]) -> str:
        """The nearest wanted folder, from one upwards; empty if there is none."""
        while not wanted(folder):
            above = os.path.dirname(folder)
            if above == folder:
                return ""
            folder = above
        return folder

    def _holds(self, folder: str, name: str, trace: Trace) -> bool:
        """Whether there is anything of that name in a folder."""
        return self._kind(folder, name, trace) is not None

    def _kind(self, folder: str, name: str, trace: Trace) -> bool | None:
        """Whether what has that name in a folder is a folder itself, ``None`` if nothing has."""
        kind = trace.names[Name(folder, name)] = self._folders.kind(folder, name)
        return kind
