"""Which file a dotted name begins with: folders are looked at, and nothing is read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

INIT = "__init__.py"
_MARKS = frozenset({"pyproject.toml", "setup.py", "setup.cfg", ".git"})
"""What lies at the root of a project."""
_NEVER = sys.stdlib_module_names | {"torch"}


@dataclass(slots=True)
class Trace:
    """What was looked at: ``read`` are files, ``absent`` modules that would have been read, had there been any."""

    read: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)


class Modules:
    """The folders of a project, each listed once, and the modules in them."""

    def __init__(self) -> None:
        self._listings: dict[str, dict[str, bool]] = {}
        self._roots: dict[tuple[str, str], tuple[str, ...]] = {}

    def has(self, folder: str, given: str, root: str, trace: Trace) -> bool:
        """Whether there is a module, or a folder, called ``root`` where the files of a folder look for modules."""
        if root in _NEVER:
            return False
        roots = self._roots_of(folder, given)
        found = any(root in listing or f"{root}.py" in listing for listing in map(self._listing, roots))
        if not found:
            trace.absent.update(os.path.join(around, root) for around in roots)
        return found

    def find(self, folder: str, given: str, path: str, trace: Trace) -> tuple[str, tuple[str, ...]] | None:
        """The file that a dotted name begins with in the files of a folder, and the parts of the name that are left.

        ``None`` also where several files could be meant.
        """
        found = set(self._candidates(folder, given, path, trace))
        return found.pop() if len(found) == 1 else None

    def package_of(self, filename: str) -> str | None:
        """The package whose module a file is, by its own file."""
        folder, last = os.path.split(filename)
        return os.path.join(folder, INIT) if last != INIT and INIT in self._listing(folder) else None

    def _candidates(self, folder: str, given: str, path: str, trace: Trace) -> Iterator[tuple[str, tuple[str, ...]]]:
        plain = path.lstrip(".")
        level = len(path) - len(plain)
        parts = tuple(plain.split(".")) if plain else ()
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        if level:
            roots: tuple[str, ...] = (folder,)
        else:
            roots = () if parts[0] in _NEVER else self._roots_of(folder, given)
        for root in roots:
            found = self._walk(root, parts, bool(level), trace)
            if found is not None:
                yield found

    def _walk(
        self, root: str, parts: tuple[str, ...], relative: bool, trace: Trace
    ) -> tuple[str, tuple[str, ...]] | None:
        """The longest way down from a folder that leads to a file."""
        folder, filename, used = root, "", 0
        if relative and INIT in self._listing(root):
            filename = os.path.join(root, INIT)
        for position, part in enumerate(parts):
            listing = self._listing(folder)
            below = os.path.join(folder, part)
            if listing.get(part) and INIT in self._listing(below):
                folder, filename, used = below, os.path.join(below, INIT), position + 1
            elif listing.get(f"{part}.py") is False:
                return f"{below}.py", parts[position + 1 :]
            elif listing.get(part):
                # a folder without __init__.py is a package, too
                folder = below
            else:
                trace.absent.add(below)
                break
        return (filename, parts[used:]) if filename else None

    def _roots_of(self, folder: str, given: str) -> tuple[str, ...]:
        """The folders in which the files of a folder look for modules: their own, and the roots of their project."""
        known = self._roots.get((folder, given))
        if known is None:
            package = self._up(folder, lambda listing: INIT not in listing)
            marked = self._up(folder, lambda listing: not _MARKS.isdisjoint(listing))
            roots = [folder, *([package] if package else [])]
            for around in filter(None, (marked, given)):
                roots += [around, os.path.join(around, "src")]
            known = self._roots[folder, given] = tuple(dict.fromkeys(roots))
        return known

    def _up(self, folder: str, wanted: Callable[[dict[str, bool]], bool]) -> str:
        """The nearest folder, from one upwards, with such names in it; empty if there is none."""
        while not wanted(self._listing(folder)):
            above = os.path.dirname(folder)
            if above == folder:
                return ""
            folder = above
        return folder

    def _listing(self, folder: str) -> dict[str, bool]:
        """The names in a folder, and whether each is a folder; none where it cannot be read."""
        known = self._listings.get(folder)
        if known is None:
            try:
                with os.scandir(folder) as entries:
                    known = {entry.name: entry.is_dir() for entry in entries}
            except OSError:
                known = {}
            self._listings[folder] = known
        return known
