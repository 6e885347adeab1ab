"""What came of one file and of a run: findings, or the line that says why there are none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from devlint.config.schema import Config
from devlint.finding import Failure, Finding, told
from devlint.immutable import immutable

if TYPE_CHECKING:
    from devlint.check.project.trace import Dependencies

FAILED = "devlint failed on this file, please report it"


class AnalysisError(Exception):
    """devlint itself failed on a file; the text says how, in one line."""


@immutable(frozen=True, slots=True)
class Outcome:
    """What came of one file: its findings, those that nobody asked for among them, or the line that says why devlint
    could not do its work.

    Of a run that fixes or adds suppressions these are what remains, ``gone`` counts the others; ``unfixed`` is the line
    that says why that was not done, ``data`` the new content until it was written or told as a ``diff``.
    ``dependencies`` are what the findings hang on, for a run that remembers them.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    error: str | None = None
    unfixed: str | None = None
    gone: int = 0
    diff: bytes = b""
    data: bytes | None = None
    dependencies: Dependencies | None = None


@dataclass(slots=True)
class Result:
    """What came of a run: findings in order, a line for everything that could not be done, the files that were read.

    ``errors`` are about paths that could not be checked, ``unfixed`` about files that were, but could not be rewritten;
    ``gone`` counts, file by file, the findings that were fixed or silenced, and ``diffs`` hold by path what would be
    written. ``checked`` are the files of which there was no error, with their configurations. ``withheld`` is
    what is told to those alone who select its rule.
    """

    findings: list[Finding] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    files: int = 0
    unfixed: list[str] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    diffs: dict[str, bytes] = field(default_factory=dict)
    checked: dict[str, Config] = field(default_factory=dict)
    withheld: list[Finding] = field(default_factory=list)

    def add(self, outcome: Outcome, config: Config) -> None:
        """Take in what came of a file with this configuration."""
        if outcome.error is not None:
            self.errors.append(Failure(outcome.path, outcome.error))
            return
        self.files += 1
        self.checked[outcome.path] = config
        self.findings.extend(told(outcome.findings))
        self.withheld.extend(finding for finding in outcome.findings if finding.asked)
        if outcome.gone:
            self.gone.append(outcome.gone)
        if outcome.diff:
            self.diffs[outcome.path] = outcome.diff
        if outcome.unfixed is not None:
            self.unfixed.append(Failure(outcome.path, outcome.unfixed))

    def sort(self) -> None:
        """Bring into order what came as the files were done."""
        self.findings.sort(key=lambda finding: finding.sort_key)
        self.diffs = dict(sorted(self.diffs.items()))
