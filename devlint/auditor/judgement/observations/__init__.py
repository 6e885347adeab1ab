"""What an audit saw, as the sites that the rules judge.

What happened in one place is one site, whatever phase, process or rank it happened in.
"""

from __future__ import annotations

from collections.abc import Iterator

from devlint.auditor.judgement.locator import Locator
from devlint.auditor.judgement.observations import calls, models
from devlint.auditor.judgement.observations.copies import Copies
from devlint.auditor.judgement.observations.measure import stepping
from devlint.record import Record
from devlint.sites.base import Site


def observed(record: Record, locator: Locator) -> Iterator[Site]:
    """Every site of a run.

    What is copied, called or waited for counts in training and evaluation steps alone: what happens once, while
    setting up, costs nothing worth a word.
    """
    seen = stepping(record)
    copies = Copies(record, locator, seen)
    yield from copies.transfers()
    yield from copies.loads()
    yield from calls.moves(record, locator, seen)
    yield from calls.functions(locator, seen)
    yield from calls.syncs(locator, seen)
    yield from models.modules(record, locator, seen)
    yield from models.wrappers(record, locator)
    yield from models.optimizers(record, locator)
