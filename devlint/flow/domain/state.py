"""What is true at a point of the program: what names hold, what objects hold, which conditions are known."""

from __future__ import annotations

from devlint import device
from devlint.device import AVAILABLE, Condition, Conjunction, Device, Topic
from devlint.flow.domain import provenance
from devlint.flow.domain.heap import CONTENT, MOVED, Heap, HeapKey, alike, half_known, identical
from devlint.flow.domain.join import join
from devlint.flow.domain.objects import Module
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.tensors import PLACED, Batches, DeviceValue, Tensor
from devlint.flow.domain.values import CONTAINERS, UNKNOWN, Const, Flag, Mapping, Opaque, Sequence, Value
from devlint.immutable import replace
from devlint.sites.base import Step

_MOST_FACTS = 128
Trail = tuple[str | int | None, ...]
"""The keys that lead to a part of a batch, as :class:`Batches` has them."""
Wholes = dict[tuple[Condition, bool], dict[Conjunction, None]]
"""The conjunctions that need a condition to hold (``True``) or to fail (``False``)."""


class State:
    """Names, heap and known conditions; ``dead`` after a return or raise."""

    __slots__ = ("accelerated", "by_name", "dead", "env", "facts", "heap", "hosted", "required", "touched", "wholes")

    def __init__(
        self,
        env: dict[str, Value],
        heap: Heap | None = None,
        facts: dict[Condition, bool] | None = None,
        accelerated: bool = False,
        wholes: Wholes | None = None,
    ) -> None:
        self.env = env
        self.heap: Heap = {} if heap is None else heap
        self.facts: dict[Condition, bool] = {} if facts is None else facts
        self.accelerated = accelerated
        # whether only the name of a setting says so, which somebody may set anywhere
        self.by_name = False
        # shared by all states of a run: what a condition is made of never changes
        self.wholes: Wholes = {} if wholes is None else wholes
        # a condition holds which says that nothing is on an accelerator
        self.hosted = False
        self.dead = False
        # whether what comes here has made a call that raises without CUDA
        self.required = False
        # where what comes here first used CUDA
        self.touched: Step | None = None

    def copy(self) -> State:
        """An independent state that starts from the same facts."""
        twin = State(self.env.copy(), self.heap.copy(), self.facts.copy(), self.accelerated, self.wholes)
        twin.hosted, twin.by_name = self.hosted, self.by_name
        twin.dead, twin.required, twin.touched = self.dead, self.required, self.touched
        return twin

    def become(self, other: State) -> None:
        """Take over everything from ``other``."""
        self.env, self.heap, self.facts = other.env, other.heap, other.facts
        self.accelerated, self.hosted, self.dead = other.accelerated, other.hosted, other.dead
        self.required, self.touched, self.by_name = other.required, other.touched, other.by_name

    def assume(self, flag: Flag, truth: bool) -> None:
        """Continue where ``flag`` is ``truth``: devices that hang on it are settled."""
        condition, holds = flag.condition, truth == flag.positive
        if self.facts.get(condition) is (not holds):
            return
        self.facts[condition] = holds
        if len(self.facts) > _MOST_FACTS:
            # of hundreds of ways out that were not taken, the first ones are forgotten
            del self.facts[next(iter(self.facts))]
        if (flag.accelerated > 0 and holds) or (flag.accelerated < 0 and not holds):
            self.by_name = flag.by_name and (self.by_name or not self.accelerated)
            self.accelerated = True
        elif flag.accelerated in (1, -1):
            self.hosted = True
        if holds:
            for part in flag.parts:
                self.assume(part, True)
        for whole in self.wholes.get((condition, not holds), ()):
            # a conjunction fails with any of its parts
            self.facts[whole] = False

    def heed(self, flag: Flag) -> None:
        """Know from here on that a conjunction fails with any of its parts."""
        if isinstance(flag.condition, Conjunction):
            for needed in flag.condition.parts:
                self.wholes.setdefault(needed, {})[flag.condition] = None

    @property
    def bare(self) -> bool:
        """Whether a known condition says that everything is on the CPU here."""
        return any(not holds and guard.necessary for guard, holds in self.facts.items())

    def asked(self, topic: Topic) -> bool:
        """Whether something is known of what a test has asked about, whatever the answer was."""
        return any(topic in guard.topics for guard in self.facts)

    def affirmed(self, topic: Topic) -> bool:
        """Whether a test of that holds; the parts of a conjunction are known on their own."""
        return any(
            holds and topic in guard.topics and not isinstance(guard, Conjunction)
            for guard, holds in self.facts.items()
        )

    def forget(self, value: Value) -> None:
        """A name is bound to another object of the same description: nothing is kept of the one before."""
        if isinstance(value, Sequence):
            for part in value.items or ():
                self.forget(part)
        elif isinstance(value, Batches):
            self._renew(value)
        if not isinstance(value, Opaque):
            return
        key = value.key
        stale = [place for place in self.heap if type(place[0]) is str and place[0].startswith(key)]
        for place in stale:
            if len(place[0]) == len(key) or place[0][len(key)] in ".[":  # type: ignore[arg-type, index]  # a str, seen above
                del self.heap[place]

    def seen(self, value: Value) -> Value:
        """``value`` as the known conditions leave it."""
        kind = type(value)
        if kind in CONTAINERS:
            return self.content(value)
        if kind is Batches and self._is_moved(value):  # type: ignore[arg-type]  # it is one, seen above
            value = replace(value, device=device.UNKNOWN, parts=())
        if kind in PLACED and value.device.kind is device.Kind.CHOICE:  # type: ignore[attr-defined]  # all of these have one
            for guard, truth in self.facts.items():
                value = settle(value, guard, truth)
        return value

    def content(self, value: Value) -> Value:
        """A list or dict with what is in it now."""
        if isinstance(value, (Sequence, Mapping)) and value.oid:
            held = self.heap.get((value.oid, CONTENT), value)
            if isinstance(held, (Sequence, Mapping)):
                return held if held.oid == value.oid else replace(held, oid=value.oid)
            return held if isinstance(held, Value) else value
        return value

    def moves(self, batch: Batches) -> None:
        """Something of a batch may be elsewhere from here on: what it is a part of is in no one place any more."""
        for owner in batch.owners:
            for end in range(len(batch.trail) + 1):
                MOVED.put(self.heap, (owner, batch.trail[:end]), True)

    def _moves_of(self, batch: Batches) -> list[tuple[HeapKey, Trail]]:
        """The places on the heap that say that parts of the same whole have moved, and which parts."""
        if not any(((owner, ()), MOVED) in self.heap for owner in batch.owners):
            return []
        places = [key for key in self.heap if key[1] is MOVED]
        return [(key, key[0][1]) for key in places if key[0][0] in batch.owners]  # type: ignore[index]  # so it is put

    def _is_moved(self, batch: Batches) -> bool:
        return any(_may_be_one(batch.trail, trail) for _, trail in self._moves_of(batch))

    def _renew(self, batch: Batches) -> None:
        """Another batch, or part of one: what has a name is still what it was."""
        gone = [key for key, trail in self._moves_of(batch) if trail[: len(batch.trail)] == batch.trail]
        if gone:
            for name, held in self.env.items():
                self.env[name] = self.seen(held) if isinstance(held, Batches) else held
            for key in gone:
                del self.heap[key]

    def filled(self, listed: Sequence) -> Sequence:
        """A list whose items are where those of the known conditions leave them that are the same in every round."""
        item = listed.item
        if isinstance(item, Tensor) and item.device.kind is device.Kind.CHOICE:
            for guard, truth in self.facts.items():
                item = item if guard.volatile else settle(item, guard, truth)
        return listed if item is listed.item else replace(listed, item=item)

    def settled(self, place: Device) -> Device:
        """``place`` as the known conditions leave it."""
        for guard, truth in self.facts.items():
            if place.kind is not device.Kind.CHOICE:
                break
            place = place.assume(guard, truth)
        return place


def _may_be_one(first: Trail, second: Trail) -> bool:
    """Whether two trails may lead to one part; what has a number may have a name, too."""
    return len(first) == len(second) and all(
        one is None or two is None or type(one) is not type(two) or one == two
        for one, two in zip(first, second, strict=True)
    )


def settle(value: Value, guard: Condition, truth: bool) -> Value:
    """The value where the condition ``guard`` is known."""
    if isinstance(value, (Tensor, DeviceValue, Batches)):
        place = value.device.assume(guard, truth)
        if place is value.device:
            return value
        if isinstance(value, Tensor) and not any(leaf.implied for leaf in place.leaves()):
            return value.placed(place)
        return replace(value, device=place)
    return value


def merge(then: State, other: State, guard: Condition) -> State:
    """The state after a branch on ``guard``."""
    if then.dead:
        return other
    if other.dead:
        return then
    merged = State(
        then.env, then.heap, {key: value for key, value in then.facts.items() if other.facts.get(key) is value}
    )
    merged.accelerated = then.accelerated and other.accelerated
    merged.by_name = then.by_name or other.by_name
    merged.hosted = then.hosted and other.hosted
    merged.required = then.required and other.required
    merged.touched = then.touched if other.touched is not None else None
    merged.wholes = then.wholes
    env = merged.env
    for name, value in other.env.items():
        mine = env.get(name)
        if mine is None:
            # bound on one path only: where it is used, that path was taken
            env[name] = value
        elif mine is not value:
            one = alike(then.heap, other.heap, mine, value)
            env[name] = joined = join(then.content(mine), other.content(value), guard) if one is None else one
            if isinstance(joined, Flag):
                merged.heed(joined)
    if not identical(merged.heap, other.heap):
        _join_heaps(merged, other.heap, guard)
    return merged


def _join_heaps(merged: State, other: Heap, guard: Condition) -> None:
    heap = merged.heap
    fresh: list[HeapKey] = []
    for place, held in other.items():
        kept = heap.get(place)
        if kept is None:
            fresh.append(place)
        elif kept is not held:
            if isinstance(kept, Sequence) and isinstance(held, Sequence):
                kept, held = merged.filled(kept), merged.filled(held)
            heap[place] = alike(heap, other, kept, held) or _join_held(kept, held, guard)
    for place in heap.keys() - other.keys():
        heap[place] = half_known(place, heap[place])
    for place in fresh:
        heap[place] = half_known(place, other[place])


def rejoin(first: State, second: State, path: Condition) -> State:
    """The state where two paths meet that parted further up: what differs hangs on the condition that parted them."""
    for guard, truth in first.facts.items():
        if second.facts.get(guard) is (not truth):
            return merge(first, second, guard) if truth else merge(second, first, guard)
    return merge(first, second, path)


def _join_held(first: object, second: object, guard: Condition) -> object:
    if isinstance(first, Device) and isinstance(second, Device):
        return device.choice(guard, first, second)
    if isinstance(first, Value) and isinstance(second, Value):
        for one, two in ((first, second), (second, first)):
            if isinstance(one, Module) and isinstance(two, Const) and two.value is None:
                # an attribute that may be ``None`` is what it may be else, where it is called
                return one
        return join(first, second, guard)
    if isinstance(first, Origin) and isinstance(second, Origin):
        return provenance.join(first, second)
    if isinstance(first, tuple) and isinstance(second, tuple):
        return tuple(dict.fromkeys((*first, *second)))
    return UNKNOWN


def availability(positive: bool = True) -> Flag:
    """The condition that an accelerator is available."""
    return Flag(AVAILABLE, positive, accelerated=1)
