"""The files of a project as they import from each other: what a dotted name means, and what defines it.

Nothing is imported and nothing is run: files are read, and parsed where their text gives a reason to.  Where two files
could be meant, neither is.
"""

from __future__ import annotations

import ast
import os
from collections import OrderedDict
from collections.abc import Iterable

from devlint.check.project import content
from devlint.check.project.content import Fingerprint
from devlint.check.project.definitions import Definitions
from devlint.check.project.modules import Modules
from devlint.check.project.trace import Trace, recalled
from devlint.flow.catalog.libraries import BUILT_IN, Catalog
from devlint.flow.program.project import Definition, File
from devlint.flow.program.symbols import ClassInfo
from devlint.immutable import immutable
from devlint.source.text import decode
from devlint.source.tree import Source

_ROOM = 5_000_000
"""So many characters of other files are kept with their trees."""
_LARGEST = 600_000
"""Files of more bytes are not read for those who import from them."""
_DEEPEST = 8
"""So many files are gone through in search of who defines a name."""


class _Text:
    """The text of a file, empty where it cannot be read, or is too long to be read for others."""

    def __init__(self, filename: str) -> None:
        self.stamp = content.stamp_of(filename)
        data, self.seen = content.examine(filename)
        text = decode(data) if len(data) <= _LARGEST else ""
        self.text = text if isinstance(text, str) else ""
        self.definitions = Definitions(self.text)


@immutable(frozen=True, slots=True)
class _Names:
    """What a file binds at its top level, without its tree."""

    bound: frozenset[str]
    aliases: dict[str, str]
    stars: tuple[str, ...]


class ProjectFile(File):
    """A file that others import from, and what is consulted where its own classes inherit from others."""

    def __init__(self, project: Project, source: Source) -> None:
        super().__init__(source.filename, source.tree, source.text, project.catalog)
        self.source = source
        self._consulted = project.consulted_by(source.filename)
        self._project = project

    def class_behind(self, path: str) -> ClassInfo | None:
        """The class that the file means by a dotted name, where another file of the project defines it."""
        found = self._project.find(self.filename, path, self._consulted, True)
        return found.file.class_(found.name) if found is not None else None


class Project:
    """The files of one process, parsed when they are needed."""

    def __init__(self) -> None:
        self.modules = Modules()
        self.catalog = BUILT_IN
        self.given = ""
        self._texts: dict[str, _Text] = {}
        self._consulted: dict[str, Trace] = {}
        self._names: dict[str, _Names | None] = {}
        self._files: OrderedDict[str, ProjectFile] = OrderedDict()
        self._answers: dict[tuple[str, str, bool], tuple[tuple[str, str] | None, Trace]] = {}
        self._behind: dict[tuple[str, str, int], tuple[tuple[str, str] | None, Trace]] = {}
        self._kept = 0

    def find(self, importer: str, path: str, trace: Trace, base: bool) -> Definition | None:
        """What a dotted name means in a file; what is looked at for that goes into ``trace``.

        A function or class is found only if it may say where something is, or if it is asked for as a ``base``.
        """

        def find(looked: Trace) -> tuple[str, str] | None:
            found = self._resolve(importer, path, looked, 0)
            # a definition is parsed if its text gives a reason to; anything else is
            worth = found is None or base or not found[1] or self._text(found[0]).definitions.worth(found[1])
            return found if worth else None

        key = (*_from(os.path.dirname(importer), path), base)
        filename, name = recalled(self._answers, key, trace, find) or ("", "")
        if not name:
            return Definition(File(filename, _NO_TREE, ""), "") if filename else None
        file = self.file(filename)
        return Definition(file, name) if file is not None else None

    def file(self, filename: str) -> ProjectFile | None:
        """A file of the project with its tree, ``None`` where it cannot be read."""
        known = self._files.get(filename)
        if known is not None:
            self._files.move_to_end(filename)
            return known
        text = self._text(filename).text
        source = Source.parse(text, filename) if text else None
        if not isinstance(source, Source):
            return None
        file = self._files[filename] = ProjectFile(self, source)
        self._kept += len(text)
        if self._kept > _ROOM:
            # what of the others is in use may be known to whoever asks now
            self._drop([name for name, other in self._files.items() if not other.in_use and other is not file])
        return file

    def kept(self) -> Iterable[ProjectFile]:
        """The files that are parsed."""
        return self._files.values()

    def _drop(self, filenames: Iterable[str]) -> None:
        """Let go of files, one after the other, until the rest has room."""
        dropped = False
        for filename in filenames:
            if self._kept <= _ROOM:
                break
            file = self._files.pop(filename)
            self._kept -= len(file.text)
            dropped = dropped or file.in_use
            file.dissolve()
        if dropped:
            for file in self._files.values():
                file.forget()

    def tidy(self) -> None:
        """Make room between one file that is checked and the next, when nobody knows anything of the others."""
        if self._kept > _ROOM:
            self._drop(list(self._files))

    def tree_of(self, filename: str, text: str) -> ast.Module | None:
        """The tree of a file with this text, if it was parsed for somebody else."""
        known = self._files.get(filename)
        return known.tree if known is not None and known.text == text else None

    def consulted_by(self, filename: str) -> Trace:
        """What is looked at for the sake of a file's own classes; it outlives the file's tree, as they do."""
        return self._consulted.setdefault(filename, Trace())

    def consulted(self, filenames: set[str]) -> Trace:
        """What was looked at for files, and for those that their classes inherit from."""
        found, left = Trace(set(filenames)), list(filenames)
        while left:
            more = self._consulted.get(left.pop())
            if more is not None:
                left += more.read - found.read
                found.add(more)
        return found

    def seen(self, filename: str) -> Fingerprint:
        """What a file held when it was read."""
        return self._text(filename).seen

    def refresh(self, filenames: set[str]) -> bool:
        """Forget those of the files that have changed since they were read; whether there are any."""
        known = ((name, self._texts[name].stamp) for name in filenames if name in self._texts)
        stale = [name for name, stamp in known if content.stamp_of(name) != stamp]
        for name in stale:
            gone = self._files.get(name)
            self._kept -= len(gone.text) if gone is not None else 0
            for kept in (self._texts, self._names, self._files):
                kept.pop(name, None)
        if stale:
            self._forget()
        return bool(stale)

    def use(self, catalog: Catalog) -> None:
        """The next file that is checked is read with this knowledge of libraries."""
        if catalog is not self.catalog:
            self.catalog = catalog
            self._files.clear()
            self._kept = 0

    def locate(self, importer: str, path: str, trace: Trace) -> tuple[str, str] | None:
        """The file that defines what a dotted name means, and its name there: `function`, `Class`, `Class.method`."""
        found = self._resolve(importer, path, trace, 0)
        if found is None and "." in path:
            owner, _, name = path.rpartition(".")
            found = self._resolve(importer, owner, trace, 0)
            found = (found[0], f"{found[1]}.{name}") if found is not None and found[1] else None
        return found if found is not None and found[1] else None

    def look_from(self, given: str) -> None:
        """The next file that is checked was found under the directory ``given``."""
        if given != self.given:
            self.given = given
            self._forget()

    def _forget(self) -> None:
        self._answers.clear()
        self._behind.clear()

    def _text(self, filename: str) -> _Text:
        known = self._texts.get(filename)
        if known is None:
            known = self._texts[filename] = _Text(filename)
        return known

    def _names_of(self, filename: str) -> _Names | None:
        """What a file binds, ``None`` where it cannot be parsed."""
        if filename not in self._names:
            file = self.file(filename)
            names = None
            if file is not None:
                outline = file.outline
                aliases = {name: alias for name in outline.bound if (alias := outline.alias(name)) is not None}
                names = _Names(frozenset(outline.bound), aliases, tuple(outline.stars))
            self._names[filename] = names
        return self._names[filename]

    def _resolve(self, importer: str, path: str, trace: Trace, depth: int) -> tuple[str, str] | None:
        """The file and the name that a dotted name leads to; no name where it means the file."""
        found = self.modules.find(os.path.dirname(importer), self.given, path, trace)
        if found is None or depth > _DEEPEST:
            return None
        filename, rest = found
        trace.read.add(filename)
        if not rest:
            return self._hidden(filename, trace, depth) or (filename, "")
        for part in rest[:-1]:
            module = self._attribute(filename, part, trace, depth)
            if module is None or module[1]:
                # only a module has parts that can be told without running anything
                return None
            filename = module[0]
            trace.read.add(filename)
        return self._attribute(filename, rest[-1], trace, depth)

    def _hidden(self, filename: str, trace: Trace, depth: int) -> tuple[str, str] | None:
        """What a package gives the name of one of its modules: `from .move import move`."""
        package = self.modules.package_of(filename, trace)
        name = os.path.basename(filename).removesuffix(".py")
        if package is None or depth > _DEEPEST:
            return None
        trace.read.add(package)
        if f".{name} import" not in self._text(package).text:
            return None
        names = self._names_of(package)
        alias = names.aliases.get(name) if names is not None else None
        if alias is None or alias == f".{name}":
            return None
        found = self._resolve(package, alias, trace, depth + 1)
        return found if found != (filename, "") else None

    def _attribute(self, filename: str, name: str, trace: Trace, depth: int) -> tuple[str, str] | None:
        """Who defines a name of a file's top level: the file itself, or whom it imports it from."""
        definitions = self._text(filename).definitions
        if not definitions.may_bind(name):
            return None
        if definitions.defines(name):
            return filename, name
        key = (filename, name, depth)
        return recalled(self._behind, key, trace, lambda looked: self._bound(filename, name, looked, depth))

    def _bound(self, filename: str, name: str, trace: Trace, depth: int) -> tuple[str, str] | None:
        """Who defines a name that a file defines nowhere, but may import, or bind in another way."""
        names = self._names_of(filename)
        if names is None:
            return None
        if name in names.aliases:
            # what comes from outside the project is known by that name
            return self._resolve(filename, names.aliases[name], trace, depth + 1) or (filename, name)
        if name in names.bound:
            return filename, name
        for star in reversed(names.stars if not name.startswith("_") else ()):
            module = self._resolve(filename, star, trace, depth + 1)
            if module is None or module[1] or depth > _DEEPEST:
                # what it may bring along is not known
                return None
            found = self._attribute(module[0], name, trace, depth + 1)
            if found is not None:
                return found
        return None


_NO_TREE = ast.Module([], [])


def _from(folder: str, path: str) -> tuple[str, str]:
    """A dotted name with one dot in front at most, as a file in another folder would say it."""
    plain = path.lstrip(".")
    for _ in range(len(path) - len(plain) - 1):
        folder = os.path.dirname(folder)
    return folder, f".{plain}" if path != plain else path
