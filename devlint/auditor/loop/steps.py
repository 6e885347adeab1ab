"""Where one step ends and the next begins, told by what a training loop cannot do without.

Nobody annotates a script, so the loop is read off four signals: a loader's ``next``, a module's call, a backward and
an optimizer's step.  The time between two boundaries is an *interval*; when it ends, its events are divided:

* A loader's ``next`` begins an interval.  One with a backward or an optimizer's step in it is a training step, one
  with nothing but forwards an evaluation step.  One without any of them is no step: it belongs to what follows, as
  with zipped loaders, or with a wrapper that is a batch ahead.
* When the loader is exhausted or its iterator is gone, the loop is over, and what follows is ``between``.  A wrapper
  that is a batch ahead delivers its last batch only then, so a backward makes a training step even there.
* Where no loader feeds the loop, the first optimizer's step ends the interval; without an optimizer, each backward.

Some events stand at an edge: before the first forward of a loop, and after the last optimizer's step of one.  They
belong to the step if the same happens in another step too, or in the middle of this one; otherwise to what surrounds
the loop (``model.to(device)`` in a script without a loader, saving a checkpoint after ``break``).  To know that of the
first step, the second has to end first.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Literal

from devlint.auditor.frames import NOWHERE
from devlint.auditor.history import Pending, What, merged
from devlint.auditor.ledger import Ledger, Samples, Share
from devlint.auditor.loop.intervals import Ending, Interval, TrainStep, book, dated, divide
from devlint.auditor.loop.passages import Passages
from devlint.record import WARM_UP, Phase, Steps

_PATIENCE = 2
"""A loader that has fed nothing for so many optimizer steps no longer feeds the loop."""
_MOST_PATIENCE = 10
"""The patience grows to this, if a loader feeds again after having been given up: it feeds several steps a batch."""
_TAKEOVER = 8
"""An optimizer that steps so often while the first one does not takes its place."""
_FOLLOWS = 2
"""The same where no loader feeds the loop, and the first one was alone before: parts are trained one by one."""
_NAMED = 8
"""So many optimizers of a class are told apart."""
_READ_TIMEOUT = 0.5

_Boundary = Literal["loader", "optimizer", "backward"]


class StepsReached(SystemExit):
    """The number of training steps that was asked for is reached: the script ends as if it had asked to."""

    def __init__(self, steps: int) -> None:
        super().__init__(0)
        self.steps = steps


class LoopSteps:
    """Takes the signals of one process, and settles the events in ``ledger`` as intervals end.

    Loaders and optimizers are told apart by numbers of the caller's choice.  All signals but :meth:`gone` come from the
    thread that runs the loop.  ``limit`` is the number of training steps after which :meth:`stop_if_due` raises;
    ``has_optimizers`` says whether there is any optimizer which may step yet.
    """

    def __init__(
        self,
        ledger: Ledger,
        limit: int | None = None,
        has_optimizers: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.ledger = ledger
        self.limit = limit
        self.limited = False
        self.train = 0
        self.eval = 0
        self.training_loaders: set[int] = set()
        self.optimizer_steps: Counter[str] = Counter()
        self._evaluating_loaders: set[int] = set()
        self._has_optimizers = has_optimizers
        self._clock = clock
        self._active: set[int] = set()
        self._opening: dict[int, int] = {}
        """How many batches the first step of a loop took from a loader: more than others, if it is read ahead."""
        self._least: dict[int, int] = {}
        self._unseen: Counter[int] = Counter()
        """How many more batches a loop has taken from a loader than it has put to use since."""
        self._fresh = False
        """Whether nothing was called since a batch came, or since the last backward or step: the next call uses one."""
        self._unfed = 0
        self._patience = _PATIENCE
        self._names: dict[int, str] = {}
        self._first: int | None = None
        self._others: Counter[int] = Counter()
        self._in_turn: set[int] = set()
        """The optimizers that have stepped between two steps of the first."""
        self._boundaries: Counter[_Boundary] = Counter()
        self._seconds, self._waits = Samples(), Samples()
        self._held: TrainStep | None = None
        self._passages = Passages(ledger, lambda what: self._known(what, "train"))
        self._gone: deque[int] = deque()
        self._lock = threading.Lock()
        self._interval = Interval("start", clock(), "setup", "lead")
        ledger.rest = self._rest

    def stop_if_due(self) -> None:
        """Raise :class:`StepsReached` if the run has made as many training steps as it was asked for, each time."""
        if self.limit is not None and self.train >= self.limit:
            self.limited = True
            raise StepsReached(self.limit)

    # the signals

    def batch(self, loader: int, anew: bool = False) -> bool:
        """A loader is asked for a batch, ``anew`` after as many as it has.  Returns whether an interval ended."""
        with self._lock:
            self._say_farewell()
            if anew:
                self._active.discard(loader)
            ended = self._next(loader)
            if loader not in self._active:
                self._opening.pop(loader, None)
                self._unseen[loader] = 0
            self._active.add(loader)
            self._interval.batches[loader] += 1
            self._unseen[loader] += 1
            if loader in self.training_loaders:
                self._patience = max(self._patience, min(self._unfed + 1, _MOST_PATIENCE))
            self._unfed = 0
            return ended

    def delivered(self, seconds: float) -> None:
        """A loader took so long to deliver; what happened meanwhile belongs to the step of its batch."""
        with self._lock:
            self._fresh = True
            interval = self._interval
            interval.waited += seconds
            interval.fetched = merged([interval.fetched, self._take()])

    def exhausted(self, loader: int) -> None:
        """A loader that was asked has no further batch."""
        with self._lock:
            self._fresh = True
            self._interval.batches[loader] -= 1
            self._unseen[loader] -= 1
            owed = self._unseen[loader]
            if loader in self._opening:
                owed = max(owed, self._opening[loader] - self._least[loader])
            elif owed > 1:
                owed = 0  # a loop that calls no module
            self._leave(loader, owed)

    def gone(self, loader: int) -> None:
        """The iterator of a loader was freed; may come from any thread, even in the middle of another signal."""
        self._gone.append(loader)
        if self._lock.acquire(blocking=False):
            try:
                self._say_farewell()
            finally:
                self._lock.release()

    def forward(self, recorded: bool = True, place: int = NOWHERE) -> bool:
        """A module is called from outside any module, at ``place``; ``recorded`` says whether autograd records it.

        Returns whether the next call is worth knowing of, though nothing else happened before.
        """
        with self._lock:
            self._say_farewell()
            self._interval.uses += self._fresh
            self._fresh = False
            if recorded:
                self._interval.attached += 1
                self._work()
                return False
            alone = self._is_alone()
            if alone:
                self._passages.call(place, self._interval)
            elif not self._interval.detached:
                self._interval.close(self._take())
            self._interval.detached += 1
            if self._interval.owed:
                self._work()
            return alone

    def _is_alone(self) -> bool:
        """Whether no loader feeds what runs now: there is none, or its batch has made its step."""
        interval = self._interval
        return not interval.owed and (interval.kind != "loader" or interval.stage == "tail")

    def backward(self) -> None:
        """A backward begins that computes gradients of parameters."""
        with self._lock:
            self._say_farewell()
            self._interval.backward = True
            self._work()

    def backward_done(self) -> bool:
        """It has ended.  Returns whether an interval did."""
        with self._lock:
            self._fresh = True
            interval = self._interval
            if interval.stage == "tail":
                # optimizers stepped in the middle of it
                self._cut()
            if self._active or self._names or self._has_optimizers():
                return False
            self._end_free("backward")
            return True

    def optimizer_step(self, optimizer: int, name: str) -> bool:
        """An optimizer has stepped; ``name`` is its class.  Returns whether an interval ended."""
        with self._lock:
            self._say_farewell()
            self._fresh = True
            self.optimizer_steps[self._name(optimizer, name)] += 1
            interval = self._interval
            if interval.kind == "start" and not interval.backward:
                return False  # of nothing that was learnt: before a scheduler is made, or a state is loaded
            interval.stepped = self._clock()
            self._cut()
            interval.stage = "tail"
            leader = self._first
            # else the backward that it is the step of has ended one already, when there was no optimizer yet
            learnt = interval.kind != "free" or interval.backward
            if not self._is_first(optimizer):
                if self._follows(optimizer) and not interval.aside and learnt:
                    interval.aside = True
                    interval.end_round()
                return False
            if interval.aside and leader == optimizer:
                # in turn with the first: its step was a part of this one
                interval.own = merged([interval.rounds.pop(), interval.own])
            interval.aside = False
            if learnt:
                interval.end_round()
            self._unfed += 1
            if self._unfed >= self._patience:
                self._active.clear()
            if self._active or not interval.backward:
                return False
            self._end_free("optimizer")
            return True

    def describe(self) -> Steps:
        """What the loop was like so far; what is unfinished is counted as if the run ended now."""
        with self._reading():
            interval, pending, _ = self._passages.as_if_ended(self._interval)
            found = divide(interval, pending, "run", "teardown", self._known)
            training = sum(isinstance(item, TrainStep) for item in found)
            evaluating = sum(isinstance(item, Share) and item.step for item in found)
            boundaries: Counter[_Boundary] = Counter({"loader": training})
            boundaries += self._boundaries
            timed = self.ledger.timed
            return Steps(
                train=self.train + training,
                eval=self.eval + evaluating,
                inference=self._passages.by_function(),
                optimizer_steps=dict(self.optimizer_steps),
                boundary=boundaries.most_common(1)[0][0] if boundaries else "",
                step_seconds=self._seconds.median() if timed else None,
                loader_seconds=self._waits.median() if timed else None,
                limited=self.limited,
            )

    # boundaries

    def _next(self, loader: int) -> bool:
        """A new interval, or the old one goes on; returns whether it ended."""
        before = self._interval
        if before.kind == "loader" and not before.trained:
            if not before.forward:
                self._begin_loader(loader, before, lead=True)
                return False
            if before.loader != loader and before.loader in self._active and not before.detached:
                # a forward for a backward that is yet to come: this loop takes batches of several loaders in turn
                before.loader = loader
                return False
        if before.kind == "free" and not before.trained and loader in self.training_loaders:
            self._begin_loader(loader, before, lead=False)
            return False
        self._end("goes on" if loader in self._active else "changes")
        self._begin_loader(loader)
        return True

    def _begin_loader(self, loader: int, before: Interval | None = None, lead: bool = False) -> None:
        """An interval of a loader, into which one goes that was no step; with ``lead``, as far as it recurs."""
        interval = Interval("loader", self._clock(), self._idle(), "own", loader)
        interval.later = loader in self._evaluating_loaders
        interval.fetched = self._interval.ahead
        if before is not None:
            self._cut()
            interval.started, interval.waited = before.started, before.waited
            interval.prior, interval.batches = before.prior, before.batches
            if lead:
                interval.lead, interval.fetched = merged([before.lead, before.own]), before.fetched
            else:
                interval.own = before.whole({})
        self._interval = interval

    def _leave(self, loader: int, owed: int = 0) -> None:
        """A loader no longer feeds the loop, which a wrapper that read ahead still owes some batches."""
        self._active.discard(loader)
        interval = self._interval
        if interval.kind != "loader" or loader not in interval.batches:
            return
        others = (set(interval.batches) & self._active) - {loader}
        if others:
            interval.loader = min(others)
            return
        if interval.trained or interval.forward:
            self._end("goes on")
            self._interval = Interval("after", self._clock(), self._idle(), "lead", owed=owed)
            return
        # what was in it so far was no step, but may be the preparation of one
        self._cut()
        interval.kind, interval.stage, interval.owed = "after", "lead", owed
        interval.lead, interval.own = merged([interval.lead, interval.own]), {}

    def _say_farewell(self) -> None:
        while self._gone:
            loader = self._gone.popleft()
            if loader not in self._active:
                continue
            one_shot = self._interval.kind == "loader" and not self._interval.forward
            if one_shot and loader in self.training_loaders and not self._interval.trained:
                # next(iter(loader)) in a loop: the batch is there, the iterator is not
                self._active.discard(loader)
                self._interval.kind = "free"
            else:
                self._leave(loader)

    def _end_free(self, boundary: _Boundary) -> None:
        """An interval ends without a loader."""
        owed = self._interval.owed
        self._end("step", boundary)
        if owed > 0:
            self._interval = Interval("after", self._clock(), self._idle(), "lead", owed=owed - 1, trailing=True)
        else:
            self._interval = Interval("free", self._clock(), self._idle(), "own", trailing=True)

    # parts and ends

    def _cut(self) -> None:
        self._interval.cut(self._take())

    def _take(self) -> Pending:
        """What was pending; a passage that it ends is settled."""
        return self._passages.take(self._interval)

    def _work(self) -> None:
        """Forward or backward: what was pending came before, and what comes next is in the middle of the step."""
        if self._interval.stage != "own":
            self._cut()
            self._interval.stage = "own"

    def _idle(self) -> Phase:
        return "between" if self.train or self.eval else "setup"

    def _known(self, what: What, phase: Phase) -> bool:
        held = phase == "train" and self._held is not None and what in self._held.step
        return held or self.ledger.known(what, phase)

    def _end(self, ending: Ending, boundary: _Boundary = "loader") -> None:
        """Settle what the interval was; the caller begins another one."""
        interval = self._interval
        # without what came after the last optimizer's step, if that is cut off
        end = interval.stepped if ending == "changes" and interval.stepped is not None else self._clock()
        found = dated(divide(interval, self._take(), ending, "between", self._known), interval, end)
        trained = [item for item in found if isinstance(item, TrainStep)]
        training, evaluating = len(trained), sum(isinstance(item, Share) and item.step for item in found)
        if training:
            self._boundaries[boundary] += training
            for number, step in enumerate(trained, self.train):
                if number >= WARM_UP and step.when is not None:
                    self._seconds.add(step.when.seconds)
                    self._waits.add(step.when.waited)
        if interval.batches and (training or evaluating):
            if training:
                self.training_loaders |= set(interval.batches) - self._evaluating_loaders
            else:
                self._evaluating_loaders |= set(interval.batches) - self.training_loaders
            for loader, batches in interval.batches.items():
                self._opening.setdefault(loader, batches)
                self._least[loader] = min(batches, self._least.get(loader, batches))
                self._unseen[loader] -= interval.uses
        self.train += training
        self.eval += evaluating
        shares, self._held = book(found, self._held)
        for share in shares:
            self.ledger.settle(*share)

    def _rest(self) -> list[Share]:
        """What the ledger does not hold yet, as if the run ended now."""
        with self._reading():
            interval, pending, passes = self._passages.as_if_ended(self._interval)
            stepped = interval.trained and interval.kind in ("loader", "after")
            began = self.train or self.eval or self._passages.made or passes or stepped
            found = divide(interval, pending, "run", "teardown" if began else "setup", self._known)
            shares, held = book(dated(found, interval, self._clock()), self._held)
            return [*passes, *shares, *(held.settled({}) if held is not None else ())]

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Keep signals away; not for ever, since a handler of SIGTERM may read in the middle of one."""
        locked = self._lock.acquire(timeout=_READ_TIMEOUT)
        try:
            yield
        finally:
            if locked:
                self._lock.release()

    # optimizers

    def _name(self, optimizer: int, name: str) -> str:
        if optimizer not in self._names:
            same = sum(other == name or other.startswith(f"{name} ") for other in self._names.values())
            self._names[optimizer] = name if same == 0 else f"{name} {min(same + 1, _NAMED)}"
        return self._names[optimizer]

    def _is_first(self, optimizer: int) -> bool:
        """Whether this optimizer is the one whose steps count; another takes over if it has not stepped for long."""
        if self._first is None:
            self._first = optimizer
        if optimizer != self._first:
            self._others[optimizer] += 1
            if self._others[optimizer] < (_FOLLOWS if self._follows(optimizer) else _TAKEOVER):
                return False
            self._first = optimizer
        self._in_turn |= set(self._others)
        self._others.clear()
        return True

    def _follows(self, optimizer: int) -> bool:
        """Whether this optimizer may have come after the first: the two have never stepped in turn."""
        return not self._active and optimizer not in self._in_turn
