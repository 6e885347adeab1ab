"""Widening: what is kept of a place that may change in every round of a loop.

The caller bounds the rounds that it reads, and the depth of choices in the lattice bounds what is kept of them.  After
the loop ``forget`` leaves what all rounds have in common: no place hangs on a round of it, and doing it again changes
nothing.
"""

from __future__ import annotations

import re

from devlint.device import UNKNOWN, Device, Kind, LoopRound, Predicate
from devlint.flow.domain.objects import mapped
from devlint.flow.domain.state import State, merge
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import Mapping, Sequence, Value
from devlint.immutable import replace

_ITEM = re.compile(r"\[(?:\d+:\d+)?\]")
"""What the identity has of which nobody knows which item it is: of any, or of that at a place in the text."""


def moved(before: State, after: State) -> bool:
    """Whether a round left something elsewhere than it found it."""
    if after.dead:
        return False
    if any(_is_elsewhere(before.env.get(name), value) for name, value in after.env.items()):
        return True
    return any(_is_elsewhere(before.heap.get(key), held) for key, held in after.heap.items())


def _is_elsewhere(before: object, after: object) -> bool:
    """Whether something, or what is in its place in a list or dict, is in another kind of place."""
    if before is after:
        return False
    if isinstance(before, Tensor) and isinstance(after, Tensor):
        return before.device.kind is not after.device.kind
    if isinstance(before, (Sequence, Mapping)) and isinstance(after, (Sequence, Mapping)):
        mine, its = before.parts(), after.parts()
        return len(mine) == len(its) and any(map(_is_elsewhere, mine, its))
    return isinstance(before, Device) and isinstance(after, Device) and before.kind is not after.kind


def renewed(state: State, entry: State) -> State:
    """A state at the end of a round as the next one finds it, which takes other items of what it goes through."""
    taken = [key for key in state.heap if isinstance(key[0], str) and _ITEM.search(key[0]) and key not in entry.heap]
    if not taken:
        return state
    state = state.copy()
    for key in taken:
        del state.heap[key]
    return state


def forget(state: State, loop: str) -> None:
    """After a loop, what depends on the number of its rounds is not known."""
    for name, value in state.env.items():
        state.env[name] = _left(value, loop)
    for key, held in state.heap.items():
        if isinstance(held, Device) and _depends(held, loop):
            state.heap[key] = _in_any_case(held)
        elif isinstance(held, (Sequence, Mapping)) and any(_left(value, loop) is not value for value in held.parts()):
            state.heap[key] = mapped(held, lambda value: _left(value, loop))


def parted(start: State, entry: State, first: State, changes: frozenset[str]) -> State:
    """The start of any round, where only a condition that the loop does not change lets another round come."""
    for condition, holds in first.facts.items():
        name = condition.name if isinstance(condition, Predicate) else ""
        if name and name not in changes and condition not in entry.facts:
            before = entry.copy()
            return merge(start, before, condition) if holds else merge(before, start, condition)
    return start


def _left(value: Value, loop: str) -> Value:
    """What all rounds have in common of a tensor."""
    if not isinstance(value, Tensor) or not _depends(value.device, loop):
        return value
    return value.placed(_in_any_case(value.device), ())


def _in_any_case(place: Device) -> Device:
    """The CPU, or an accelerator of one kind, where a choice leaves nothing else."""
    leaves = place.leaves()
    kinds = {(leaf.kind, leaf.type) for leaf in leaves}
    if len(kinds) > 1 or leaves[0].kind not in (Kind.CPU, Kind.ACCELERATOR):
        return UNKNOWN
    return replace(leaves[0], index=None, implied=False)


def _depends(place: Device, loop: str) -> bool:
    return any(isinstance(guard, LoopRound) and guard.loop == loop for guard in place.guards())
