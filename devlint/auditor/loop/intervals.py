"""The time between two boundaries of a loop, and which of its events belong to a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from devlint.auditor.history import Pending, What, When, merged, split
from devlint.auditor.ledger import Share
from devlint.record import Phase

Known = Callable[[What, Phase], bool]
"""Whether something has happened in a phase before."""

Ending = Literal["goes on", "changes", "step", "run"]
"""Why an interval ended: the loop ``goes on``, or ``changes`` to another loader, a ``step`` was made without a loader,
or the ``run`` is over."""


@dataclass(slots=True)
class Interval:
    """The time since the last boundary.

    ``kind`` is what it began with: the ``start`` of the run, a batch of a ``loader``, the time ``after`` a loop, or the
    last step of a loop that is ``free`` of loaders.  Its events are kept apart: ``fetched`` is what loaders did to
    deliver, ``lead`` what else came before the work of the loop, ``rounds`` the parts that ended with a step of the
    first optimizer, ``own`` what came since; what the ledger holds as pending belongs to ``stage``, where ``tail`` is
    the time since an optimizer stepped.  ``prior`` is the phase of what surrounds the loop.
    """

    kind: Literal["start", "loader", "after", "free"]
    started: float
    prior: Phase
    stage: Literal["lead", "own", "tail"]
    loader: int | None = None
    batches: Counter[int] = field(default_factory=Counter)
    """How many it took from each loader."""
    fetched: Pending = field(default_factory=dict)
    lead: Pending = field(default_factory=dict)
    rounds: list[Pending] = field(default_factory=list)
    aside: bool = False
    """Whether the last round ended with a step of another optimizer."""
    own: Pending = field(default_factory=dict)
    closing: Pending | None = None
    """What came before the first module was called without autograd, where a step ended just before."""
    attached: int = 0
    """How often a module was called while autograd recorded."""
    detached: int = 0
    """How often a module was called while it did not."""
    uses: int = 0
    """How often a module was the first to be called since a batch came, or since the last backward or step."""
    backward: bool = False
    stepped: float | None = None
    """When an optimizer stepped last."""
    later: bool = False
    """Whether its loader has fed an evaluation step before."""
    ahead: Pending = field(default_factory=dict)
    """What followed an evaluation and is of the next training step: the batch that was read before the evaluation."""
    waited: float = 0.0
    """How long the loop waited for its loaders."""
    owed: int = 0
    """So many batches of the loop that is over are still to come, since a wrapper of its loader read ahead."""
    trailing: bool = False
    """A step without a loader ended just before, so that what recurs belongs to that."""

    @property
    def forward(self) -> int:
        """How often a module was called from outside any module."""
        return self.attached + self.detached

    @property
    def trained(self) -> bool:
        """Whether there was a backward or an optimizer's step."""
        return self.backward or self.stepped is not None

    def cut(self, part: Pending) -> None:
        """What was pending goes to where it belongs by now; a tail that did not end the step is in its middle."""
        if self.stage == "lead":
            self.lead = merged([self.lead, part]) if self.lead else part
        else:
            self.own = merged([self.own, part]) if self.own else part

    def end_round(self) -> None:
        """What came since the last round is one of its own."""
        self.rounds.append(self.own)
        self.own = {}

    def close(self, part: Pending) -> None:
        """A module is called without autograd: it may be an evaluation that follows the loop."""
        if self.kind == "free" and self.trailing and self.closing is None and not (self.trained or self.attached):
            self.closing = merged([self.own, part])
            self.own = {}
        else:
            self.cut(part)

    def plain(self, pending: Pending, ending: Ending) -> Pending | None:
        """All of its events, if it was one training step and none of them can belong to anything else; most are so."""
        if self.lead or self.closing or self.stage == "lead":
            return None
        if ending == "step":
            if len(self.rounds) > 1 or (self.fetched and not self.owed):
                return None
        elif ending != "goes on" and self.stage == "tail":
            return None
        parts = [part for part in (self.fetched, *self.rounds, self.own, pending) if part]
        return parts[0] if len(parts) == 1 else merged(parts)

    def whole(self, pending: Pending) -> Pending:
        """All of its events."""
        return merged([self.fetched, self.lead, self.closing or {}, *self.rounds, self.own, pending])


class TrainStep(NamedTuple):
    """A training step, and events before it which may belong to ``phase`` instead."""

    step: Pending
    doubtful: Pending
    phase: Phase
    when: When | None = None

    def settled(self, next_step: Pending) -> list[Share]:
        """What is doubtful belongs to the step if it happens in the next one, too."""
        whole = self.confirmed(next_step)
        shares = [Share(whole.step, "train", True, self.when)]
        return [*shares, Share(whole.doubtful, whole.phase, False)] if whole.doubtful else shares

    def confirmed(self, other_step: Pending) -> TrainStep:
        """What is doubtful and happens in another step, too, is doubtful no more."""
        if not self.doubtful:
            return self
        recurring, doubtful = split(self.doubtful, lambda what: what in other_step)
        return TrainStep(merged([self.step, recurring]), doubtful, self.phase, self.when)


def divide(interval: Interval, pending: Pending, ending: Ending, idle: Phase, known: Known) -> list[Share | TrainStep]:
    """Which step an interval was, if any, and what belongs to it; ``idle`` is the phase of what comes after it."""
    if _is_training(interval, ending):
        plain = interval.plain(pending, ending)
        if plain is not None:
            return [TrainStep(plain, {}, interval.prior)]
        return _training(interval, pending, ending, idle, known)
    whole = interval.whole(pending)
    if interval.kind == "loader" and interval.forward:
        if ending == "run" and not interval.detached:
            # it died in its first forward, or between forward and backward
            return _shares(Share(whole, "train", False))
        return _evaluation(interval, pending, ending, idle, known)
    if interval.owed and interval.forward:
        last, single = split(merged([interval.own, pending]), lambda what: known(what, "eval"))
        ahead, single = split(single, lambda what: what.loader is not None and known(what, "train"))
        if ending != "run":
            interval.ahead, ahead = ahead, {}
        return [
            Share(merged([interval.fetched, interval.lead, last]), "eval", True),
            *_shares(Share(ahead, "train", False), Share(single, idle, False)),
        ]
    if interval.kind == "free" and interval.backward:
        return _shares(Share(whole, "train", False))
    if interval.kind == "start" and ending == "run":
        rest = merged([interval.fetched, *interval.rounds, interval.own, pending])
        return _shares(Share(interval.lead, interval.prior, False), Share(rest, idle, False))
    last, after = (whole, {}) if interval.closing is None else (interval.closing, merged([interval.own, pending]))
    recurring, single = split(last, lambda what: interval.trailing and known(what, "train"))
    rest = merged([single, after])
    return _shares(Share(recurring, "train", False), Share(rest, idle if ending == "run" else interval.prior, False))


def dated(found: Iterable[Share | TrainStep], interval: Interval, end: float) -> list[Share | TrainStep]:
    """The same, each step with its time: several in one interval have equal parts of it."""
    found = list(found)
    if len(found) == 1 and isinstance(found[0], TrainStep):
        step, doubtful, phase, _ = found[0]
        return [TrainStep(step, doubtful, phase, When(interval.started, end - interval.started, interval.waited))]
    steps = [item for item in found if isinstance(item, TrainStep) or item.step]
    each, waited = (end - interval.started) / max(len(steps), 1), interval.waited / max(len(steps), 1)
    times = iter([When(interval.started + number * each, each, waited) for number in range(len(steps))])
    return [item._replace(when=next(times)) if isinstance(item, TrainStep) or item.step else item for item in found]


def _is_training(interval: Interval, ending: Ending) -> bool:
    if ending == "step":
        return True
    if interval.kind == "loader":
        return interval.trained
    if interval.kind == "after":
        return interval.backward
    return interval.kind == "free" and interval.backward and ending != "run"


def _training(
    interval: Interval, pending: Pending, ending: Ending, idle: Phase, known: Known
) -> list[Share | TrainStep]:
    lead, rounds, own = interval.lead, [interval.fetched, *interval.rounds], interval.own
    if interval.closing:
        rounds[0] = merged([interval.fetched, interval.closing])
    elif ending == "step" and not interval.owed:
        # no loader feeds this loop: what one did may have been a preparation of it
        lead, rounds[0] = merged([interval.fetched, lead]), {}
    after: Pending = {}
    if interval.stage == "lead":
        lead = merged([lead, pending])
    elif interval.stage == "own" or ending in ("goes on", "step"):
        own = merged([own, pending])
    else:
        middle = merged([*rounds, own])
        recurring, after = split(pending, lambda what: what in middle or known(what, "train"))
        own = merged([own, recurring])
    if ending == "step" and len(interval.rounds) > 1:
        # a loader was waited for, in vain: each of these was a step
        first, *rest = [merged(rounds[:2]), *rounds[2:-1], merged([rounds[-1], own])]
    else:
        first, rest = merged([*rounds, own]), []
    recurring, doubtful = split(lead, lambda what: what in first or known(what, "train"))
    steps = [TrainStep(merged([first, recurring]), doubtful, interval.prior)]
    steps += [TrainStep(part, {}, interval.prior) for part in rest]
    return [*steps, *_shares(Share(after, idle, False))]


def _evaluation(
    interval: Interval, pending: Pending, ending: Ending, idle: Phase, known: Known
) -> list[Share | TrainStep]:
    own = merged([interval.fetched, *interval.rounds, interval.own])
    after: Pending = {}
    if ending != "goes on" and interval.later:
        # nobody said that the loop was over: its loader is endless, or was left alone before its end
        pending, after = split(pending, lambda what: what in own or known(what, "eval"))
    own = merged([own, pending])
    recurring, single = split(interval.lead, lambda what: what in own or known(what, "eval"))
    return [
        Share(merged([own, recurring]), "eval", True),
        *_shares(Share(single, interval.prior, False), Share(after, idle, False)),
    ]


def _shares(*shares: Share) -> list[Share | TrainStep]:
    return [share for share in shares if share.pending]


def book(found: Iterable[Share | TrainStep], held: TrainStep | None) -> tuple[list[Share], TrainStep | None]:
    """What can be settled now, and the training step that waits for the next one."""
    shares: list[Share] = []
    for item in found:
        if isinstance(item, Share):
            shares.append(item)
            continue
        step = item
        if held is not None:
            shares += held.settled(merged([item.doubtful, item.step]))
            step = item.confirmed(merged([held.doubtful, held.step]))
        held = step if step.doubtful else None
        if held is None:
            shares += step.settled({})
    return shares, held
