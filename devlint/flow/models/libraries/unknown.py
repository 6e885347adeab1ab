"""What nobody knows: names of other libraries, and objects of which the code shows at most that they are tensors."""

from __future__ import annotations

import ast

from devlint.device import UNKNOWN as UNKNOWN_DEVICE
from devlint.device import Role
from devlint.flow.catalog import modules
from devlint.flow.catalog.schema import Row
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import CLASSES, KINDS, MODELS, ObjectModel
from devlint.flow.domain.join import type_place
from devlint.flow.domain.tensors import Tensor, as_tensor
from devlint.flow.domain.values import UNKNOWN, Opaque, Unknown, Value
from devlint.flow.models.data.loaders import Loaders, wrapped
from devlint.flow.models.libraries import encoders
from devlint.flow.models.nn import forward
from devlint.flow.models.nn import methods as module_methods
from devlint.flow.models.torch import moves, tensor_methods
from devlint.flow.syntax import names
from devlint.flow.transfer import api_use, device_queue, havoc, placement
from devlint.flow.transfer.device_queue import DeviceQueue
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.placement import derive
from devlint.immutable import replace


def function(frame: Frame, call: Call, path: str) -> Value:
    """The result of calling something imported of which nobody knows anything."""
    unfollowed(frame, call)
    return wrapped(call, result(frame, call, path))


def unfollowed(frame: Frame, call: Call) -> None:
    """A call of another library goes where nobody sees what becomes of its arguments."""
    frame.component(Escapes).data(call.values())
    if not device_queue.harmless(call):
        frame.component(DeviceQueue).unseen(frame, call.node)
    havoc.handed(frame, call)


def result(frame: Frame, call: Call, path: str) -> Value:
    """What such a call returns."""
    told(frame, call, path)
    return derive(frame, call)


def told(frame: Frame, call: Call, path: str, row: Row | None = None) -> None:
    """Observers hear of a call of another library, and of the devices that it is given."""
    for observer in events.heard(frame, "on_unfollowed_call"):
        observer.on_unfollowed_call(frame, call, path, row)
    api_use.devices(frame, call, known=row is not None)


class _Anything(ObjectModel):
    """An object of which nothing is known."""

    def called(self, frame: Frame, call: Call, value: Value) -> Value:
        for observer in events.heard(frame, "on_unfollowed_call"):
            observer.on_unfollowed_call(frame, call, "", None)
        frame.component(Escapes).data(call.values())
        frame.component(DeviceQueue).unseen(frame, call.node)
        havoc.grown(frame, call)
        havoc.handed(frame, call)
        if encoders.makes_tensors(call):
            return encoders.encoded(frame, call)
        return wrapped(call, derive(frame, call))

    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value:
        return _method(frame, call, value, node)


class _Opaque(ObjectModel):
    """An object that has an identity, and may show itself to be a tensor, a device or a module."""

    def called(self, frame: Frame, call: Call, value: Value) -> Value | None:
        api_use.devices(frame, call)
        placed = forward.placed_stranger(frame, value) if isinstance(value, Opaque) else None
        return None if placed is None else forward.forward(frame, call, placed)

    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value | None:
        return _opaque_method(frame, call, value, node) if isinstance(value, Opaque) else None


def _opaque_method(frame: Frame, call: Call, receiver: Opaque, node: ast.Attribute) -> Value | None:
    """A method of something that shows itself to be a tensor, a device or a module; ``None`` of anything else."""
    name = node.attr
    proven = tensor_methods.proves(call, name)
    if receiver.hint == "host" and proven:
        # arrays have some of these, too
        return replace(receiver, key=f"{receiver.key}.{name}", text=frame.interpreter.text(call.node))
    if receiver.hint == "tensor" or ((receiver.role is Role.INPUT or receiver.near.known) and proven):
        return tensor_methods.method(frame, call, replace(receiver, hint="tensor"), node)
    if receiver.hint == "device":
        return UNKNOWN
    if name in modules.PARAMETERS and (receiver.hint == "module" or _is_part(frame, node.value)):
        place = frame.own_place() if _is_part(frame, node.value) else as_tensor(receiver).device
        return module_methods.parameters(name, Tensor(place, buffer=True))
    return None


def _is_part(frame: Frame, node: ast.expr) -> bool:
    """Whether it is an attribute of a module's ``self`` in code that runs where the module is."""
    return frame.after_init and isinstance(node, ast.Attribute) and names.dotted(node.value) == "self"


def _method(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> Value:
    """A method of something unknown; a move still says where it leads."""
    if moves.is_move(call, node.attr):
        return moves.move(frame, call, receiver, node)
    api_use.devices(frame, call)
    if node.attr == "type" and type_place(call.argument(0, "dtype")) is not None:
        # a tensor or a module
        return replace(tensor_methods.typed(as_tensor(receiver), call), certain=False)
    frame.component(Loaders).hand_over(call.values(), node.attr)
    placed = _by_whom(frame, call, receiver, node)
    if placed is not None:
        return placed
    frame.component(DeviceQueue).unseen(frame, call.node)
    if isinstance(receiver, Opaque) and node.attr in ("eval", "train", "half", "float", "requires_grad_", "bfloat16"):
        return receiver
    havoc.grown(frame, call)
    havoc.handed(frame, call, receiver)
    result = placement.derive(frame, call, receiver)
    if (
        isinstance(result, Unknown)
        and isinstance(receiver, (Opaque, Unknown))
        and tensor_methods.proves(call, node.attr)
    ):
        # it is a tensor, wherever that is
        return tensor_methods.method(frame, call, Tensor(UNKNOWN_DEVICE), node)
    return result


def _by_whom(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> Value | None:
    """A method of what itself places what it is given."""
    kind = receiver.managed.kind if isinstance(receiver, Opaque) and receiver.managed is not None else ""
    model = CLASSES.model(kind)
    return model.method(frame, call, receiver, node) if model is not None else None


MODELS.fallback = function
KINDS[Value] = _Anything()
KINDS[Opaque] = _Opaque()
