"""Tensors of literals that every step makes on a device again: ``torch.tensor([1.0], device=d)``."""

from __future__ import annotations

import ast

from devlint.device import Device
from devlint.flow.catalog.creation import FROM_VALUES
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.transfer.loop_invariance import left_alone, same_values, unchanged
from devlint.sites.transfers import Upload


class Uploads(Observer):
    """Creations that copy the same values of the host in every step."""

    def on_placed_creation(self, frame: Frame, call: Call, path: str, place: Device) -> None:
        """A site, where nothing that the creation hangs on changes."""
        asked = call.argument_node(-1, "device")
        # of a tensor type, numbers that stand alone are sizes
        copies = path in FROM_VALUES if asked is not None else isinstance(call.argument_node(0, "data"), ast.List)
        if not copies or place.accelerates() is False or not place.known:
            return
        if not any(loop.step for loop in frame.loops):
            return
        scope = scope_of(frame)
        if not scope.step or scope.sometimes or not same_values(frame, call.node):
            return
        if (asked is None or unchanged(frame, asked)) and left_alone(frame, call.node):
            frame.emit(Upload(call.node, scope, path, place))
