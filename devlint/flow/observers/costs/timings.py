"""Times taken of the device: differences of two readings of a clock, where the device was still at work."""

from __future__ import annotations

import ast

from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.values import Value
from devlint.flow.transfer.device_queue import DeviceQueue, QueueEvent, Reading
from devlint.sites.base import Step
from devlint.sites.costs import Timing


class Timings(Observer):
    """What is measured without waiting for it."""

    def on_subtraction(self, frame: Frame, node: ast.BinOp, left: Value, right: Value) -> None:
        """A time may have passed between two readings."""
        if not isinstance(left, Reading) or not isinstance(right, Reading) or right.depth != left.depth:
            return
        between = frame.component(DeviceQueue).events[right.moment : left.moment]
        if not between or between[-1].what is not QueueEvent.WORK:
            return
        # in a loop the host may wait in every round: what is still under way at its end is little of the whole
        if any(event.what is not QueueEvent.WORK and event.depth > right.depth for event in between):
            return
        began = Step(right.node, "the clock is read here")
        frame.emit(Timing(left.node, scope_of(frame), began, Step(between[-1].node, "the device is given work here")))
