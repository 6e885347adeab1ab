"""What devlint says of a document that is open: findings, fixed texts, places of names. All of this takes time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from devlint.check.analysis import Analyzer
from devlint.check.discovery.exclusion import force_excluded
from devlint.check.discovery.target import Target
from devlint.check.notebook import OpenedNotebook, open_cells
from devlint.check.opened import Opened
from devlint.check.outcome import FAILED, AnalysisError
from devlint.check.project import models
from devlint.check.project.content import Content, overlay
from devlint.check.project.view import ProjectView, view_of
from devlint.check.rewrite.fixes import fixed as with_fixes
from devlint.check.rewrite.suppressions import suppressed as with_comments
from devlint.check.where.lookup import NoSuchNameError, where, where_in_cell
from devlint.config.load import Resolver
from devlint.config.schema import Config, ConfigError
from devlint.finding import Answer, Finding
from devlint.rules.selection import validate
from devlint.server.documents import Snapshot
from devlint.source.document import Document, UnfixableError
from devlint.source.text import ParseFailure, encoding_of
from devlint.source.tree import Source


@dataclass(frozen=True, slots=True)
class Analysis:
    """A document with what was found in it.

    ``found`` are the findings in its code, ``placed`` the same at their places in its parts, ``broken`` are those that
    only a part has. ``problem`` is what is wrong with the configuration, or with devlint, in one line. ``looked_at``
    are the files, whether there or not, on which all this hangs.
    """

    snapshot: Snapshot
    config: Config
    opened: Opened
    found: tuple[Finding, ...] = ()
    placed: tuple[Finding, ...] = ()
    broken: tuple[Finding, ...] = ()
    problem: str = ""
    looked_at: frozenset[str] = frozenset()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that was found."""
        return (*self.broken, *self.placed)


def analyze(snapshot: Snapshot) -> Analysis:
    """Check a document as it is in the editor, with the configuration of its folder."""
    config, problem = _config(snapshot)
    opened = _opened(snapshot, config)
    empty = Analysis(snapshot, config, opened, problem=problem)
    if os.path.isabs(snapshot.filename) and force_excluded(snapshot.filename, config):
        return empty
    analyzer = _analyzer(snapshot, config)
    try:
        found = analyzer.findings_in_code(opened.code if snapshot.notebook else snapshot.parts[0].text)
    except AnalysisError as error:
        return replace(empty, problem=f"{snapshot.filename}: {FAILED}: {error}")
    looked_at = set(models.files(config))
    if analyzer.project is not None:
        files, names = analyzer.project.dependencies(Content(opened.code))
        looked_at |= {*files, *(os.path.join(folder, name) for folder, name in names)}
    return replace(
        empty,
        found=tuple(found),
        placed=tuple(opened.placed(found)),
        broken=opened.broken if isinstance(opened, OpenedNotebook) else (),
        looked_at=frozenset(looked_at),
    )


def _config(snapshot: Snapshot) -> tuple[Config, str]:
    """The configuration of a document; what is wrong with it, and then the one that everybody starts with."""
    folder = snapshot.folder or os.getcwd()
    directory = os.path.dirname(snapshot.filename) if os.path.isabs(snapshot.filename) else folder
    try:
        config = Resolver(validate).at(directory)
    except ConfigError as error:
        return Config(root=folder), str(error)
    try:
        overlay({path: _encoded(text) for path, text in snapshot.unsaved.items()})
        models.look_again()
        models.catalog(config)
        return config, ""
    except ConfigError as error:
        return replace(config, models=()), str(error)


def _opened(snapshot: Snapshot, config: Config) -> Opened:
    if snapshot.notebook:
        return open_cells([(part.cell, part.text) for part in snapshot.parts], snapshot.filename, config)
    return Opened(_encoded(snapshot.parts[0].text))


def _encoded(text: str) -> bytes:
    """A text as the bytes of a file, in the encoding that it asks for."""
    data = text.encode("utf-8", "surrogatepass")
    encoding = encoding_of(data)
    if isinstance(encoding, str) and encoding != "utf-8":
        try:
            return text.encode(encoding)
        except (LookupError, UnicodeError):
            pass
    return data


def _analyzer(snapshot: Snapshot, config: Config) -> Analyzer:
    return Analyzer(snapshot.filename, config, _project(snapshot, config))


def _project(snapshot: Snapshot, config: Config) -> ProjectView | None:
    if not os.path.isabs(snapshot.filename):
        return None
    return view_of(Target(snapshot.filename, len(snapshot.parts), config, snapshot.folder))


def fixed(analysis: Analysis, finding: Finding) -> dict[int, str] | None:
    """The texts of the parts after the fix of one finding in the code, ``None`` if it has none that can be applied."""
    if finding.fix is None:
        return None
    try:
        document = Document.read(analysis.opened.code)
        return _texts(analysis, document.changed(map(document.change, finding.fix.edits)).data())
    except UnfixableError:
        return None


def all_fixed(analysis: Analysis) -> dict[int, str] | None:
    """The texts of the parts after all safe fixes, ``None`` if there is none."""
    try:
        analyzer = _analyzer(analysis.snapshot, analysis.config)
        code, _, count = with_fixes(analysis.opened.code, analysis.found, analyzer)
        return _texts(analysis, code) if count else None
    except (AnalysisError, UnfixableError):
        return None


def suppressed(analysis: Analysis, finding: Finding) -> dict[int, str] | None:
    """The texts of the parts with a comment that silences one finding in the code, ``None`` if there is no place."""
    analyzer = _analyzer(analysis.snapshot, analysis.config)
    try:
        after, _ = with_comments(analysis.opened.code, analyzer, analysis.found, [finding], "")
        return _texts(analysis, after)
    except (AnalysisError, UnfixableError):
        return None


def _texts(analysis: Analysis, code: bytes) -> dict[int, str]:
    """The texts of the parts with other code, by cell."""
    if isinstance(analysis.opened, OpenedNotebook):
        return analysis.opened.script.with_text(code.decode("utf-8")).texts()
    text = Document.read(code).text
    # a byte order mark is none of the text's characters, unless the editor says so
    return {0: f"\ufeff{text}" if analysis.snapshot.parts[0].text.startswith("\ufeff") else text}


def told(snapshot: Snapshot, uri: str, row: int, column: int) -> Sequence[Answer]:
    """What is known of the name at a place, nothing where there is none or where the code cannot be read."""
    part = snapshot.at(uri)
    config, _ = _config(snapshot)
    project = _project(snapshot, config)
    if part is None:
        return ()
    try:
        if snapshot.notebook:
            opened = open_cells([(one.cell, one.text) for one in snapshot.parts], snapshot.filename, config)
            return where_in_cell(opened.script, part.text, snapshot.filename, (part.cell, row), "", column, project)
        source = Source.parse(part.text, snapshot.filename)
        return () if isinstance(source, ParseFailure) else where(source, row, "", column, project)
    except (ConfigError, NoSuchNameError):
        return ()
