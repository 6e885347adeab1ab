"""What happened, added up: by place, kind and phase, in memory that does not grow with the run."""

from __future__ import annotations

import statistics
import threading
from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from time import perf_counter
from typing import NamedTuple

from devlint.auditor.frames import Frames
from devlint.auditor.history import History, Pending, Tally, What, When, merged
from devlint.record import FIRST_CALLS, PHASES, WARM_UP, Event, Phase, Slice, Steady

_AT_ONCE = 16
"""So many shares are booked at once: between two steps of a model the caches hold nothing of what that needs."""
_SAMPLES = 1_000
"""At most twice as many times are kept one by one."""


class Samples:
    """The median of a long series of times, in little memory: of more than can be kept, every second is kept."""

    def __init__(self, times: Iterable[float] = ()) -> None:
        self._kept = array("d")
        self._stride = 1
        self._seen = 0
        for seconds in times:
            self.add(seconds)

    def add(self, seconds: float) -> None:
        """Take one more."""
        if self._seen % self._stride == 0:
            self._kept.append(seconds)
        self._seen += 1
        if len(self._kept) >= 2 * _SAMPLES:
            self._kept = self._kept[::2]
            self._stride *= 2

    def median(self, zeros: int = 0) -> float | None:
        """The median, ``zeros`` more times of 0 included; ``None`` of nothing."""
        missing = min(round(zeros / self._stride), 2 * _SAMPLES)
        values = [*self._kept, *[0.0] * missing]
        return statistics.median(values) if values else None

    def copy(self) -> Samples:
        """Another series, equal so far."""
        other = Samples()
        other._kept, other._stride, other._seen = self._kept[:], self._stride, self._seen
        return other


@dataclass(slots=True)
class _Total(Tally):
    """The sum over a phase, and how it is spread over the steps; ``late`` counts the steps after the warm-up."""

    steps: int = 0
    late: int = 0
    late_calls: Counter[int] = field(default_factory=Counter)
    late_bytes: Counter[int] = field(default_factory=Counter)
    late_seconds: Samples = field(default_factory=Samples)
    late_copying: Samples = field(default_factory=Samples)
    early: list[Tally] = field(default_factory=list)

    def copy(self) -> _Total:
        return replace(
            self,
            threads=set(self.threads),
            late_calls=self.late_calls.copy(),
            late_bytes=self.late_bytes.copy(),
            late_seconds=self.late_seconds.copy(),
            late_copying=self.late_copying.copy(),
            early=self.early[:],
        )

    def spread(self, tally: Tally, number: int) -> None:
        if number < WARM_UP:
            self.early.append(tally)
            return
        self.late += 1
        self.late_calls[tally.calls] += 1
        self.late_bytes[tally.bytes] += 1
        self.late_seconds.add(tally.seconds)
        if self.copying:
            self.late_copying.add(tally.copying)


class Share(NamedTuple):
    """What is settled at once: the arguments of :meth:`Ledger.settle`."""

    pending: Pending
    phase: Phase
    step: bool
    when: When | None = None


class Ledger:
    """Takes events in as they happen; whoever knows the steps settles them.

    Events since the last :meth:`take` are pending: which phase they belong to is known only when it ends.  ``timed``
    is false where times mean nothing, as on a simulated device.
    """

    def __init__(self, frames: Frames, timed: bool = True) -> None:
        self.frames = frames
        self.timed = timed
        self.origin = perf_counter()
        """Where the times of the history count from."""
        self.pending: Pending = {}
        self.steps: Counter[Phase] = Counter()
        self.rest: Callable[[], Iterable[Share]] = lambda: (Share(self.pending, "setup", False),)
        """What is not settled yet, and where it would belong if the run ended now; whoever knows the steps answers."""
        self._settled: deque[tuple[int, Share]] = deque()
        """What is settled, but not in the books yet, each with the number of steps that its phase had before."""
        self._totals: dict[tuple[Phase, What], _Total] = {}
        self._history = History()
        self._ahead: dict[int | None, tuple[threading.Thread, deque[tuple[What, Tally]]]] = {}

    def tally(self, what: What) -> Tally:
        """The pending sum of ``what``, to be added to."""
        if self._ahead:
            thread, waiting = self._ahead.get(threading.get_ident(), (None, None))
            if thread is not None and waiting is not None and thread.is_alive():  # its number may be used again
                waiting.append((what, Tally()))
                return waiting[-1][1]
        tally = self.pending.get(what)
        if tally is None:
            # setdefault, as another thread may have come first
            tally = self.pending.setdefault(what, Tally())
        return tally

    def works_ahead(self, thread: threading.Thread) -> None:
        """What this thread does belongs to a later step: it waits until it is due."""
        self._ahead.setdefault(thread.ident, (thread, deque()))

    def due(self, thread: threading.Thread, count: int | None = None) -> None:
        """The next ``count`` events of a thread that works ahead belong to now; without it all, as it has ended."""
        _, waiting = self._ahead.get(thread.ident, (None, deque[tuple[What, Tally]]()))
        for _ in range(len(waiting) if count is None else min(count, len(waiting))):
            what, tally = waiting.popleft()
            self.pending.setdefault(what, Tally()).take(tally)
        if count is None:
            self._ahead.pop(thread.ident, None)

    def add(self, what: What, bytes_: int = 0, seconds: float = 0.0) -> Tally:
        """Count one event."""
        tally = self.tally(what)
        tally.calls += 1
        tally.bytes += bytes_
        tally.seconds += seconds
        if self.timed and len(tally.first) < FIRST_CALLS:
            tally.first.append((perf_counter() - seconds, seconds, bytes_))
        return tally

    def take(self) -> Pending:
        """What happened since this was last asked, to be settled later."""
        pending, self.pending = self.pending, {}
        return pending

    def settle(self, pending: Pending, phase: Phase, step: bool = True, when: When | None = None) -> None:
        """What is in ``pending`` belongs to ``phase``; ``step`` says that it was a whole step of it, and ``when``.

        It must not change any more.
        """
        self._settled.append((self.steps[phase], Share(pending, phase, step, when)))
        if step:
            self.steps[phase] += 1
        if len(self._settled) >= _AT_ONCE:
            self._book()

    def _book(self) -> None:
        while self._settled:
            number, (pending, phase, step, when) = self._settled.popleft()
            self._history.add(pending, phase, number if step else None, when)
            for what, tally in list(pending.items()):  # a list, as another thread may add to it
                total = self._totals.setdefault((phase, what), _Total())
                total.take(tally)
                total.steps += 1
                if step and phase == "train":
                    total.spread(tally, number)

    def known(self, what: What, phase: Phase) -> bool:
        """Whether it has happened in a phase before."""
        return (phase, what) in self._totals or any(
            share.phase == phase and what in share.pending for _, share in tuple(self._settled)
        )

    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in the order of the phases and then of bytes and calls."""
        whole = self.as_if_ended()
        return tuple(whole._event(phase, what, total) for (phase, what), total in whole._sorted())

    def timeline(self) -> tuple[Slice, ...]:
        """The steps one by one, whose parts number what :meth:`events` of the same ledger tells."""
        whole = self.as_if_ended()
        index = {key: number for number, (key, _) in enumerate(whole._sorted())}
        return whole._history.slices(index, self.origin if self.timed else None)

    def _sorted(self) -> list[tuple[tuple[Phase, What], _Total]]:
        return sorted(self._totals.items(), key=lambda item: (PHASES.index(item[0][0]), -item[1].bytes, -item[1].calls))

    def as_if_ended(self) -> Ledger:
        """A ledger in which the rest is settled, too; this one goes on."""
        other = Ledger(self.frames, self.timed)
        other.origin = self.origin
        other._history = self._history.copy()
        other.steps.update(self.steps)
        other._totals.update(self._totals)
        unused = merged({what: tally} for _, waiting in list(self._ahead.values()) for what, tally in list(waiting))
        # what is not booked yet is not booked here: a handler of a signal may ask in the middle of that
        other._settled.extend(self._settled)
        rest = (*self.rest(), Share(unused, "teardown" if self.steps else "setup", False))
        for share in (*(share for _, share in other._settled), *rest):
            for what in share.pending:
                total = self._totals.get((share.phase, what))
                if total is not None and other._totals[share.phase, what] is total:
                    other._totals[share.phase, what] = total.copy()
        for share in rest:
            other.settle(*share)
        other._book()
        return other

    def _event(self, phase: Phase, what: What, total: _Total) -> Event:
        facts = what._asdict()
        del facts["detached"]
        frame, via = self.frames.resolve(facts.pop("place"))
        return Event(
            **facts,
            phase=phase,
            frame=frame,
            via=via,
            example=total.example,
            calls=total.calls,
            bytes=total.bytes,
            seconds=total.seconds if self.timed else None,
            copying=total.copying or None,
            steps=total.steps,
            repeats=total.repeats,
            doubled=total.doubled,
            double=self.frames.frame(total.double) if total.doubled else None,
            unwaited=total.unwaited,
            threads=tuple(sorted(total.threads)),
            steady=self._steady(total) if phase == "train" else None,
        )

    def _steady(self, total: _Total) -> Steady:
        steps = self.steps["train"]
        late = steps - WARM_UP
        if late > 0:
            calls, size, seconds = Counter(total.late_calls), Counter(total.late_bytes), total.late_seconds
            copying = total.late_copying
            missing = late - total.late
        else:
            calls = Counter(tally.calls for tally in total.early)
            size = Counter(tally.bytes for tally in total.early)
            seconds = Samples(tally.seconds for tally in total.early)
            copying = Samples(tally.copying for tally in total.early)
            missing = steps - len(total.early)
        # a step in which it did not happen is a zero
        calls[0] += missing
        size[0] += missing
        median = seconds.median(missing) if self.timed else None
        return Steady(
            calls=_median(calls),
            bytes=_median(size),
            seconds=median,
            copying=copying.median(missing) if total.copying else None,
        )


def _median(values: Counter[int]) -> float:
    """The median of a multiset that may be far larger than it has values."""
    ordered = sorted(values)
    ends = list(accumulate(values[value] for value in ordered))
    total = values.total()
    middles = (total - 1) // 2, total // 2
    return sum(ordered[bisect_right(ends, middle)] for middle in middles) / 2 if total else 0
