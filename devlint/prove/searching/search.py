"""The search for arguments with which a run shows a claim: call, look at what stops the call, change that."""

from __future__ import annotations

import heapq
import itertools
import linecache
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from devlint.auditor.explanation.messages import is_mismatch
from devlint.prove.arguments.hints import candidates
from devlint.prove.arguments.suggestions import suggestions
from devlint.prove.arguments.values import ACCELERATOR, HOST, Instance, Namespace, Table, Tensor, Value
from devlint.prove.claim import Claim
from devlint.prove.running.signs import is_causal, remains, shown
from devlint.prove.running.trial import (
    IMPORTING,
    MAKING,
    MENDED,
    NOT_ALONE,
    PATIENCE,
    SCRIPT,
    TooLongError,
    Trial,
    Watch,
)
from devlint.prove.searching.plan import APART, MADE, VARIABLES, Plan, Slot, Target

MOST_RUNS = 400
"""So many calls are made at most."""
SECONDS = 20.0
"""So long is looked for a call, of the processor's time and without that to make objects which take long."""
SECONDS_MAKING = 60.0
"""So much is that time at most."""
PATIENCE_FOR_ALL = 100.0
"""Seconds after which no other call begins, however busy the machine is."""
_COSTLY = 1.5
"""How much less is promised by another argument of an object that takes long to make."""
_DEEP = 0.8
"""How much less is promised by what an object inside of others is not told."""
_APART = frozenset({"DVL102"})
"""Rules whose findings are about a move itself, so that what is moved need not be where the rest is."""
_CALLING = frozenset({"function", "static", "method"})
"""Kinds of targets that end with a call; the others make an object, or import a file."""
_CLOSE, _STALE = 2, 60
"""A score at which the place of the finding was reached: other ways in wait, until so many runs came no further."""
DIMLY, CLEARLY = 1, 2
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass
class Search:
    """What was tried for a claim, and the plan whose run shows it."""

    watch: Watch
    claim: Claim
    conditions: frozenset[str] = frozenset()
    """The names on which it hangs whether the places of the claim are reached."""
    deadline: float = 0.0
    latest: float = 0.0
    runs: int = 0
    reached: int = 0
    """Runs on the accelerator that reached the finding's place, and went well."""
    best: Trial | None = None
    _best_score: tuple[int, int] = (-1, -1)
    _seen: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def find(self, targets: list[Target]) -> Plan | None:
        """A plan whose run shows the claim, if there is one that is found in time."""
        self.deadline = time.thread_time() + SECONDS
        self.latest = self.deadline + SECONDS_MAKING
        end = time.monotonic() + PATIENCE_FOR_ALL
        queue: list[tuple[tuple[float, ...], int, Plan, tuple[int, int]]] = []
        waiting = deque(self._first(targets))
        fallback: Plan | None = None
        stale = 0
        priority: tuple[float, ...]
        while (queue or waiting) and self.runs < MOST_RUNS and not self._is_late(end):
            if waiting and (not queue or self._best_score[0] < _CLOSE or stale >= _STALE):
                priority, plan, before = (0.0,), waiting.popleft(), (-1, -1)
                stale = 0
            else:
                priority, _, plan, before = heapq.heappop(queue)
            script = plan.script()
            if script in self._seen:
                continue
            self._seen.add(script)
            trial = self._run(plan, script)
            clearness = self.shows(script, trial)
            if clearness == CLEARLY:
                return plan
            if clearness and fallback is None:
                fallback = plan
            best = self._best_score
            score = self._scored(trial)
            stale = 0 if score > best else stale + 1
            if trial.error is None and self._went_through(trial) and ACCELERATOR in script:
                self.reached += 1
            # what has not brought the call further counts against what follows from it
            spent = priority[-1] if score <= before else 0.0
            for rank, other in self._others(plan, trial):
                promise = (-float(score[0]), -float(score[1]), spent + rank)
                heapq.heappush(queue, (promise, next(self._numbers), other, score))
        return fallback

    def _is_late(self, end: float) -> bool:
        return time.thread_time() > self.deadline or time.monotonic() > end

    def _first(self, targets: list[Target]) -> Iterator[Plan]:
        """The plans to begin with; modules on the host, with all that they are given, seldom show anything."""
        late = [target for target in targets if target.is_module]
        yield from (Plan(target) for target in targets[:1])
        yield from (Plan(target, HOST) for target in targets[:1] if target not in late)
        if self.claim.code in _APART:
            yield from (Plan(target, APART) for target in targets[:2])
        for target in targets[1:]:
            yield Plan(target)
            if target not in late:
                yield Plan(target, HOST)
        yield from (Plan(target, HOST) for target in late)

    def _places(self) -> tuple[str, ...]:
        return (ACCELERATOR, HOST, APART) if self.claim.code in _APART else (ACCELERATOR, HOST)

    def _run(self, plan: Plan, script: str) -> Trial:
        making = self.watch.seconds_making
        patience = PATIENCE if plan.target.kind in _CALLING else MAKING if plan.target.owner else IMPORTING
        trial = self.watch.run(script, patience=patience)
        # what takes long to make is made once
        self.deadline = min(self.deadline + self.watch.seconds_making - making, self.latest)
        self.runs += 1
        return trial

    def _went_through(self, trial: Trial) -> bool:
        """Whether a run came to where the claim would show."""
        harm = [rows for rows in self.claim.related if rows.file == self.claim.file]
        if not trial.reached(self.claim.rows):
            return False
        return not is_causal(self.claim) or not harm or any(trial.reached(rows) for rows in harm)

    def shows(self, script: str, trial: Trial) -> int:
        """Whether a run shows the claim, and not something else in its place: not, ``DIMLY`` or ``CLEARLY``.

        It does so dimly where the call dies afterwards of something else.
        """
        if not shown(self.claim, trial):
            return 0
        if trial.error is None or not is_causal(self.claim):
            return CLEARLY
        if not is_mismatch(trial.error):
            return DIMLY
        if remains(self.claim, trial, self.watch.run(script, MENDED)):
            return 0
        return CLEARLY if not self.claim.beside or shown(self.claim, self.watch.run(script, NOT_ALONE)) else 0

    def _scored(self, trial: Trial) -> tuple[int, int]:
        """How far a run came: how many places of the claim it reached, and how many rows of its file."""
        places = sum(trial.reached(rows) for rows in self.claim.harm if rows.file == self.claim.file)
        own = trial.reached(self.claim.rows)
        score = (places + own, len(trial.covered))
        if score > self._best_score:
            self.best, self._best_score = trial, score
        return score

    def _others(self, plan: Plan, trial: Trial) -> Iterator[tuple[float, Plan]]:
        """Plans that differ in one argument, each with a number that is smaller the more it promises."""
        if isinstance(trial.error, TooLongError) and plan.chosen:
            return
        if trial.reached(self.claim.rows):
            # the way in is found: perhaps it has to be gone with all in another place
            yield from ((0.05, replace(plan, place=place)) for place in self._places() if place != plan.place)
        blamed = _blamed(trial)
        if not all(trial.reached(rows) for rows in self.claim.harm if rows.file == self.claim.file):
            blamed |= self.conditions
        for slot, value in plan.slots():
            is_deep = value is None and len(slot.path) > 2
            if is_deep and slot.path[-1] not in blamed:
                continue
            rank = _suspicion(slot, value, trial, blamed) + _DEEP * is_deep
            if slot.path[0] == MADE and self.watch.seconds_making and trial.names.keys() & VARIABLES:
                rank += _COSTLY
            for more, option in _options(slot, value, trial):
                if option is not value:
                    yield rank + more, plan.changed(slot.path, option)


def _options(slot: Slot, value: Value | None, trial: Trial) -> Iterator[tuple[float, Value | None]]:
    """Other values of an argument, first what the end of the call suggests, each with how much less it promises."""
    hinted = [*_grown(value, trial)]
    if isinstance(value, Tensor) and trial.error is not None:
        hinted += suggestions(trial.said, value)
    yield from ((0.02 * number, option) for number, option in enumerate(hinted))
    further: list[Value | None] = [*candidates(slot.hint, slot.default)]
    if isinstance(trial.error, TypeError):
        # what was of the wrong type is tried as something else before it is tried in another shape
        further.sort(key=lambda option: type(option) is type(value))
    if slot.may_be_left_out:
        further.append(None)
    yield from ((0.5 + 0.08 * number, option) for number, option in enumerate(further, len(hinted)))


def _blamed(trial: Trial) -> set[str]:
    """The names in the exception, and in the lines that were running."""
    if trial.error is None:
        return set()
    words = set(_WORD.findall(trial.said))
    for step in [step for step in trial.steps if step.file != SCRIPT][-2:]:
        words.update(_WORD.findall(linecache.getline(step.file, step.first)))
    return words


def _suspicion(slot: Slot, value: Value | None, trial: Trial, blamed: set[str]) -> float:
    """How little an argument is suspected of what has stopped the call."""
    rank = 0.5 * (len(slot.path) - 2)
    name = slot.path[-1]
    if name in blamed:
        return rank
    error: Any = trial.error
    if error is None:
        return rank + 1.0
    if isinstance(error, RuntimeError) and isinstance(value, Tensor):
        return rank + 0.4
    begins = "made" if any(step.file == SCRIPT for step in trial.steps) and len(trial.steps) < 2 else ""
    return rank + (2.0 if value is None else 1.2) + (0.3 if begins and slot.path[0] != begins else 0.0)


def _grown(value: Value | None, trial: Trial) -> Iterator[Value]:
    """The value with what the call has missed of it."""
    error = trial.error
    if isinstance(value, Namespace) and isinstance(error, AttributeError) and isinstance(error.obj, SimpleNamespace):
        if {*vars(error.obj)} == value.names():
            yield value.having(str(error.name))
    elif isinstance(value, Instance) and isinstance(error, AttributeError):
        named = {hint.name for hint in value.wanted}
        if value.takes_more and type(error.obj).__name__ == value.name and error.name not in named:
            yield value.having(str(error.name))
    elif isinstance(value, Table) and isinstance(error, KeyError):
        key = error.args[0] if error.args else None
        if isinstance(key, str) and key not in {hint.name for hint in value.keys}:
            yield value.having(key)
