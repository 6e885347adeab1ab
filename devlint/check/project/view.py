"""The view of the project that a file has: what it imports from others, and what its findings depend on."""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from functools import cached_property

from devlint.check.discovery.target import Target
from devlint.check.project import models
from devlint.check.project.content import Content, Fingerprint
from devlint.check.project.project import Project, ProjectFile
from devlint.check.project.trace import Dependencies, Trace
from devlint.config.default_device import Importers, is_imported
from devlint.flow.catalog.libraries import BUILT_IN, Catalog
from devlint.flow.program.project import Definition
from devlint.flow.syntax import nodes
from devlint.source.tree import Source


class ProjectView:
    """The project as one file that is checked sees it, with a trace of what was looked at for its sake."""

    def __init__(
        self, project: Project, filename: str, given: str, catalog: Catalog = BUILT_IN, scripts: Importers = ()
    ) -> None:
        self.catalog = catalog
        self.default_is_set = is_imported(os.path.abspath(filename), scripts)
        self.filename = os.path.abspath(filename)
        self._relative = not os.path.isabs(filename)
        self._project = project
        self._given = given
        self._trace = Trace()
        self._seen: dict[str, Fingerprint] = {}
        self._visited: dict[str, ProjectFile] = {}
        self._shown: dict[str, Source] = {}

    def tree(self, text: str) -> ast.Module | None:
        """The syntax tree of the file with this text, if it was parsed for others, which import from it."""
        return self._project.tree_of(self.filename, text)

    def knows(self, importer: str, root: str) -> bool:
        """Whether a name that begins with ``root`` can mean something of the project in the file ``importer``."""
        return not root or self._project.modules.has(os.path.dirname(importer), self._given, root, self._trace)

    def find(self, importer: str, path: str, base: bool = False) -> Definition | None:
        """What a dotted name, which begins with dots where it is relative, means in the file ``importer``."""
        self._project.look_from(self._given)
        found = self._project.find(importer, path, self._trace, base)
        new = self._trace.read - self._seen.keys()
        if new and self._project.refresh(new):
            found = self._project.find(importer, path, self._trace, base)
        self._seen |= {name: self._project.seen(name) for name in new}
        if found is not None and isinstance(found.file, ProjectFile):
            self._visited[found.file.filename] = found.file
        return found

    def stated(self, filename: str) -> dict[str, str]:
        """The rows that users have written for what a file defines: `helper`, `Class.method`, each with its key."""
        return self._stated.get(filename, {})

    def stated_as(self, importer: str, path: str) -> str:
        """The row that users have written for what a dotted name means in the file ``importer``, empty if none."""
        if not self._stated or not self.knows(importer, path.partition(".")[0]):
            return ""
        self._project.look_from(self._given)
        filename, name = self._project.locate(importer, path, self._trace) or ("", "")
        return self._stated.get(filename, {}).get(name, "")

    @cached_property
    def _stated(self) -> dict[str, dict[str, str]]:
        """The rows that users have written for what the project defines, by its files."""
        found: dict[str, dict[str, str]] = defaultdict(dict)
        self._project.look_from(self._given)
        for key in (key for layer in self.catalog.stated for key in (*layer.keys, *sorted(layer.owners))):
            known = "*" not in key and self.knows(self.filename, key.partition(".")[0])
            place = self._project.locate(self.filename, key, self._trace) if known else None
            if place is not None:
                found[place[0]].setdefault(place[1], key)
        return found

    def home(self, source: Source, node: ast.AST) -> Source:
        """The file that a node belongs to: ``source``, or one that was looked at for it."""
        if not self._visited or nodes.holds(source.tree, node):
            return source
        # the bases of what was looked at are found without being looked for
        files = (*self._visited.values(), *self._project.kept())
        found = next((file for file in files if nodes.holds(file.tree, node)), None)
        if found is None:
            return source
        shown = self._shown.get(found.filename)
        if shown is None:
            # under the name that the user would give it
            name = os.path.relpath(found.filename) if self._relative else found.filename
            shown = self._shown[found.filename] = Source(name, found.source.text, found.source.tree)
        return shown

    def dependencies(self, content: Content) -> Dependencies:
        """What was looked at so far for the file, whose content this was, and for the classes of those it imports."""
        looked = self._project.consulted(self._trace.read)
        files = {name: self._seen.get(name) or self._project.seen(name) for name in looked.read - {self.filename}}
        return Dependencies({self.filename: content.fingerprint(), **files}, {**looked.names, **self._trace.names})


_process = Project()


def begin() -> None:
    """A run begins: what was known of folders and files is forgotten."""
    global _process
    _process = Project()


def view_of(target: Target) -> ProjectView:
    """The project around a file that is checked."""
    _process.tidy()
    catalog = models.catalog(target.config)
    _process.use(catalog)
    return ProjectView(_process, target.path, target.given, catalog, target.config.default_device)
