"""Arrays of NumPy made of numbers alone, only to be copied to a device: ``torch.tensor(np.ones(3), device=d)``."""

from __future__ import annotations

from devlint.device import Device
from devlint.flow.catalog.creation import CONVERTERS
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.transfer.creations import array_behind
from devlint.sites.transfers import ArrayCopy


class ArrayCopies(Observer):
    """Copies of arrays that torch could have made where they are used."""

    def on_placed_creation(self, frame: Frame, call: Call, path: str, place: Device) -> None:
        """A site, where nothing but numbers goes into the array, and nobody else wants it."""
        data = call.argument_node(0, "data")
        converts = path in CONVERTERS or "device" not in call.keywords
        if data is None or not converts or place.accelerates() is False or not place.known:
            return
        made = array_behind(frame, call.node, data)
        if made is not None:
            frame.emit(ArrayCopy(call.node, scope_of(frame), path.rpartition(".")[2], place, made))
