"""What the text of a loop says, collected once: a loop is interpreted several times."""

from __future__ import annotations

import re

from devlint.device import EACH, ITEMS, LOOP, UNKNOWN, Device, Kind
from devlint.flow.domain.state import State, merge
from devlint.flow.domain.values import Mapping, Sequence, Tensor, Value
from devlint.immutable import replace

_BOUND = re.compile(r"(?:[^#@]*:)?([^\W\d]\w*)(?:#|@[\d:]+$)")
"""A condition that is what a name holds."""


def moved(before: State, after: State) -> bool:
    """Whether a round left something elsewhere than it found it."""
    if after.dead:
        return False
    if any(_is_elsewhere(before.env.get(name), value) for name, value in after.env.items()):
        return True
    return any(
        isinstance(held, Device) and isinstance(found := before.heap.get(key), Device) and found.kind is not held.kind
        for key, held in after.heap.items()
    )


def _is_elsewhere(before: Value | None, after: Value) -> bool:
    if before is after or not isinstance(before, Tensor) or not isinstance(after, Tensor):
        return False
    return before.device.kind is not after.device.kind


def forget(state: State, guard: str) -> None:
    """After a loop, what depends on the number of its rounds is not known."""
    for name, value in state.env.items():
        if isinstance(value, Tensor) and _depends(value.device, guard):
            state.env[name] = _somewhere(value)
    for key, held in state.heap.items():
        if isinstance(held, Device) and _depends(held, guard):
            state.heap[key] = _in_any_case(held)
        elif isinstance(held, (Sequence, Mapping)) and any(_left(value, guard) is not value for value in held.parts()):
            state.heap[key] = _content(held, guard)


def parted(start: State, entry: State, first: State, changes: frozenset[str]) -> State:
    """The start of any round, where only a condition that the loop does not change lets another round come."""
    for key, truth in first.facts.items():
        bound = _BOUND.match(key)
        if key not in entry.facts and bound is not None and bound[1] not in changes:
            before = entry.copy()
            return merge(start, before, key) if truth else merge(before, start, key)
    return start


def _content(held: Sequence | Mapping, guard: str) -> Sequence | Mapping:
    """A list or dict after the loop: what got one of several in each round has all of them."""
    if isinstance(held, Mapping):
        return replace(
            held, items=tuple((key, _left(value, guard)) for key, value in held.items), other=_left(held.other, guard)
        )
    items = None if held.items is None else tuple(_left(value, guard) for value in held.items)
    head = tuple(_left(value, guard) for value in held.head)
    return replace(held, items=items, item=_left(held.item, guard), head=head)


def _left(value: Value, guard: str) -> Value:
    if not isinstance(value, Tensor) or not _depends(value.device, guard):
        return value
    if value.device.guard == guard.replace(LOOP, EACH, 1):
        return replace(value, device=replace(value.device, guard=ITEMS))
    return _somewhere(value)


def _somewhere(value: Tensor) -> Tensor:
    """A tensor of which nothing is known but what all rounds have in common."""
    return replace(value, device=_in_any_case(value.device), factory="", factory_node=None, story=())


def _in_any_case(place: Device) -> Device:
    """The CPU, or an accelerator of one kind, where a choice leaves nothing else."""
    leaves = place.leaves()
    kinds = {(leaf.kind, leaf.type) for leaf in leaves}
    if len(kinds) > 1 or leaves[0].kind not in (Kind.CPU, Kind.ACCELERATOR):
        return UNKNOWN
    return replace(leaves[0], index=None, implied=False)


def is_of(key: str, guard: str) -> bool:
    """Whether a condition tells rounds of this loop apart."""
    return key == guard or key.startswith(f"{guard} ")


def _depends(place: Device, guard: str) -> bool:
    if place.kind is not Kind.CHOICE:
        return False
    item = guard.replace(LOOP, EACH, 1)
    return any(is_of(known, guard) or known == item for known in place.guards())
