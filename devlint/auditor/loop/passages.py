"""Loops of forward passes without autograd that no loader feeds: an evaluation, a rollout, generation, self-play.

A passage goes from one work of the training loop to the next. It is a loop once the same call of a module runs again:
a pass begins with that call, and ends where the next one begins. What comes before the first and after the last is of
a pass if the same happens in others, too; all else, such as the first batch of training, is of what surrounds the
loop. A single forward, such as that of a teacher, is a part of a training step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from devlint.auditor.frames import NOWHERE
from devlint.auditor.history import Pending, What, merged, split
from devlint.auditor.ledger import Ledger, Share
from devlint.auditor.loop.intervals import Interval

_MOST = 64
"""So many calls of modules none of which runs again are no loop."""


class Passages:
    """The passages of a run, one after the other."""

    def __init__(self, ledger: Ledger, trained: Callable[[What], bool]) -> None:
        """``trained`` says whether something has happened in a training step before."""
        self.made: Counter[int] = Counter()
        """The forward passes of those that were loops, by the place that makes them."""
        self._ledger = ledger
        self._trained = trained
        self._loop = NOWHERE
        """The call that runs again and again, once there is one."""
        self._first: frozenset[What] = frozenset()
        """What a pass does before its call, such as to make its batch."""
        self._current: Pending = {}
        """What the pass that runs has done so far, with what came before its call."""
        self._next: Pending = {}
        """What may have come before the call of the next pass."""
        self._calls: list[int] = []
        self._parts: list[Pending] = []
        """What came before each of the calls of a passage that is no loop yet."""

    def call(self, place: int, interval: Interval) -> None:
        """A module is called without autograd."""
        part = self._ledger.take()
        if self._loop != NOWHERE:
            self._go_on(part)
            if place == self._loop:
                self._settle(self._current)
                self._current, self._next = self._next, {}
            return
        self._parts.append(part)
        if place != NOWHERE and place in self._calls:
            self._begin(place, interval)
            return
        self._calls.append(place)
        if len(self._calls) >= _MOST:
            self._give_up(interval)

    def _begin(self, place: int, interval: Interval) -> None:
        """A call runs again: the first pass is over."""
        first = self._calls.index(place) + 1
        inner = merged(self._parts[first:])
        recurring, before = split(
            merged(self._parts[:first]),
            # what follows a training step is of that if it did the same before
            lambda what: (what in inner or self._known(what)) and not self._trained(what),
        )
        interval.close(before)
        self._loop, self._calls, self._parts = place, [], []
        self._first, self._current = frozenset(recurring), recurring
        self._go_on(inner)
        self._settle(self._current)
        self._current, self._next = self._next, {}

    def _go_on(self, part: Pending) -> None:
        before, after = split(part, lambda what: what in self._first)
        self._next, self._current = merged([self._next, before]), merged([self._current, after])

    def take(self, interval: Interval) -> Pending:
        """What is pending in the ledger, without what belonged to a passage, which is over."""
        if self._loop == NOWHERE:
            self._give_up(interval)
            return self._ledger.take()
        last, after = self._end(self._ledger.take())
        self._settle(last)
        self._loop, self._current, self._next = NOWHERE, {}, {}
        return after

    def as_if_ended(self, interval: Interval) -> tuple[Interval, Pending, list[Share]]:
        """The interval, what is pending and the last pass, as if the run ended now; nothing is changed."""
        pending = self._ledger.pending
        if self._loop != NOWHERE:
            last, after = self._end(pending)
            return interval, after, [Share(last, "inference", True)]
        if self._parts:
            interval = replace(interval)
            _give_back(self._parts, interval)
        return interval, pending, []

    def by_function(self) -> dict[str, int]:
        """The forward passes by the function that makes them, as if the run ended now."""
        found: Counter[str] = Counter()
        for place, count in (*self.made.items(), *([] if self._loop == NOWHERE else [(self._loop, 1)])):
            frame = self._ledger.frames.frame(place)
            found[frame.function if frame else ""] += count
        return dict(found)

    def _end(self, pending: Pending) -> tuple[Pending, Pending]:
        """The last pass of a loop, and what came after it; there is no call for which a batch would have been made."""
        recurring, after = split(pending, lambda what: self._known(what) and what not in self._first)
        return merged([self._current, recurring]), merged([self._next, after])

    def _settle(self, part: Pending) -> None:
        self.made[self._loop] += 1
        self._ledger.settle(part, "inference")

    def _known(self, what: What) -> bool:
        return self._ledger.known(what, "inference")

    def _give_up(self, interval: Interval) -> None:
        """The passage is no loop, if there is one."""
        if self._parts:
            _give_back(self._parts, interval)
            self._calls, self._parts = [], []


def _give_back(parts: list[Pending], interval: Interval) -> None:
    """What was no loop did is of the interval in which it was, in the middle of it."""
    first, *others = parts
    interval.close(first)
    for part in others:
        interval.cut(part)
    if interval.stage == "tail":
        interval.stage = "own"
