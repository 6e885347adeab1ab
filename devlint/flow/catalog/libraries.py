"""What is known of libraries: rows of devlint's own files, one for each package, and of the files of its users.

A file of devlint's own is read when the first name of its package is asked for; few packages of those that are known
stand in any one project.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Any

from devlint._about import PACKAGE
from devlint.flow.catalog import schema
from devlint.flow.catalog.schema import Row, RowError, Words
from devlint.source.files import content, toml

_LONGEST_CHAIN = 4
"""So many names may stand for each other, one after the other."""
_WILDCARD = re.compile(r"\*\*\.|\.\*\*$|\*\*|\*|\[[^\]]+\]")
_WHAT = frozenset({"result", "is", "alias-of"})
"""Words of which the later one takes the place of the earlier."""
_SPELLED = {"**.": r"(?:.*\.)?", ".**": r"\..+", "**": ".*", "*": r"[^.]*"}


class _Pattern:
    """A key with wildcards: `*` is any part of one name, `**` of several, `[a-z]` one letter."""

    def __init__(self, key: str, words: Words) -> None:
        first = _WILDCARD.search(key)
        self._key = key
        self._begin = key[: first.start()] if first is not None else key
        self.rank = (len(self._begin), len(key))
        self.words = words
        named = words.get("names")
        self._names = frozenset(named.split()) if isinstance(named, str) else None
        self._open = self._names is None and key.endswith(("*", "]"))

    def covers(self, path: str, method: bool) -> bool:
        """Whether a name is one of those that are meant; a method is only if it is named."""
        if method and self._open:
            return False
        if self._names is not None and path.rpartition(".")[2] not in self._names:
            return False
        return path.startswith(self._begin) and self._expression.fullmatch(path) is not None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        code, at = "", 0
        for match in _WILDCARD.finditer(self._key):
            code += re.escape(self._key[at : match.start()]) + _SPELLED.get(match[0], match[0])
            at = match.end()
        return re.compile(code + re.escape(self._key[at:]))


class Layer:
    """Rows of one origin: of a project, of a package, or of devlint itself."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.owners: set[str] = set()
        """The classes of methods that have rows."""
        self._exact: dict[str, Words] = {}
        self._patterns: dict[str, list[_Pattern]] = {}

    def add(self, document: dict[str, Any]) -> None:
        """Take the rows of a file; a :class:`RowError` says what is wrong with them."""
        for key, words in schema.tables(document):
            schema.check(key, words)
            self.keys.append(key)
            if "*" in key or "[" in key:
                self._patterns.setdefault(key.partition(".")[0], []).append(_Pattern(key, words))
            elif key in self._exact:
                raise RowError(f'["{key}"]: there are two rows of this name')
            else:
                self._exact[key] = words
                owner = key.rpartition(".")[0]
                if owner.rpartition(".")[2].lstrip("_")[:1].isupper():
                    self.owners.add(owner)
        for patterns in self._patterns.values():
            patterns.sort(key=lambda pattern: pattern.rank)

    def words(self, path: str, method: bool) -> Words:
        """What is said of a name: of two patterns that match, the one that says more of the name comes later."""
        patterns = self._patterns.get(path.partition(".")[0])
        own = self._exact.get(path, {})
        found = [pattern.words for pattern in patterns if pattern.covers(path, method)] if patterns is not None else []
        if not found:
            return own
        merged: Words = {}
        for words in (*found, own):
            if not _WHAT.isdisjoint(words):
                merged = {name: value for name, value in merged.items() if name not in _WHAT}
            merged.update(words)
        return merged


class _BuiltIn(Layer):
    """What devlint itself knows, of those packages that somebody has asked for."""

    def __init__(self) -> None:
        super().__init__()
        folder = os.path.join(PACKAGE, "flow/catalog/data")
        files = (os.path.splitext(name) for name in os.listdir(folder))
        self._unread = {name: os.path.join(folder, name + end) for name, end in files if end == ".toml"}
        self.packages = tuple(sorted(self._unread))

    def words(self, path: str, method: bool) -> Words:
        file = self._unread.pop(path.partition(".")[0], None)
        if file is not None:
            self.add(toml(content(file)))
        return super().words(path, method)


class Catalog:
    """The rows that hold for a file: those of its project come before those of packages, and these before devlint's."""

    def __init__(self, layers: Iterable[Layer] = ()) -> None:
        self.stated = tuple(layers)
        """What users say; of several layers that have a row for a name, the first decides alone."""
        self._rows: dict[str, Row | None] = {}
        self._methods: dict[str, Row | None] = {}
        self._canonical: dict[str, str] = {}

    def row(self, path: str) -> Row | None:
        """What is stated of a dotted name, as a user's name resolves."""
        if path not in self._rows:
            self._rows[path] = self._found(path, method=False)
        return self._rows[path]

    def method(self, path: str) -> Row | None:
        """What is stated of a method, by its name behind that of the class."""
        if path not in self._methods:
            self._methods[path] = self._found(path, method=True)
        return self._methods[path]

    def _found(self, path: str, method: bool) -> Row | None:
        for layer in (*self.stated, _built_in()):
            words = layer.words(path, method)
            if words:
                return schema.row(path, words)
        owner = not method and any(path in layer.owners for layer in (*self.stated, _built_in()))
        return Row(path, is_a="object") if owner else None

    def is_stated(self, path: str) -> bool:
        """Whether a user's row speaks of a name."""
        return any(layer.words(path, method=False) for layer in self.stated)

    def is_foreign(self, imported: Iterable[str]) -> bool:
        """Whether what is imported makes tensors, and none of torch's."""
        paths = tuple(imported)
        torch = any(path.partition(".")[0] == "torch" for path in paths)
        return not torch and any(row.is_a == "framework" for row in self.packages(paths))

    def mentioned(self, text: str) -> bool:
        """Whether a text may speak of something for which a user has written a row."""
        return any(key.partition(".")[0] in text for layer in self.stated for key in layer.keys)

    def states(self, path: str) -> bool:
        """Whether a user has written a row for a name."""
        return any(layer.words(path, method=False) or path in layer.owners for layer in self.stated)

    def packages(self, paths: Iterable[str]) -> list[Row]:
        """What is stated of the packages, and of the packages in them, that dotted names begin with."""
        parts = (path.partition(" ")[0].split(".") for path in paths)
        rows = map(self.row, {".".join(names[:end]) for names in parts for end in range(1, len(names) + 1)})
        return [row for row in rows if row is not None]

    def need(self, path: str) -> str:
        """What a package does nothing without, as the innermost of those says that a dotted name begins with."""
        while path:
            row = self.row(path)
            if row is not None and row.needs:
                return row.needs
            path = path.rpartition(".")[0]
        return ""

    def canonical(self, path: str) -> str:
        """The name under which the rest of devlint knows what goes by ``path``."""
        known = self._canonical.get(path)
        if known is None:
            known = self._canonical[path] = self._meant(path)
        return known

    def _meant(self, path: str) -> str:
        known = path
        for _ in range(_LONGEST_CHAIN):
            row = self.row(known)
            if row is None or not row.alias_of:
                return known
            meant = row.alias_of
            known = meant[:-1] + known.rpartition(".")[2] if meant.endswith(".*") else meant
        # names that stand for each other in a circle
        return path


@cache
def _built_in() -> _BuiltIn:
    return _BuiltIn()


BUILT_IN = Catalog()
"""What devlint knows of libraries by itself."""


canonical = BUILT_IN.canonical
"""The spelling under which the rest of devlint knows a dotted name."""


def packages() -> tuple[str, ...]:
    """The packages of which devlint has rows of its own."""
    return _built_in().packages
