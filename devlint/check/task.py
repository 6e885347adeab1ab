"""What is done with each file of a run: it is read and analysed, and perhaps rewritten."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from devlint.check.analysis import Analyzer
from devlint.check.discovery.target import Target
from devlint.check.outcome import FAILED, AnalysisError, Outcome
from devlint.check.project.content import LARGEST, TOO_LARGE, Content, read
from devlint.check.project.view import view_of


class Task(ABC):
    """What is done with a file, in whatever process; it can be pickled."""

    def run(self, target: Target) -> Outcome:
        """Read a file and do it; whatever goes wrong is part of the outcome."""
        try:
            content = read(target.path)
        except OSError as error:
            return Outcome(target.path, error=error.strerror or str(error))
        if len(content.data) > LARGEST:
            return Outcome(target.path, error=TOO_LARGE)
        if target.path.endswith(".ipynb"):
            from devlint.check.notebook import foreign

            if language := foreign(content.data):
                # whoever names it should know; in a directory it is one of the files that are not devlint's business
                reason = None if target.given else f"its cells are in {language}, not in Python"
                return Outcome(target.path, error=reason)
        return self.apply(content, Analyzer(target.path, target.config, view_of(target)))

    def apply(self, content: Content, analyzer: Analyzer) -> Outcome:
        """Do it with what was read."""
        try:
            return self.work(content, analyzer)
        except AnalysisError as error:
            return Outcome(analyzer.filename, error=f"{FAILED}: {error}")

    @abstractmethod
    def work(self, content: Content, analyzer: Analyzer) -> Outcome:
        """What comes of it, unless devlint fails."""


@dataclass(frozen=True, slots=True)
class Check(Task):
    """Find what is wrong; for a run that remembers it, also what the findings depend on."""

    remembered: bool = False

    def work(self, content: Content, analyzer: Analyzer) -> Outcome:
        """The findings, in order."""
        findings = tuple(analyzer.findings(content.data))
        project = analyzer.project if self.remembered else None
        return Outcome(
            analyzer.filename, findings, dependencies=None if project is None else project.dependencies(content)
        )
