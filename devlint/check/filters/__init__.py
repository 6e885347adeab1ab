"""Which findings of a run are reported: those that the baseline lacks, on code that has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from devlint.check.discovery.target import Target
from devlint.finding import Finding
from devlint.immutable import immutable

if TYPE_CHECKING:
    from devlint.check.filters.baseline import Baseline
    from devlint.check.filters.revision import Since


@immutable(frozen=True, slots=True)
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


NO_FILTERS = Filters()
