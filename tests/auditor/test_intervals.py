"""What an interval is divided into: the short way that most training steps take leads where the long one does."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import Any, get_args

from devlint.auditor.history import Pending, Tally, What
from devlint.auditor.loop import intervals
from devlint.auditor.loop.intervals import Ending, Interval, TrainStep, divide
from devlint.record import Phase

_WHATS = [What("copy", name, place) for name in ("copy_", "item") for place in (1, 2)]


def test_the_short_way_leads_where_the_long_one_does(monkeypatch: Any) -> None:
    """Random intervals, divided both ways."""
    random.seed(0)
    short: Counter[str] = Counter()
    for _ in range(4_000):
        interval, pending, ending = _interval(), _part(), random.choice(get_args(Ending))
        known = partial(_is_known, frozenset(random.sample(_WHATS, 2)))
        found = divide(interval, pending, ending, "between", known)
        if interval.plain(pending, ending) is not None:
            short[ending] += any(isinstance(item, TrainStep) for item in found)
        with monkeypatch.context() as patched:
            patched.setattr(intervals.Interval, "plain", lambda *given: None)
            assert divide(interval, pending, ending, "between", known) == found
    assert min(short[ending] for ending in get_args(Ending)) > 20, short


def test_what_the_short_way_gives_is_what_happened() -> None:
    """A step of a loop without a loader, whose copy came in two parts: before the optimizer's step and after it."""
    interval = Interval("free", 0.0, "setup", "tail", own={_WHATS[0]: Tally(calls=2, bytes=8)}, backward=True)
    interval.stepped = 1.0
    after: Pending = {_WHATS[0]: Tally(calls=1, bytes=4), _WHATS[1]: Tally(calls=5)}
    (step,) = divide(interval, after, "step", "between", lambda what, phase: False)
    assert isinstance(step, TrainStep)
    assert {what: (tally.calls, tally.bytes) for what, tally in step.step.items()} == {
        _WHATS[0]: (3, 12),
        _WHATS[1]: (5, 0),
    }
    assert interval.own[_WHATS[0]].calls == 2  # and what it came from is as it was


def _is_known(known: frozenset[What], what: What, phase: Phase) -> bool:
    return what in known


def _interval() -> Interval:
    return Interval(
        kind=random.choice(("start", "loader", "after", "free")),
        started=0.0,
        prior=random.choice(("setup", "between")),
        stage=random.choice(("lead", "own", "tail")),
        fetched=_part(),
        lead=_part(),
        rounds=[_part() for _ in range(random.choice((0, 0, 1, 2)))],
        own=_part(),
        closing=random.choice((None, None, _part())),
        attached=random.randrange(2),
        backward=random.random() < 0.7,
        stepped=random.choice((None, 1.0)),
        owed=random.choice((0, 0, 1)),
    )


def _part() -> Pending:
    return {what: Tally(calls=random.randint(1, 3)) for what in _WHATS if random.random() < 0.3}
