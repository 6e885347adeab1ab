"""The way of a file's bytes: read, opened, analysed, perhaps rewritten, and stored; what comes of it is an outcome."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from devlint.check.analysis import Analyzer
from devlint.check.discovery.target import Target
from devlint.check.opened import NOTEBOOK, Opened
from devlint.check.outcome import FAILED, AnalysisError, Outcome
from devlint.check.project.content import LARGEST, TOO_LARGE, Content, read
from devlint.check.project.view import view_of
from devlint.finding import Finding
from devlint.immutable import immutable
from devlint.source.document import UnfixableError


class Rewriter(ABC):
    """Writes other code in the place of what was found in it; it can be pickled."""

    undone: ClassVar[str]
    """What is said where that cannot be done, before the reason."""

    def rewrite(self, data: bytes, analyzer: Analyzer) -> Outcome:
        """The new content of a file, and what remains to be found in it; a failure of devlint is an AnalysisError."""
        opened = analyzer.opened(data)
        found = analyzer.findings_in_code(opened.code)
        try:
            code, left, count = self.code(opened, found, analyzer)
            shown = tuple(opened.located(left, code))
            after = data if code == opened.code else opened.file(code)
            return Outcome(analyzer.filename, shown, data=after, gone=count)
        except (AnalysisError, UnfixableError) as error:
            shown = tuple(opened.located(found))
            return Outcome(analyzer.filename, shown, data=data, unfixed=f"{self.undone}: {error}")

    @abstractmethod
    def code(
        self, opened: Opened, found: Sequence[Finding], analyzer: Analyzer
    ) -> tuple[bytes, Sequence[Finding], int]:
        """Other code, what is found in it, and how many findings are gone; an UnfixableError says why there is none."""


class Destination(enum.Enum):
    """Where the new content of a file goes."""

    FILE = enum.auto()
    DIFF = enum.auto()
    """Only the outcome says what would be written."""
    OUTCOME = enum.auto()
    """It is handed on with the outcome, for what is no file."""


@immutable(frozen=True, slots=True)
class Task:
    """What is done with each file of a run, in whatever process: it is checked, or rewritten.

    Of a run that remembers what it finds, the outcomes tell what the findings depend on.
    """

    rewriter: Rewriter | None = None
    destination: Destination = Destination.FILE
    remembered: bool = False

    def run(self, target: Target) -> Outcome:
        """Read a file and do it; whatever goes wrong is part of the outcome."""
        try:
            content = read(target.path)
        except OSError as error:
            return Outcome(target.path, error=error.strerror or str(error))
        if len(content.data) > LARGEST:
            return Outcome(target.path, error=TOO_LARGE)
        if target.path.endswith(NOTEBOOK):
            from devlint.check.notebook import foreign

            if language := foreign(content.data):
                # whoever names it should know; in a directory it is one of the files that are not devlint's business
                reason = None if target.given else f"its cells are in {language}, not in Python"
                return Outcome(target.path, error=reason)
        return self.apply(content, Analyzer(target.path, target.config, view_of(target), target.observations))

    def apply(self, content: Content, analyzer: Analyzer) -> Outcome:
        """Do it with what was read."""
        try:
            if self.rewriter is not None:
                return self._stored(self.rewriter, self.rewriter.rewrite(content.data, analyzer), content, analyzer)
            findings = tuple(analyzer.considered(content.data))
            project = analyzer.project if self.remembered else None
            dependencies = None if project is None else project.dependencies(content)
            return Outcome(analyzer.filename, findings, dependencies=dependencies)
        except AnalysisError as error:
            return Outcome(analyzer.filename, error=f"{FAILED}: {error}")

    def _stored(self, rewriter: Rewriter, after: Outcome, content: Content, analyzer: Analyzer) -> Outcome:
        """Bring the new content where it belongs."""
        if after.data is None or self.destination is Destination.OUTCOME:
            return after
        outcome = replace(after, data=None)
        if after.data == content.data:
            return outcome
        if self.destination is Destination.DIFF:
            from devlint.source.diff import unified

            return replace(outcome, diff=unified(after.path, content.data, after.data))
        from devlint.source.output import write

        try:
            write(after.path, after.data, content.data)
        except OSError as error:
            found = tuple(analyzer.findings(content.data))
            return Outcome(after.path, found, unfixed=f"{rewriter.undone}: {error.strerror or error}")
        return outcome
