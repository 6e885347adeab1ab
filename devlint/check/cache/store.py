"""The file of a cache: what was found, and the facts about files and folders that each result hangs on.

A fact says of a name in a folder what it is the name of (True: a folder, False: a file, None: nothing), or by a digest
what that file holds. Results share their facts, most of which many of them have in common.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from devlint.check.project.content import Stamp, stamp_of
from devlint.finding import Finding

FORMAT = 2
_HEAD = b"devlint cache %d %08x\n"
_MANY = 4
"""So many results of one file are kept: of runs with other rules, or from another directory."""


class Fact(NamedTuple):
    """What is so in a folder; the folder is the number of a path."""

    folder: int
    name: str
    value: bytes | bool | None


class Result(msgspec.Struct, array_like=True, gc=False):
    """What was found in a file; ``shown`` is its path as the user wrote it, ``setting`` what else the run was given."""

    shown: str
    setting: str
    facts: list[int]
    findings: list[Finding]


class Contents(msgspec.Struct, array_like=True):
    """All that a cache holds; ``selectors`` are words that are known to mean rules."""

    selectors: list[str] = []
    folders: list[str] = []
    facts: list[Fact] = []
    stamps: dict[int, Stamp] = {}
    results: dict[str, list[Result]] = {}


class Store:
    """The contents of a cache, and how they come from the file and get back."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._read_from = stamp_of(file)
        self.contents = _read(file)
        self._folders: dict[str, int] = {}
        self._facts: dict[Fact, int] = {}

    def moved_on(self) -> bool:
        """Whether somebody else has written the file since it was read."""
        return stamp_of(self.file) != self._read_from

    def fact(self, folder: str, name: str, value: bytes | bool | None, stamp: Stamp | None = None) -> int:
        """The number of a fact, which is a new one if need be."""
        contents = self.contents
        if not self._folders:
            self._folders = {known: at for at, known in enumerate(contents.folders)}
            self._facts = {known: at for at, known in enumerate(contents.facts)}
        if folder not in self._folders:
            self._folders[folder] = len(contents.folders)
            contents.folders.append(folder)
        fact = Fact(self._folders[folder], name, value)
        at = self._facts.get(fact)
        if at is None:
            at = self._facts[fact] = len(contents.facts)
            contents.facts.append(fact)
        if stamp is not None:
            contents.stamps[at] = stamp
        return at

    def put(self, name: str, result: Result) -> None:
        """Remember a result, in the place of one for the same run."""
        others = [
            known
            for known in self.contents.results.get(name, [])
            if (known.shown, known.setting) != (result.shown, result.setting)
        ]
        self.contents.results[name] = [result, *others][:_MANY]

    def write(self, root: str) -> None:
        """Let the file hold this from now on; an OSError says why it cannot. Files that are gone are forgotten."""
        contents = self.contents
        contents.results = {
            name: results for name, results in contents.results.items() if os.path.lexists(os.path.join(root, name))
        }
        used = set().union(*(result.facts for results in contents.results.values() for result in results))
        if 2 * len(used) < len(contents.facts):
            contents = _without_litter(contents, sorted(used))
        body = msgspec.msgpack.encode(contents)
        _replace(self.file, _HEAD % (FORMAT, zlib.crc32(body)) + body)


def encodes(result: Result, names: Iterable[str]) -> bool:
    """Whether a result can be written: names of files, and code, may hold what UTF-8 has no bytes for."""
    try:
        msgspec.msgpack.encode((result, list(names)))
    except UnicodeEncodeError:
        return False
    return True


def _read(file: str) -> Contents:
    """What a file holds; nothing if it is none, or none that this devlint has written completely."""
    try:
        with open(file, "rb") as stream:
            head, _, body = stream.read().partition(b"\n")
        if head + b"\n" != _HEAD % (FORMAT, zlib.crc32(body)):
            return Contents()
        contents = msgspec.msgpack.decode(body, type=Contents)
    except (OSError, MemoryError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Contents()
    # every number has to mean something
    used = set(contents.stamps).union(*(result.facts for results in contents.results.values() for result in results))
    folders = {fact.folder for fact in contents.facts}
    sound = used <= set(range(len(contents.facts))) and folders <= set(range(len(contents.folders)))
    return contents if sound else Contents()


def _without_litter(contents: Contents, used: list[int]) -> Contents:
    """The same without the facts that no result hangs on any more."""
    new = {old: at for at, old in enumerate(used)}
    return Contents(
        contents.selectors,
        contents.folders,
        [contents.facts[at] for at in used],
        {new[at]: stamp for at, stamp in contents.stamps.items() if at in new},
        {
            name: [msgspec.structs.replace(result, facts=[new[at] for at in result.facts]) for result in results]
            for name, results in contents.results.items()
        },
    )


def _replace(file: str, data: bytes) -> None:
    """Let a file hold something else, at once for all who look."""
    temporary = f"{file}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as stream:
            stream.write(data)
        os.replace(temporary, file)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
