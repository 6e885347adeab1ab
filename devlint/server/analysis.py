"""What devlint says of a document that is open: findings, fixed texts, places of names. All of this takes time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from devlint.check.analysis import Analyzer
from devlint.check.discovery.exclusion import force_excluded
from devlint.check.discovery.target import Target
from devlint.check.notebook import OpenedNotebook
from devlint.check.opened import Opened
from devlint.check.outcome import FAILED, AnalysisError
from devlint.check.project import models
from devlint.check.project.content import Content, overlay
from devlint.check.project.view import ProjectView, view_of
from devlint.check.rewrite.fixes import ApplyFixes
from devlint.check.rewrite.suppressions import suppressed as with_comments
from devlint.check.where.lookup import NoSuchNameError, where, where_in_cell
from devlint.check.witness import Witness
from devlint.config.load import Resolver
from devlint.config.schema import Config, ConfigError
from devlint.finding import Answer, Finding
from devlint.rules.selection import validate
from devlint.server.documents import Snapshot
from devlint.sites.observed import Observations
from devlint.source.document import Document, UnfixableError
from devlint.source.notebook.script import Script
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
        script = Script.of((part.cell, part.text) for part in snapshot.parts)
        return OpenedNotebook.of(script, snapshot.filename, config)
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

    def code(_: Analyzer) -> bytes | None:
        document = Document.read(analysis.opened.code)
        return document.changed(map(document.change, finding.fix.edits)).data() if finding.fix is not None else None

    return _rewritten(analysis, code)


def all_fixed(analysis: Analysis) -> dict[int, str] | None:
    """The texts of the parts after all safe fixes, ``None`` if there is none."""

    def code(analyzer: Analyzer) -> bytes | None:
        after, _, count = ApplyFixes().code(analysis.opened, analysis.found, analyzer)
        return after if count else None

    return _rewritten(analysis, code)


def suppressed(analysis: Analysis, finding: Finding) -> dict[int, str] | None:
    """The texts of the parts with a comment that silences one finding in the code, ``None`` if there is no place."""
    code, found = analysis.opened.code, analysis.found
    return _rewritten(analysis, lambda analyzer: with_comments(code, analyzer, found, [finding], "")[0])


def _observations(snapshot: Snapshot, config: Config) -> Observations | None:
    """What a run has seen of a document as it is now, if the configuration names its record, and that is there."""
    try:
        changed = os.stat(config.evidence).st_mtime_ns if config.evidence is not None else None
    except OSError:
        return None
    if config.evidence is None or changed is None:
        return None
    return _run(config.evidence, changed).observations(snapshot.filename, _encoded(snapshot.parts[0].text))


@lru_cache(maxsize=4)
def _run(record: str, changed: int) -> Witness:
    """The run whose record a file has held since it was last changed."""
    from devlint.auditor.judgement.evidence import Run

    return Run.read(record)


def _rewritten(analysis: Analysis, code: Callable[[Analyzer], bytes | None]) -> dict[int, str] | None:
    """The texts of the parts with other code, by cell; ``None`` where there is none."""
    try:
        after = code(_analyzer(analysis.snapshot, analysis.config))
        if after is None:
            return None
        if isinstance(analysis.opened, OpenedNotebook):
            return analysis.opened.script.with_text(after.decode("utf-8")).texts()
        text = Document.read(after).text
    except (AnalysisError, UnfixableError):
        return None
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
        opened = _opened(snapshot, config)
        if isinstance(opened, OpenedNotebook):
            return where_in_cell(opened.script, part.text, snapshot.filename, (part.cell, row), "", column, project)
        source = Source.parse(part.text, snapshot.filename)
        if isinstance(source, ParseFailure):
            return ()
        return where(source, row, "", column, project, _observations(snapshot, config))
    except (ConfigError, NoSuchNameError):
        return ()
