"""The queue of the device: what it is given to do, and where the host waits for that, in their order."""

from __future__ import annotations

import ast
import enum

from devlint import device
from devlint.device import Device, Kind, Role
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.methods import FETCHES, WRITERS
from devlint.flow.catalog.shapes import SHAPED
from devlint.flow.core import events
from devlint.flow.core.call import Call, Loop
from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.flow.domain.join import type_place
from devlint.flow.domain.tensors import Tensor, as_tensor, is_definite, placement, surely_tensor
from devlint.flow.domain.values import (
    UNKNOWN,
    Const,
    Flag,
    Mapping,
    Named,
    Opaque,
    Sequence,
    Unknown,
    Value,
    is_literal,
)
from devlint.immutable import immutable

BLOCKING = frozenset({"synchronize", "barrier", "monitored_barrier"})
"""What waits for the device, by the last part of its name."""


class QueueEvent(enum.Enum):
    """What an event means to whoever reads a clock next."""

    WORK = "the device was given something to do"
    WAIT = "the host waited until it was done"
    UNSEEN = "something was called that may do either"


@immutable(frozen=True, slots=True)
class Event:
    """Something that happened, and in how many loops."""

    what: QueueEvent
    node: ast.AST
    depth: int


@immutable(frozen=True, slots=True)
class Reading(Value):
    """What a clock showed, before the event with the number ``moment``."""

    node: ast.AST
    moment: int
    depth: int


class DeviceQueue(Component):
    """The events of a file, in the order in which they are interpreted."""

    shared = True

    def __init__(self, interpreter: Interpreter) -> None:
        self.events: list[Event] = []

    def is_empty(self, frame: Frame, node: ast.AST) -> bool:
        """Whether the host has just waited, in this round and not at ``node``, so that nothing is left to wait for."""
        began = frame.loops[-1].moment if frame.loops else 0
        last = self.events[-1] if len(self.events) > began else None
        return last is not None and last.what is QueueEvent.WAIT and last.node is not node

    def enter(self, frame: Frame, loop: Loop) -> None:
        """A round of a loop begins."""
        loop.moment = len(self.events)
        frame.loops.append(loop)

    def work(self, frame: Frame, node: ast.AST, place: Device) -> None:
        """The device at ``place`` was given something to do; on the CPU that is done at once."""
        chosen = all(leaf.role is not Role.INPUT for leaf in place.leaves())
        if chosen and place.differs(device.CPU) is True:
            self.events.append(Event(QueueEvent.WORK, node, len(frame.loops)))

    def wait(self, frame: Frame, node: ast.AST) -> None:
        """The host waited."""
        self.events.append(Event(QueueEvent.WAIT, node, len(frame.loops)))

    def unseen(self, frame: Frame, node: ast.AST) -> None:
        """Something was called that cannot be followed."""
        if not self.events or self.events[-1].what is not QueueEvent.UNSEEN:
            self.events.append(Event(QueueEvent.UNSEEN, node, len(frame.loops)))


def harmless(call: Call) -> bool:
    """Whether a call outside of torch is given nothing that could make it wait."""
    return all(isinstance(value, (Const, Reading, Flag, Named)) for value in call.values())


# -- what makes the host wait ------------------------------------------------------------------------------------------


def method(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
    """A method call: it may wait for what its receiver will be, or give the device more to do."""
    name = node.attr
    if name == "backward":
        frame.component(DeviceQueue).work(frame, call.node, as_tensor(receiver).device)
    elif name == "numpy":
        # what is on an accelerator raises, and nobody waits, unless it is told to copy
        if is_literal(call.argument(0, "force"), True):
            wait(frame, call.node, node.value, receiver, name)
    elif name in WRITERS:
        written(frame, call, name)
    elif surely_tensor(receiver) and name in SHAPED:
        for given, value in call.given():
            numbered(frame, call.node, given, value, name)
    elif name in FETCHES or _goes_home(call, name) or (surely_tensor(receiver) and _blocks(name)):
        wait(frame, call.node, node.value, receiver, name)


def _blocks(name: str) -> bool:
    entry = torch_table.method(name)
    return entry is not None and entry.sync == "always"


def _goes_home(call: Call, name: str) -> bool:
    """Whether a method copies to the host, and does so at once."""
    if name == "type":
        place = type_place(call.argument(0, "dtype"))
        return place is not None and place.kind is Kind.CPU
    if name != "to":
        return False
    place = placement(call.positional[0]) if call.positional else None
    return place is not None and place.kind is Kind.CPU and "non_blocking" not in call.keywords


def reads(frame: Frame, call: Call, path: str) -> Value:
    """A function that prints what it is given, or makes a number of it."""
    for node, value in zip(call.nodes, call.positional, strict=False):
        shown(frame, call.node, node, value)
    return UNKNOWN


def shown(frame: Frame, node: ast.AST, read_node: ast.expr, value: Value) -> None:
    """A value is printed or made a number: of a tensor, that is a read."""
    if is_definite(value):
        wait(frame, node, read_node, value, "print")
    elif isinstance(value, (Opaque, Unknown)) and getattr(value, "hint", "") not in ("number", "device", "host"):
        for observer in events.heard(frame, "on_wait"):
            observer.on_wait(frame, node, read_node, value, "print")
        frame.component(DeviceQueue).unseen(frame, node)


def written(frame: Frame, call: Call, name: str) -> None:
    """A function or a method writes down numbers, which it makes of the tensors that it is given, in a dict perhaps."""
    for node, value in (part for given in call.given() for part in _entries(*given)):
        if is_definite(value):
            wait(frame, call.node, node, value, name)
            return
        if isinstance(node, ast.Name):
            shown(frame, call.node, node, value)


def _entries(node: ast.expr, value: Value) -> list[tuple[ast.expr, Value]]:
    """What a dict holds, each with the code that says so, or what else there is."""
    if not isinstance(value, Mapping):
        return [(node, value)]
    shown = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
    spelled: dict[object, ast.expr] = {key.value: held for key, held in shown if isinstance(key, ast.Constant)}
    return [*((spelled.get(key, node), held) for key, held in value.items), (node, value.other)]


def numbered(frame: Frame, node: ast.AST, read_node: ast.expr, value: Value, spelled: str) -> None:
    """A value stands where Python or torch needs a number, or several: a tensor is read there."""
    for part in (value.items or ()) if isinstance(value, Sequence) else (value,):
        if isinstance(part, Tensor) and part.certain and not part.optional:
            if part.device.known:
                wait(frame, node, read_node, part, spelled)
            else:
                frame.component(DeviceQueue).unseen(frame, node)
            return


def tested(frame: Frame, node: ast.expr, value: Value) -> None:
    """A condition: of a tensor, it is a read."""
    if isinstance(value, Tensor) and value.certain and not value.optional:
        wait(frame, node, node, value, "bool")


def wait(frame: Frame, node: ast.AST, read_node: ast.expr, value: Value, spelled: str) -> None:
    """The host reads ``value``, unless that is on the host."""
    if as_tensor(value).device.accelerates() is not False:
        for observer in events.heard(frame, "on_wait"):
            observer.on_wait(frame, node, read_node, value, spelled)
        frame.component(DeviceQueue).wait(frame, node)
