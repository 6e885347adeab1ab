"""The device lattice: what can be known about where a value lives.

A device is a fact (the CPU, ``cuda:1``), a *symbol* (``args.device``, or wherever the caller keeps ``x``: unknown, but
the same each time it is named), a *choice* between two devices made by a condition, or unknown.  ``same`` and
``differs`` answer yes, no or cannot tell (``None``); a claim rests on a yes, never on the lack of one.
What was *observed* of a symbol in a run is a fact that keeps its identity: it can prove that two differ, since they
did, and never that they are the same, unless they are one.
Both are symmetric; ``choice`` is idempotent, unknown where a side is (but for loops and availability), and of bounded
depth.
"""

from __future__ import annotations

import enum
import functools
import re

from devlint.device import wording
from devlint.device.conditions import AVAILABLE, ITEMS, Condition, Conjunction, EachItem, LoopRound, Wanted
from devlint.immutable import immutable, replace


class Kind(enum.Enum):
    """What sort of knowledge a :class:`Device` is."""

    CPU = "cpu"
    ACCELERATOR = "accelerator"
    SYMBOL = "symbol"
    CHOICE = "choice"
    UNKNOWN = "unknown"


class Role(enum.Enum):
    """What a symbol stands for."""

    DEVICE = "device"
    """The value of a device expression that the code names, such as ``device`` or ``args.device``."""
    INPUT = "input"
    """Wherever the caller keeps an argument."""
    PLACE = "place"
    """Wherever the caller puts the module that the code belongs to."""


ACCELERATOR_TYPES = frozenset({"cuda", "mps", "xpu", "hpu", "npu", "xla", "mtia", "ipu", "hip", "mlu", "privateuseone"})
_DEVICE_TEXT = re.compile(r"([a-z_]+)(?::(\d+))?")
_DEEPEST_CHOICE = 4


@immutable(frozen=True, slots=True)
class Device:
    """Where a value lives, as far as it is known.

    ``type`` and ``index`` belong to accelerators, ``symbol`` (an identity), ``text`` and ``role`` to symbols,
    ``guard``, ``then`` and ``other`` to choices.  ``implied`` marks a CPU that nobody asked for: the default of a torch
    factory.  ``seen_of`` is the symbol of which a run has observed it: that is no fact of the code.
    """

    kind: Kind
    type: str = ""
    index: int | None = None
    symbol: str = ""
    text: str = ""
    role: Role | None = None
    guard: Condition | None = None
    then: Device | None = None
    other: Device | None = None
    implied: bool = False
    seen_of: Device | None = None

    def __str__(self) -> str:
        """How a message names the device."""
        if self.kind is Kind.CPU:
            return "the CPU"
        if self.kind is Kind.ACCELERATOR:
            return f"`{self.type}`" if self.index is None else f"`{self.type}:{self.index}`"
        if self.kind is Kind.SYMBOL:
            if self.role is Role.INPUT:
                return wording.device_of(self.text)
            return "the module's device" if self.role is Role.PLACE else f"`{self.text}`"
        if self.kind is Kind.CHOICE:
            return f"`{self.text}`" if self.text else wording.listed(sorted({str(leaf) for leaf in self.leaves()}))
        return "an unknown device"

    def leaves(self) -> tuple[Device, ...]:
        """The devices that a choice may turn out to be; a device that is no choice is its own leaf."""
        if self.then is None or self.other is None:
            return (self,)
        return (*self.then.leaves(), *self.other.leaves())

    @property
    def known(self) -> bool:
        """Whether anything is known: a fact, a symbol, or a choice between known devices."""
        if self.then is None:
            return self.kind is not Kind.UNKNOWN
        return all(leaf.kind is not Kind.UNKNOWN for leaf in self.leaves())

    @property
    def observed(self) -> bool:
        """Whether a run has seen it there, which shows that it can be there, and not that it always is."""
        return self.seen_of is not None

    @property
    def identity(self) -> str:
        """What is the same each time it is named: the symbol, or the one of which it was observed."""
        return self.symbol if self.seen_of is None else self.seen_of.symbol

    @property
    def switched(self) -> bool:
        """A choice of the code between the CPU and something else: on a machine with an accelerator, that one."""
        if self.then is not None and self.guard is AVAILABLE:
            # on a machine with an accelerator the condition holds
            return self.then.switched or self.then.kind is Kind.ACCELERATOR
        if AVAILABLE in self.guards():
            return self.assume(AVAILABLE, True).switched
        if self.guard is ITEMS or isinstance(self.guard, EachItem):
            return False
        if items := next((guard for guard in self.guards() if guard is ITEMS or isinstance(guard, EachItem)), None):
            # one item that stays on the CPU whatever the code has chosen is enough
            return self.assume(items, True).switched and self.assume(items, False).switched
        if self.then is not None and self.other is not None and isinstance(self.guard, LoopRound):
            # a round that finds it on the CPU finds it there whatever the machine has
            return self.then.switched and self.other.switched
        # where a run had something, the code has not chosen
        leaves = [leaf for leaf in self.leaves() if not leaf.observed]
        chosen = [leaf for leaf in leaves if leaf.kind is Kind.CPU and not leaf.implied]
        kinds = {leaf.kind for leaf in leaves}
        return Kind.CPU in kinds and (Kind.ACCELERATOR in kinds or (bool(chosen) and Kind.SYMBOL in kinds))

    def same(self, that: Device) -> bool | None:
        """Whether both are surely the same device."""
        if not self.known or not that.known:
            return None
        if self.guard is not None and self.guard is that.guard:
            return _both(_then(self).same(_then(that)), _other(self).same(_other(that)))
        if shared := self._shared_guard(that):
            return _both(*(self.assume(shared, held).same(that.assume(shared, held)) for held in (True, False)))
        if self.kind is Kind.CHOICE or that.kind is Kind.CHOICE:
            answers = {a.same(b) for a in self.leaves() for b in that.leaves()}
            return answers.pop() if len(answers) == 1 and self.switched == that.switched else None
        if self.identity and self.identity == that.identity:
            return True
        if self.kind is not that.kind:
            return False if Kind.SYMBOL not in (self.kind, that.kind) else None
        # what was seen in one place may be in two elsewhere
        always = None if self.observed or that.observed else True
        if self.kind is Kind.CPU:
            return always
        if self.kind is Kind.SYMBOL:
            return None
        if self.type != that.type:
            return False
        if self.index == that.index:
            return always
        # "cuda" is the current device, cuda:0 unless set_device or a context says otherwise
        return None if None in (self.index, that.index) else False

    def differs(self, that: Device) -> bool | None:
        """Whether the two surely differ, on a machine with an accelerator, on some path that the code can take."""
        if self.kind is Kind.UNKNOWN or that.kind is Kind.UNKNOWN:
            return None
        if AVAILABLE in self.guards() or AVAILABLE in that.guards():
            there = self.assume(AVAILABLE, True).differs(that.assume(AVAILABLE, True))
            if there is not False:
                return there
            # without an accelerator every symbol is the CPU; what else differs there is no claim, but no lack of one
            mine, theirs = self.assume(AVAILABLE, False), that.assume(AVAILABLE, False)
            leaves = [*mine.leaves(), *theirs.leaves()]
            on_host = all(leaf.kind in (Kind.CPU, Kind.SYMBOL) for leaf in leaves)
            return False if on_host or mine.differs(theirs) is False else None
        if self.guard is not None and self.guard is that.guard:
            return self._parts(that, (_then(self), _then(that)), (_other(self), _other(that)))
        if shared := self._shared_guard(that):
            holds, fails = ((self.assume(shared, held), that.assume(shared, held)) for held in (True, False))
            return self._parts(that, holds, fails)
        if self.kind is Kind.CHOICE or that.kind is Kind.CHOICE:
            return _any(*(a.differs(b) for a in self._sides() for b in that._sides()))
        # where a run had something on the CPU, it may have had there what nobody looked at, too
        read = not self.observed and not that.observed
        if read and Kind.CPU in (self.kind, that.kind) and Kind.SYMBOL in (self.kind, that.kind):
            return True
        same = self.same(that)
        return None if same is None else not same

    def _parts(self, that: Device, holds: tuple[Device, Device], fails: tuple[Device, Device]) -> bool | None:
        """Whether the two surely differ, of which a condition leaves these where it holds, and those where it fails."""
        return _any(self._part(that, *holds, fails), self._part(that, *fails, holds))

    def _part(self, that: Device, mine: Device, theirs: Device, otherwise: tuple[Device, Device]) -> bool | None:
        """Whether they surely differ on one side of it, where they are ``mine`` and ``theirs``."""
        for place, whole, rest, either in ((mine, self, theirs, otherwise[1]), (theirs, that, mine, otherwise[0])):
            if place.kind is not Kind.CPU or not whole.switched:
                continue
            # where the code goes without an accelerator, a symbol is probably the CPU, and what names one in any case
            # is not there to be met
            fixed = [leaf for leaf in either.leaves() if leaf.kind is Kind.ACCELERATOR]
            named = [leaf for leaf in rest.leaves() if leaf.kind is Kind.SYMBOL or leaf in fixed]
            if named:
                return _any(None, *(leaf.differs(place) for leaf in rest.leaves() if leaf not in named))
        return mine.differs(theirs)

    def accelerates(self) -> bool | None:
        """Whether this is surely, surely not, or perhaps an accelerator."""
        answers = {{Kind.ACCELERATOR: True, Kind.CPU: False}.get(leaf.kind) for leaf in self.leaves()}
        return answers.pop() if len(answers) == 1 else None

    def assume(self, guard: Condition, truth: bool) -> Device:
        """The device where the condition ``guard`` is known to be ``truth``."""
        mine = self.guard
        if mine is None:
            return self
        if mine is guard or (guard.implies(mine) if truth else mine.implies(guard)):
            return (_then(self) if truth else _other(self)).assume(guard, truth)
        then, other = _then(self).assume(guard, truth), _other(self).assume(guard, truth)
        if not truth and isinstance(guard, Conjunction) and (bare := guard.bare(mine)) is not None:
            then, other = (_on_the_host(then), other) if bare else (then, _on_the_host(other))
        if then is self.then and other is self.other and mine is not then.guard and mine is not other.guard:
            # most conditions are those of other choices
            return self
        return choice(mine, then, other, self.text)

    def guards(self) -> tuple[Condition, ...]:
        """The conditions on which it hangs, from the outside to the inside."""
        if self.guard is None or self.then is None or self.other is None:
            return ()
        return (self.guard, *self.then.guards(), *self.other.guards())

    def _shared_guard(self, that: Device) -> Condition | None:
        """A condition on which both hang, however they nest theirs: of several the same, whichever of the two asks."""
        if self.kind is not Kind.CHOICE or that.kind is not Kind.CHOICE:
            return None
        mine = self.guards()
        return min((guard for guard in that.guards() if guard in mine), key=repr, default=None)

    def _sides(self) -> tuple[Device, ...]:
        """What a comparison has to look at: an accelerator-or-CPU switch is one accelerator of its own."""
        guard = self.guard
        if guard is None or self.then is None or self.other is None:
            return (self,)
        if guard.necessary and self._follows_a_symbol():
            # where no accelerator is, or none is to be used, whatever it follows is on the CPU as well
            return next(side._sides() for side in (self.then, self.other) if side.kind is Kind.SYMBOL)
        if isinstance(guard, LoopRound):
            return (*self.then._sides(), *self.other._sides())
        for inner in self.guards():
            if inner is not guard and isinstance(inner, Wanted):
                return self.assume(inner, True)._sides()
        return (symbol(f"switch {guard.text}", self.text or str(self)),) if self.switched else self.leaves()

    def _follows_a_symbol(self) -> bool:
        """Whether it is wherever something else is, or the CPU by default."""
        sides = (_then(self), _other(self))
        return any(side.implied for side in sides) and {side.kind for side in sides} == {Kind.CPU, Kind.SYMBOL}


def _then(device: Device) -> Device:
    return device.then or UNKNOWN


def _other(device: Device) -> Device:
    return device.other or UNKNOWN


def _on_the_host(place: Device) -> Device:
    """Where something is that is wherever something else is, and nothing is on an accelerator."""
    return CPU if place.kind is Kind.SYMBOL else place


def _both(first: bool | None, second: bool | None) -> bool | None:
    if first is False or second is False:
        return False
    return True if first and second else None


def _any(*answers: bool | None) -> bool | None:
    if True in answers:
        return True
    return None if None in answers else False


CPU = Device(Kind.CPU)
IMPLIED_CPU = Device(Kind.CPU, implied=True)
UNKNOWN = Device(Kind.UNKNOWN)
NOWHERE = Device(Kind.UNKNOWN, text="nowhere")
"""Where that is which never comes to be, since what makes it raises: below every device, as UNKNOWN is above."""


def accelerator(type_: str, index: int | None = None) -> Device:
    """A literal accelerator such as ``cuda:1``."""
    return Device(Kind.ACCELERATOR, type=type_, index=index)


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Device | None:
    """The device that a string literal names, ``None`` when it names none."""
    match = _DEVICE_TEXT.fullmatch(text)
    if match is None:
        return None
    type_, index = match.group(1), match.group(2)
    if type_ == "cpu":
        return CPU
    if type_ in ACCELERATOR_TYPES:
        return accelerator(type_, None if index is None else int(index))
    return UNKNOWN if type_ == "meta" else None


def symbol(key: str, text: str, role: Role = Role.DEVICE) -> Device:
    """A device known only by its identity ``key``; ``text`` is how the code spells it."""
    return Device(Kind.SYMBOL, symbol=key, text=text, role=role)


def seen(place: Device, named: Device) -> Device:
    """The place where a run has observed what the code knows as a symbol."""
    return replace(place, seen_of=named)


def choice(guard: Condition, then: Device, other: Device, text: str = "") -> Device:
    """``then`` where ``guard`` holds, else ``other``; collapses where there is nothing to choose."""
    if then is other or then == other:
        return then
    if then.kind is Kind.CHOICE:
        then = then.assume(guard, True)
    if other.kind is Kind.CHOICE:
        other = other.assume(guard, False)
    if other.guard is not None and guard.implies(other.guard) and other.then == then:
        return other
    if then == other:
        return then
    if Kind.UNKNOWN in (then.kind, other.kind):
        # the first round of a loop is one that surely comes; nothing fails on a machine without an accelerator
        kept = other if isinstance(guard, LoopRound) else then if guard is AVAILABLE else UNKNOWN
        if kept.kind not in (Kind.CPU, Kind.ACCELERATOR):
            return UNKNOWN
    elif _depth(then) + _depth(other) >= _DEEPEST_CHOICE:
        if not isinstance(guard, LoopRound) or _depth(other) >= _DEEPEST_CHOICE:
            return UNKNOWN
        # what later rounds find is too much to keep
        then = UNKNOWN
    return Device(Kind.CHOICE, guard=guard, then=then, other=other, text=text)


def _depth(device: Device) -> int:
    if device.kind is not Kind.CHOICE:
        return 0
    return 1 + max(_depth(_then(device)), _depth(_other(device)))
