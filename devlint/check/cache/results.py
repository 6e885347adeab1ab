"""The cache as a run uses it: which results still hold, and what is remembered for the next run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property, lru_cache

from devlint.check.cache import place
from devlint.check.cache.identity import identity
from devlint.check.cache.store import Result, Store, encodes
from devlint.check.discovery.target import Target
from devlint.check.project import models
from devlint.check.project.content import Fingerprint, Stamp, examine, stamp_of
from devlint.check.project.modules import Folders
from devlint.check.project.trace import Dependencies
from devlint.config.schema import Config
from devlint.finding import Finding


class Cache:
    """The results that are kept in a directory for the project at ``root``."""

    def __init__(self, directory: str, root: str, code: bytes) -> None:
        from hashlib import blake2b

        self.directory = directory
        self.root = root
        self._here = os.getcwd()
        name = blake2b(code + os.fsencode(root), digest_size=10).hexdigest()
        self._file = place.file_in(directory, name)
        self._folders = Folders()
        self._files = _Files()
        self._good: set[int] = set()
        self._bad: set[int] = set()
        self._kept: list[tuple[Target, tuple[Finding, ...], Dependencies]] = []
        self._changed = False

    @classmethod
    def at(cls, directory: str, root: str) -> Cache | None:
        """The cache in a directory, ``None`` where devlint cannot tell what it is itself."""
        try:
            code = identity()
        except OSError:
            return None
        return None if code is None else cls(directory, root, code)

    @cached_property
    def _store(self) -> Store:
        return Store(self._file)

    @cached_property
    def selectors(self) -> set[str]:
        """Words that are known to mean rules; more can be added."""
        return set(self._store.contents.selectors)

    def find(self, target: Target) -> tuple[Finding, ...] | None:
        """What is found in a file, if an earlier run knew it and nothing has changed that it hangs on."""
        setting = self._setting(target)
        for result in self._store.contents.results.get(self._name(target.path), ()):
            if result.shown == target.path and result.setting == setting and self._holds(result.facts):
                return tuple(result.findings)
        return None

    def keep(self, target: Target, findings: tuple[Finding, ...], dependencies: Dependencies) -> None:
        """Remember what was found in a file."""
        self._kept.append((target, findings, dependencies))

    def save(self) -> None:
        """Write what is new; an OSError says why it cannot be written."""
        known = self._store.contents.selectors
        if not self._kept and not self._changed and self.selectors <= set(known):
            return
        place.prepare(self.directory)
        store = Store(self._file) if self._store.moved_on() else self._store
        for kept in self._kept:
            self._put(store, *kept)
        store.contents.selectors = sorted({*store.contents.selectors, *self.selectors})
        store.write(self.root)
        place.tidy(self.directory)

    def _holds(self, facts: Iterable[int]) -> bool:
        """Whether all facts are still so."""
        unknown = set(facts) - self._good
        if not self._bad.isdisjoint(unknown):
            return False
        for at in unknown:
            if not self._is_so(at):
                self._bad.add(at)
                return False
            self._good.add(at)
        return True

    def _is_so(self, at: int) -> bool:
        contents = self._store.contents
        folder, name, value = contents.facts[at]
        if not isinstance(value, bytes):
            return self._folders.kind(contents.folders[folder], name) is value
        stamp = contents.stamps.get(at)
        seen = self._files.holds(contents.folders[folder], name, value, stamp)
        if seen is not None and seen.stamp is not None and seen.stamp != stamp:
            contents.stamps[at] = seen.stamp
            self._changed = True
        return seen is not None

    def _put(self, store: Store, target: Target, findings: tuple[Finding, ...], dependencies: Dependencies) -> None:
        result = Result(target.path, self._setting(target), [], [*findings])
        if not encodes(result, (*dependencies.files, *(part for name in dependencies.names for part in name))):
            return
        for filename, seen in dependencies.files.items():
            result.facts.append(store.fact(*os.path.split(filename), seen.digest, seen.stamp))
        result.facts += [store.fact(folder, name, kind) for (folder, name), kind in dependencies.names.items()]
        store.put(self._name(target.path), result)

    def _name(self, path: str) -> str:
        """What a file goes by: its path from the root, if it is below."""
        return os.path.abspath(path).removeprefix(os.path.join(self.root, ""))

    def _setting(self, target: Target) -> str:
        """All that a file's findings hang on besides files."""
        return f"{_configured(target.config)}\n{target.given}\n{self._here}\n{models.digest(target.config)}"


@lru_cache(maxsize=64)
def _configured(config: Config) -> str:
    """What a configuration has to do with what is found."""
    root = config.root if config.per_file_ignores else ""
    torch = (
        config.target_torch,
        config.latest_torch,
        config.required_python,
        [(folder, sorted(names)) for folder, names in config.default_device],
    )
    return repr((config.rule_layers, config.per_file_ignores, root, config.severity, *torch))


class _Files:
    """The files of this moment, each looked at once in a run."""

    def __init__(self) -> None:
        self._stamps: dict[str, Stamp | None] = {}
        self._seen: dict[str, Fingerprint] = {}

    def holds(self, folder: str, name: str, digest: bytes, stamp: Stamp | None) -> Fingerprint | None:
        """What a file holds, if its content has that digest; it is read unless it still has the stamp."""
        filename = os.path.join(folder, name)
        if filename not in self._stamps:
            self._stamps[filename] = stamp_of(filename)
        if stamp is not None and self._stamps[filename] == stamp:
            return Fingerprint(digest, stamp)
        seen = self._seen.get(filename)
        if seen is None:
            seen = self._seen[filename] = examine(filename)[1]
        return seen if seen.digest == digest else None
