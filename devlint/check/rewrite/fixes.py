"""Fixes in passes: as many at once as keep out of each other's way, then what the analysis says of the result."""

from __future__ import annotations

import enum
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from devlint.check.analysis import Analyzer
from devlint.check.filters.filters import NO_FILTERS, Filters
from devlint.check.outcome import AnalysisError, Outcome
from devlint.check.project.content import Content
from devlint.check.rewrite.diff import unified
from devlint.check.task import Task
from devlint.finding import Applicability, Finding
from devlint.source.document import Change, Changes, Document, UnfixableError
from devlint.source.output import write
from devlint.source.text import ParseFailure
from devlint.source.tree import DANGEROUS, Source

MAX_PASSES = 32
"""Fixes that are still not at their end by then chase each other for ever."""


@dataclass(frozen=True, slots=True)
class Mended:
    """A file after its fixes: the bytes, what is still found in them, how many findings were fixed.

    ``failure`` says why nothing was changed although something might have been, in one line.
    """

    data: bytes
    findings: tuple[Finding, ...]
    fixed: int = 0
    failure: str | None = None


class Destination(enum.Enum):
    """Where the fixed content of a file goes."""

    FILE = enum.auto()
    DIFF = enum.auto()
    """Only the outcome says what would be written."""
    OUTCOME = enum.auto()
    """It is handed on with the outcome, for what is no file."""


@dataclass(frozen=True, slots=True)
class Fix(Task):
    """Apply the fixes of the findings that the filters let pass."""

    unsafe: bool = False
    destination: Destination = Destination.FILE
    filters: Filters = NO_FILTERS

    def work(self, content: Content, analyzer: Analyzer) -> Outcome:
        """What remains to be found, and what became of the fixed content."""
        before, path = content.data, analyzer.filename
        after = mend(before, analyzer, self.unsafe, self.filters)
        outcome = Outcome(path, after.findings, unfixed=after.failure, fixed=after.fixed)
        if self.destination is Destination.OUTCOME:
            return replace(outcome, data=after.data)
        if after.data == before:
            return outcome
        if self.destination is Destination.DIFF:
            return replace(outcome, diff=unified(path, before, after.data))
        try:
            write(path, after.data, before)
        except OSError as error:
            found = tuple(analyzer.findings(before))
            return Outcome(path, found, unfixed=f"nothing was fixed: {error.strerror or error}")
        return outcome


def mend(data: bytes, analyzer: Analyzer, unsafe: bool = False, filters: Filters = NO_FILTERS) -> Mended:
    """Apply the fixes of what is reported until none is left. A failure of devlint itself is an AnalysisError."""
    opened = analyzer.opened(data)
    after = mend_code(opened.code, analyzer, unsafe, filters)
    try:
        found = tuple(opened.located(after.findings, after.data))
        return replace(after, data=data if after.data == opened.code else opened.file(after.data), findings=found)
    except UnfixableError as error:
        return Mended(data, tuple(analyzer.findings(data)), failure=f"nothing was fixed: {error}")


def mend_code(code: bytes, analyzer: Analyzer, unsafe: bool = False, filters: Filters = NO_FILTERS) -> Mended:
    """Apply the fixes of what is reported in Python code, whatever the file is called that it belongs to."""
    before = Mended(code, tuple(analyzer.findings_in_code(code)))
    try:
        return _settled(before, analyzer, unsafe, filters)
    except UnfixableError as error:
        return replace(before, failure=f"nothing was fixed: {error}")
    except AnalysisError as error:
        return replace(before, failure=f"nothing was fixed: devlint failed on the fixed code: {error}")


def _settled(now: Mended, analyzer: Analyzer, unsafe: bool, filters: Filters) -> Mended:
    for _ in range(MAX_PASSES):
        fixable = [finding for finding in filters.new(now.findings) if applies(finding, unsafe)]
        if not fixable:
            return now
        document = Document.read(now.data)
        chosen = _chosen(document, fixable)
        if not chosen:
            return now
        fitting = _fitting(_Judge(document), [], chosen)
        if not fitting:
            raise UnfixableError(f"Python could not read the code after {_codes(chosen)}; please report it")
        data = document.changed(_changes(fitting)).data()
        now = Mended(data, tuple(analyzer.findings_in_code(data)), now.fixed + len(fitting))
    raise UnfixableError(f"the fixes of {_codes(chosen)} come to no end; please report it")


def applies(finding: Finding, unsafe: bool) -> bool:
    """Whether a finding has a fix that may be applied."""
    return finding.fix is not None and (unsafe or finding.fix.applicability is Applicability.SAFE)


_Chosen = tuple[Finding, tuple[Change, ...]]


def _chosen(document: Document, findings: Sequence[Finding]) -> list[_Chosen]:
    """Fixes that can be applied together; the others wait for the next pass."""
    taken, chosen = Changes(), []
    for finding in findings:
        assert finding.fix is not None
        changes = tuple(
            sorted({document.change(edit) for edit in finding.fix.edits}, key=lambda change: (change.start, change.end))
        )
        if any(one.end > other.start or one.end == other.end for one, other in pairwise(changes)):
            raise UnfixableError(f"the edits of a fix of {finding.code} overlap; please report it")
        if any(document.text[change.start : change.end] != change.content for change in changes) and taken.take(
            changes
        ):
            chosen.append((finding, changes))
    return chosen


class _Judge:
    """Whether changes of a document leave Python code."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._compiled = _compiles(document.text)

    def accepts(self, chosen: Sequence[_Chosen]) -> bool:
        """Whether the result parses and, if the document compiles, compiles."""
        text = self._document.changed(_changes(chosen)).text
        data = self._document.changed(_changes(chosen)).data()
        source = Source.parse(data)
        # an edit in the first lines might have changed what encoding they declare
        return not isinstance(source, ParseFailure) and source.text == text and (not self._compiled or _compiles(text))


def _fitting(judge: _Judge, before: list[_Chosen], more: list[_Chosen]) -> list[_Chosen]:
    """As many fixes as leave code together: two that are right may be too much, as for a block that they empty."""
    if judge.accepts([*before, *more]):
        return [*before, *more]
    if len(more) == 1:
        return before
    half = len(more) // 2
    return _fitting(judge, _fitting(judge, before, more[:half]), more[half:])


def _changes(chosen: Sequence[_Chosen]) -> set[Change]:
    return {change for _, changes in chosen for change in changes}


def _codes(chosen: Sequence[_Chosen]) -> str:
    return ", ".join(sorted({finding.code for finding, _ in chosen}))


def _compiles(text: str) -> bool:
    """Whether Python would run it: that an argument is given twice, for instance, only the compiler notices."""
    import warnings

    if sys.version_info < (3, 11) and len(text) > DANGEROUS:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<fixed>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
