"""``x.data = ...``: a tensor gets other memory, under all its names."""

from __future__ import annotations

from devlint import device
from devlint.device import Device
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.heap import DEVICE
from devlint.flow.domain.values import Sequence, Tensor, Value, as_tensor
from devlint.immutable import replace


def retarget(frame: Frame, tensor: Value, attribute: str, data: Value) -> None:
    """All that holds the tensor holds it where the data is; a module whose parameter it may be is there, or is not."""
    state, given = frame.state, as_tensor(data)
    if attribute != "data" or not isinstance(tensor, Tensor) or given.device == tensor.device:
        return
    moved = replace(tensor, device=given.device, story=given.story, factory="", factory_node=None)
    moved = replace(moved, attribute=None, apart=True)
    for name, value in list(state.env.items()):
        state.env[name] = _exchanged(value, tensor, moved)
    for place, held in list(state.heap.items()):
        if isinstance(held, Value):
            state.heap[place] = _exchanged(held, tensor, moved)
        elif place[1] is DEVICE and isinstance(held, Device) and tensor.buffer and held == tensor.device:
            state.heap[place] = device.UNKNOWN


def _exchanged(value: Value, tensor: Tensor, moved: Tensor) -> Value:
    if value is tensor:
        return moved
    if isinstance(value, Sequence) and (value.item is tensor or any(item is tensor for item in value.items or ())):
        return Sequence(None, replace(moved, device=device.UNKNOWN), value.mutable)
    return value
