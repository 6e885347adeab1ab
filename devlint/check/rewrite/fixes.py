"""Fixes in passes: as many at once as keep out of each other's way, then what the analysis says of the result."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from devlint.check.analysis import Analyzer
from devlint.check.filters import NO_FILTERS, Filters
from devlint.check.opened import Opened
from devlint.check.outcome import AnalysisError
from devlint.check.task import Rewriter
from devlint.finding import Applicability, Finding
from devlint.source.document import Change, Changes, Document, UnfixableError
from devlint.source.text import ParseFailure
from devlint.source.tree import DANGEROUS, Source

MAX_PASSES = 32
"""Fixes that are still not at their end by then chase each other for ever."""


@dataclass(frozen=True, slots=True)
class ApplyFixes(Rewriter):
    """Apply the fixes of the findings that the filters let pass, until none is left."""

    undone = "nothing was fixed"
    unsafe: bool = False
    filters: Filters = NO_FILTERS

    def code(
        self, opened: Opened, found: Sequence[Finding], analyzer: Analyzer
    ) -> tuple[bytes, Sequence[Finding], int]:
        """The code after the fixes of what is reported, what is still found in it, and how many were applied."""
        code, count = opened.code, 0
        for _ in range(MAX_PASSES):
            fixable = [finding for finding in self.filters.new(found) if self.applies(finding)]
            if not fixable:
                return code, found, count
            document = Document.read(code)
            chosen = _chosen(document, fixable)
            if not chosen:
                return code, found, count
            fitting = _fitting(document, [], chosen)
            if not fitting:
                raise UnfixableError(f"Python could not read the code after {_codes(chosen)}; please report it")
            code, count = document.changed(_changes(fitting)).data(), count + len(fitting)
            try:
                found = analyzer.findings_in_code(code)
            except AnalysisError as error:
                raise UnfixableError(f"devlint failed on the fixed code: {error}") from error
        raise UnfixableError(f"the fixes of {_codes(chosen)} come to no end; please report it")

    def applies(self, finding: Finding) -> bool:
        """Whether a finding has a fix that may be applied."""
        return finding.fix is not None and (self.unsafe or finding.fix.applicability is Applicability.SAFE)


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


def _fitting(document: Document, before: list[_Chosen], more: list[_Chosen]) -> list[_Chosen]:
    """As many fixes as leave code together: two that are right may be too much, as for a block that they empty."""
    changed = document.changed(_changes([*before, *more]))
    source = Source.parse(changed.data())
    # an edit in the first lines might have changed what encoding they declare
    same = not isinstance(source, ParseFailure) and source.text == changed.text
    if same and (_compiles(changed.text) or not _compiles(document.text)):
        return [*before, *more]
    if len(more) == 1:
        return before
    half = len(more) // 2
    return _fitting(document, _fitting(document, before, more[:half]), more[half:])


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
