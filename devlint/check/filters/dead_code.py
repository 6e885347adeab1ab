"""Dead code: functions, classes and methods that nothing of their project names but what is as dead."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import TypeAlias

from devlint.check.filters import lookups, project_files, publishing
from devlint.check.filters.definitions import How, Module, is_package, module_of
from devlint.check.filters.inner_functions import unnamed
from devlint.check.filters.sources import Sources
from devlint.finding import Finding, Severity
from devlint.rules.registry import registry
from devlint.source.file_kinds import is_of_tests
from devlint.source.files import held

_NAMING = (".py", ".ipynb", ".pyi", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".txt", ".sh", ".md", ".rst")
"""The ends of the names of files by which something may be called."""
_CODE = (".py", ".pyi", ".ipynb", ".sh")
"""Those of them in which no word is prose."""
_Key: TypeAlias = tuple[str, str]
"""A file, and the qualified name of something that it defines; an empty name for what it does when it is run."""
_LARGEST = 1_000_000
"""Files of so many bytes are searched; who knows what the others say."""
_DEEPEST = 6
"""Who names what is asked of so many in turn."""
_ANY = frozenset(How)
_OF_ANOTHER = _ANY - {How.BARE, How.OF_OBJECT}
"""How a file names what is at the top level of another one that it takes nothing of that name from."""
_OF_ANOTHER_S = _OF_ANOTHER | {How.OF_OBJECT}
"""How it names a method of another one."""
_WORD = re.compile(r"[a-z]+")
"""A name that prose has as well."""
_MEANT = rb"[.`'\"(]%b\b(?!['\"]?\s*:)|\b%b\(|\bimport\b[^\n]*\b%b\b|[:=-] *%b *$"
"""How a text has a name that is a word, too, where it means the name."""


def dead(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings, in order, that are in files, in code which nothing uses; errors, where one did once.

    A definition counts as used if it has a decorator that may register it, if it is in a module in which things are
    looked up by names that users give, if it is of a test, and if anything names it but itself, statements that import
    it, and what is as dead. In a project that others install it is used if a package offers it, and in any case by who
    has to hear of what happens today already. A method is judged by itself only in a class that calls it for nobody
    else's sake. A function inside of another is judged by that one alone, for nobody else can name it.
    """
    by_root: dict[tuple[str, bool], list[Finding]] = {}
    found: set[int] = set()
    root, inner = cache(publishing.root), cache(unnamed)
    for finding in findings:
        if _scope(finding) and not is_of_tests(finding.filename):
            folder, installed = root(os.path.dirname(os.path.abspath(finding.filename)))
            if finding.severity < Severity.ERROR and _is_within(finding, inner(finding.filename)):
                found.add(id(finding))
            elif folder and not (installed and _concerns_users(finding)):
                by_root.setdefault((folder, installed), []).append(finding)
    found |= {id(one) for where, some in by_root.items() for one in _dead_in(_Project(*where), some)}
    return [finding for finding in findings if id(finding) in found]


def _is_within(finding: Finding, rows: list[tuple[int, int]]) -> bool:
    return any(first <= finding.span.row <= last for first, last in rows)


def _concerns_users(finding: Finding) -> bool:
    """Whether a finding is worth telling of whatever others may call: a hint, or a name that is to go, is not."""
    rule = registry().get(finding.code)
    return finding.severity > Severity.INFO and not (rule is not None and rule.deprecates)


def _scope(finding: Finding) -> str:
    """The definition that a finding is in: at the top level of its file, or a method; empty if it is in none."""
    return "" if finding.context is None or finding.span.cell else finding.context.scope


def _dead_in(project: _Project, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Those of a project's findings that are in dead definitions."""
    around = [_around(finding) for finding in findings]
    gone = project.dead(frozenset[_Key]().union(*around))
    for finding, keys in zip(findings, around, strict=True):
        if any(finding.severity < Severity.ERROR or project.gave_up(key) for key in gone & keys):
            yield finding


def _around(finding: Finding) -> frozenset[_Key]:
    """The definition at the top level of its file that a finding is in, and the method."""
    path, scope = os.path.realpath(finding.filename), _scope(finding).split(".")
    return frozenset({(path, scope[0]), (path, ".".join(scope[:2]))})


class _Project:
    """A project, and who names what in it. ``installed`` is whether others install it, too.

    Its other files are read where those of the definitions alone do not say that they are used.
    """

    def __init__(self, root: str, installed: bool) -> None:
        self._root = root
        self._installed = installed
        self._modules: dict[str, Module | None] = {}

    @cached_property
    def _files(self) -> dict[str, str]:
        """The files that are searched, and one more if there are too many, each with what it is with links followed."""
        paths = itertools.islice(project_files.files(self._root, _NAMING), project_files.MOST + 1)
        return {path: os.path.realpath(path) for path in paths}

    @cached_property
    def _looked_in(self) -> set[str] | None:
        """The files in which things are found by names that users give; ``None`` where that may be any."""
        if len(self._files) > project_files.MOST:
            return None
        modules = lookups.modules_of(self._root, self._files.items())
        found: set[str] = set()
        for path, here in self._files.items():
            data = held(path) or b""
            inside = lookups.looked_in(data, here, modules)
            if len(data) > _LARGEST or inside is None:
                return None
            found |= inside
            if self._installed and is_package(path):
                found.add(here)
        return lookups.with_stars(found, modules)

    def gave_up(self, key: _Key) -> bool:
        """Whether a call of a definition is commented out in its file."""
        module = self._module(key[0])
        return module is not None and key[1] in module.definitions and module.gave_up(key[1])

    def dead(self, keys: Iterable[_Key]) -> set[_Key]:
        """Those of some definitions that nothing names but what is as dead."""
        users: dict[_Key, set[_Key]] = {}
        rest = set(keys)
        for _ in range(_DEEPEST):
            asked = self._asked(rest)
            if not asked:
                break
            users |= self._users(asked)
            rest = set[_Key]().union(*users.values()) - users.keys()
        gone = set(users)
        while alive := {key for key in gone if not users[key] <= gone}:
            gone -= alive
        return gone.intersection(keys)

    def _asked(self, keys: Iterable[_Key]) -> dict[_Key, set[_Key]]:
        """The definitions that are used only if somebody names them, each with those of its own file that do.

        One that its file names when it is run is used.
        """
        found: dict[_Key, set[_Key]] = {}
        for path, qualified in keys:
            module = None if is_of_tests(path) else self._module(path)
            one = None if module is None else module.definitions.get(qualified)
            if module is not None and one is not None and one.own:
                ways = _ANY if "." in qualified else _ANY - {How.OF_OBJECT}
                by = set(module.naming(one.name, ways, self._means(path, one.name, path), one.rows))
                if "" not in by:
                    found[path, qualified] = {(path, name) for name in by}
        # what somebody has left off calling, no user names
        left = {key: by for key, by in found.items() if self.gave_up(key)}
        if len(left) == len(found) or (looked_in := self._looked_in) is None:
            return left
        return left | {key: by for key, by in found.items() if key[0] not in looked_in}

    def _users(self, asked: dict[_Key, set[_Key]]) -> dict[_Key, set[_Key]]:
        """Who names each of some definitions, in its own file, as given, and in the others."""
        found = {key: set(by) for key, by in asked.items()}
        by_name: dict[bytes, set[_Key]] = {}
        for key in asked:
            by_name.setdefault(key[1].rpartition(".")[2].encode(), set()).add(key)
        words = re.compile(rb"\b(?:%b)\b" % b"|".join(sorted(by_name)))
        for path, here in self._files.items():
            data = held(path) or b""
            for word in set(words.findall(data)):
                for key in by_name[word]:
                    if key[0] != here:
                        found[key].update((here, name) for name in self._naming(path, here, key, data))
        return found

    def _naming(self, path: str, here: str, key: _Key, data: bytes) -> Iterator[str]:
        """What of another file than its own names a definition: definitions at the top level, or the file itself."""
        _, _, name = key[1].rpartition(".")
        module = self._module(here) if path.endswith(".py") else None
        if module is None:
            plain = _WORD.fullmatch(name) and not path.endswith(_CODE)
            if not plain or re.search(_MEANT.replace(b"%b", name.encode()), data, re.MULTILINE):
                yield ""
        else:
            ways = _OF_ANOTHER_S
            if name == key[1]:
                ways = _ANY if self._sources.leads(here, name, key[0]) else _OF_ANOTHER - {How.TAKEN}
            yield from module.naming(name, ways, self._means(here, name, key[0]))

    def _means(self, here: str, name: str, there: str) -> Callable[[str], bool]:
        return lambda source: self._sources.means(here, source, name, there)

    @cached_property
    def _sources(self) -> Sources:
        return Sources(
            os.path.realpath(self._root), {here for here in self._files.values() if here.endswith(".py")}, self._module
        )

    def _module(self, path: str) -> Module | None:
        if path not in self._modules:
            self._modules[path] = module_of(path, self._installed)
        return self._modules[path]
