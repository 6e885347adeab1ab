"""Where the names come from that the files of a project take from each other."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator

from devlint.check.filters.definitions import Module

_PACKAGE = "__init__"


class Sources:
    """The files of a project by the names of their modules; ``module`` reads one of them, if it can be read."""

    def __init__(self, root: str, files: Iterable[str], module: Callable[[str], Module | None]) -> None:
        self._module = module
        self._root = root
        self._files: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self._names: set[str] = set()
        for path in files:
            parts = _parts(os.path.relpath(path, root))
            self._names.update(parts)
            if parts:
                self._files.setdefault(parts[-1], []).append((parts, path))

    def leads(self, here: str, name: str, there: str) -> bool:
        """Whether a name that stands in a file by itself may mean what another file of the project defines."""
        return self._leads(here, name, there, {here})

    def means(self, here: str, source: str, name: str, there: str) -> bool:
        """Whether what a file names after something imported may be what another file, or it itself, defines.

        What is no module is an object, which may have anything, but for one of another library.
        """
        paths = list(self._of(source, here)) if source else []
        if not paths:
            return not source or source.startswith(".") or source.partition(".")[0] in self._names
        return any(self._has(path, name, there, {path}) for path in paths)

    def _has(self, path: str, name: str, there: str, seen: set[str]) -> bool:
        """Whether a name of a file's may be what another one defines, or it itself."""
        other = None if path == there else self._module(path)
        return other is None or (name not in other.definitions and self._leads(path, name, there, seen))

    def _leads(self, here: str, name: str, there: str, seen: set[str]) -> bool:
        module = self._module(here)
        if module is None:
            return True
        for source in itertools.chain(module.taken.get(name, ()), module.stars):
            for path in self._of(source, here):
                if path == there:
                    return True
                if path not in seen:
                    seen.add(path)
                    if self._has(path, name, there, seen):
                        return True
        return False

    def _of(self, source: str, here: str) -> Iterator[str]:
        """The files that a module may be which a statement names: beside who names it, at the root, or anywhere."""
        name = source.lstrip(".")
        parts = tuple(filter(None, name.split(".")))
        folder = os.path.dirname(here)
        if level := len(source) - len(name):
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            wanted = (*_parts(os.path.relpath(folder, self._root), file=False), *parts)
            yield from (path for found, path in self._files.get((wanted or ("",))[-1], ()) if found == wanted)
            return
        known = [(found, path) for found, path in self._files.get(parts[-1], ()) if found[-len(parts) :] == parts]
        for around in (_parts(os.path.relpath(folder, self._root), file=False), ()):
            nearest = [path for found, path in known if found == (*around, *parts)]
            if nearest:
                yield from nearest
                return
        yield from (path for _, path in known)


def _parts(path: str, file: bool = True) -> tuple[str, ...]:
    """The parts of the name of a module in a path relative to its root."""
    parts = [part for part in (os.path.splitext(path)[0] if file else path).split(os.sep) if part != os.curdir]
    return tuple(parts[:-1] if file and parts and parts[-1] == _PACKAGE else parts)
