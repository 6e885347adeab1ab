"""Which findings of a run are reported: those that the baseline lacks, on code that has changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from devlint.check.discovery.target import Target
from devlint.config.schema import Config
from devlint.finding import Finding
from devlint.rules.registry import registry
from devlint.rules.selection import active_rules

if TYPE_CHECKING:
    from devlint.check.filters.baseline import Baseline, Judged
    from devlint.check.filters.revision import Since


@dataclass(frozen=True)
class Filters:
    """What a run leaves out of its report; it can be asked about all of its findings, or about those of a file."""

    baseline: Baseline | None = None
    since: Since | None = None

    def targets(self, targets: Sequence[Target]) -> list[Target]:
        """The files that are worth a look."""
        return [target for target in targets if self.since is None or self.since.touched(target.path)]

    def new(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings that are to be reported."""
        kept = list(findings)
        if self.baseline is not None:
            kept = self.baseline.new(kept)
        return kept if self.since is None else self.since.concerned(kept)

    def known(self, findings: Sequence[Finding]) -> int:
        """How many of the findings the baseline holds."""
        return 0 if self.baseline is None else len(findings) - len(self.baseline.new(list(findings)))

    def stale(self, findings: Sequence[Finding], judged: Callable[[], Judged]) -> int:
        """How many entries of the baseline occur no more; what was judged is asked for only where one may not."""
        if self.baseline is None or self.baseline.occurs_in(findings):
            return 0
        return self.baseline.stale(findings, judged(), registry())

    def updated(self, findings: Sequence[Finding], judged: Judged) -> Filters:
        """With a baseline, on the disk too, that holds these findings; an OSError says why it cannot be written."""
        if self.baseline is None:
            return self
        baseline = self.baseline.updated(findings, judged, registry())
        if baseline != self.baseline or not os.path.exists(baseline.file):
            baseline.write()
        return replace(self, baseline=baseline)


NO_FILTERS = Filters()


def judged(checked: Mapping[str, Config], findings: Sequence[Finding], directories: Iterable[str] = ()) -> Judged:
    """What a run has judged: the files that it read with their configurations, and the directories it was given."""
    from devlint.check.filters.baseline import Judged, judged_codes

    found = {path: list(group) for path, group in groupby(findings, key=lambda finding: finding.filename)}
    codes = {
        os.path.abspath(path): judged_codes(
            found.get(path, ()), frozenset(rule.code for rule in active_rules(path, config))
        )
        for path, config in checked.items()
    }
    return Judged(codes, tuple(os.path.abspath(path) for path in directories if os.path.isdir(path)))
