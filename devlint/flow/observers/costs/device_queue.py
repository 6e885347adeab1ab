"""What the device is given to do, and where the host waits for that: the order of events, and times taken of them."""

from __future__ import annotations

import ast
import enum

from devlint import device
from devlint.device import Device, Role
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.flow.core.registry import MODELS
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.values import Const, Flag, Named, Value
from devlint.immutable import immutable
from devlint.sites.base import Operand, Step
from devlint.sites.costs import Timing

_CLOCKS = frozenset(
    f"time.{clock}{unit}" for clock in ("time", "perf_counter", "monotonic") for unit in ("", "_ns")
) | {"timeit.default_timer"}
"""Functions that read a clock."""
BLOCKING = frozenset({"synchronize", "barrier", "monitored_barrier"})
"""What waits for the device, by the last part of its name."""


class Happened(enum.Enum):
    """What an event means to whoever reads a clock next."""

    WORK = "the device was given something to do"
    WAIT = "the host waited until it was done"
    UNSEEN = "something was called that may do either"


@immutable(frozen=True, slots=True)
class Event:
    """Something that happened, and in how many loops."""

    what: Happened
    node: ast.AST
    depth: int


@immutable(frozen=True, slots=True)
class Moved:
    """A tensor that every forward pass moves to the host at ``node``."""

    node: ast.AST
    value: Operand


@immutable(frozen=True, slots=True)
class Reading(Value):
    """What a clock showed, before the event with the number ``moment``."""

    node: ast.AST
    moment: int
    depth: int


class Queue(Component):
    """The events of a file, in the order in which they are interpreted."""

    shared = True

    def __init__(self, interpreter: Interpreter) -> None:
        self.events: list[Event] = []
        self.allowed: set[ast.AST] = set()
        """Waits that have to be."""
        self.moved: Moved | None = None
        """The last move to the host that may be a wait for nothing but the values."""

    def is_empty(self, node: ast.AST) -> bool:
        """Whether the host has just waited, and not at ``node`` itself, so that nothing is left to wait for."""
        last = self.events[-1] if self.events else None
        return last is not None and last.what is Happened.WAIT and last.node is not node

    def work(self, frame: Frame, node: ast.AST, place: Device) -> None:
        """The device at ``place`` was given something to do; on the CPU that is done at once."""
        chosen = all(leaf.role is not Role.INPUT for leaf in place.leaves())
        if chosen and place.differs(device.CPU) is True:
            self.events.append(Event(Happened.WORK, node, len(frame.loops)))

    def wait(self, frame: Frame, node: ast.AST) -> None:
        """The host waited."""
        self.events.append(Event(Happened.WAIT, node, len(frame.loops)))

    def unseen(self, frame: Frame, node: ast.AST) -> None:
        """Something was called that cannot be followed."""
        if not self.events or self.events[-1].what is not Happened.UNSEEN:
            self.events.append(Event(Happened.UNSEEN, node, len(frame.loops)))


def _read(frame: Frame, call: Call, path: str) -> Value:
    """A reading of a clock."""
    return Reading(call.node, len(frame.component(Queue).events), len(frame.loops))


def elapsed(frame: Frame, end: Value, start: Value) -> None:
    """A difference of two readings: a site where the device was still at work."""
    if not isinstance(end, Reading) or not isinstance(start, Reading) or start.depth != end.depth:
        return
    between = frame.component(Queue).events[start.moment : end.moment]
    if not between or between[-1].what is not Happened.WORK:
        return
    # in a loop the host may wait in every round: what is still under way at its end is little of the whole
    if any(event.what is not Happened.WORK and event.depth > start.depth for event in between):
        return
    began = Step(start.node, "the clock is read here")
    frame.emit(Timing(end.node, scope_of(frame), began, Step(between[-1].node, "the device is given work here")))


def harmless(call: Call) -> bool:
    """Whether a call outside of torch is given nothing that could make it wait."""
    return all(isinstance(value, (Const, Reading, Flag, Named)) for value in call.values())


MODELS.register(dict.fromkeys(_CLOCKS, _read))
