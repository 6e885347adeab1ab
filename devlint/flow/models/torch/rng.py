"""Random numbers: the generator that they are drawn with, and the distribution that they are of."""

from __future__ import annotations

import ast

from devlint import device
from devlint.flow.catalog import distributions
from devlint.flow.catalog.concepts import GENERATOR
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import CLASSES, MODELS, ObjectModel
from devlint.flow.domain.objects import Stateful
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.tensors import DeviceValue, Tensor, as_tensor, named_place, surely_tensor
from devlint.flow.domain.values import UNKNOWN, Sequence, Value, is_none, is_number
from devlint.flow.transfer import api_use
from devlint.flow.transfer.defaults import default_place, generator_place
from devlint.flow.transfer.device_queue import DeviceQueue
from devlint.flow.transfer.placement import Met, blend, derived, is_tensor, meet, stranded
from devlint.immutable import replace
from devlint.sites.base import Step
from devlint.sites.placement import OperationKind


def _made(frame: Frame, call: Call, path: str) -> Stateful:
    """A ``torch.Generator``, which stays where it is made."""
    node = call.argument_node(0, "device")
    if node is not None:
        api_use.device(frame, node, "device", call.argument(0, "device"), call)
    given = call.argument(0, "device")
    place = device.CPU
    if call.open or call.starred:
        place = device.UNKNOWN
    elif given is not None and not is_none(given):
        place = named_place(given) or device.UNKNOWN
    return Stateful(GENERATOR, (DeviceValue(place, call.node),), call.node)


def _seeded(frame: Frame, call: Call, path: str) -> Stateful:
    """``torch.manual_seed``, which returns the generator of the CPU."""
    return Stateful(GENERATOR, (DeviceValue(device.CPU, call.node),), call.node)


def numbers(frame: Frame, call: Call, operator: str, met: tuple[ast.AST, Value], result: Value) -> Value:
    """Numbers are drawn where ``met`` is, a tensor and its node: the generator has to be there, too.

    Returns the result, which is where it was meant to be if that surely fails.
    """
    node, tensor = met
    given = call.keywords.get("generator")
    place = None if given is None else generator_place(given)
    spelled = call.keyword_nodes.get("generator")
    if given is None or spelled is None or place is None or not isinstance(tensor, Tensor):
        return result
    made_at = given.node if isinstance(given, Stateful) else None
    origin = Origin(() if made_at is None else (Step(made_at, f"the generator is made on {place} here"),))
    generator = Tensor(place, many=True, certain=True, origin=origin)
    operands = ((spelled, generator, "generator"), (node, tensor, ""))
    clash = meet(frame, call.node, operator, OperationKind.GENERATOR, operands)
    return stranded(as_tensor(result)) if clash else result


class _Generator(ObjectModel):
    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value:
        return value if node.attr == "manual_seed" else UNKNOWN


def is_one(value: object) -> bool:
    """Whether a value is a distribution."""
    return isinstance(value, Stateful) and value.path.startswith(distributions.ROOT) and bool(value.tensors)


def is_kept(value: Value) -> bool:
    """Whether a distribution is kept by a module, which does not move what it holds."""
    return isinstance(value, Stateful) and as_tensor(value.tensors[0]).origin.attribute is not None


def _called(frame: Frame, call: Call, path: str) -> Value:
    """A call of something in ``torch.distributions``."""
    if path in distributions.DIVERGENCE:
        return _divergence(frame, call)
    name = path.rpartition(".")[2]
    if name in distributions.AROUND:
        inner = call.positional[distributions.AROUND[name] :][:1]
        return inner[0] if inner and is_one(inner[0]) else UNKNOWN
    if name not in distributions.PARAMETERS or call.open or call.starred:
        return UNKNOWN
    named = [
        call.argument(position, parameter) for position, parameter in enumerate(distributions.PARAMETERS[name].split())
    ]
    given = [value for value in named if value is not None and not is_none(value)]
    held = _parameters(frame, call, given)
    return UNKNOWN if held is None else Stateful(f"{distributions.ROOT}{name}", (held,), call.node)


def _parameters(frame: Frame, call: Call, given: list[Value]) -> Tensor | None:
    """The parameters as one tensor, ``None`` where nothing says where they are."""
    tensors = [value for value in given if surely_tensor(value)]
    if tensors:
        # a number, and what has to be a tensor or a number, is where they are
        held = blend(*tensors)
        return held if held.device.known or held.near.known else None
    place = default_place(frame)
    if place is None or not given or not all(map(is_number, given)):
        return None
    step = Step(call.node, "made of numbers, on the CPU, here")
    return Tensor(place, many=False, rank=0, origin=Origin((step,)))


def _method(frame: Frame, call: Call, receiver: Stateful, node: ast.Attribute) -> Value:
    """The result of a distribution's method."""
    frame.component(DeviceQueue).unseen(frame, call.node)
    held = as_tensor(receiver.tensors[0])
    if node.attr in distributions.DRAWN:
        drawn = derived(held, many=_dimensions(call, receiver, held))
        if drawn.device.implied and drawn.origin.node is None:
            # nobody chose a device, and what can be moved elsewhere is what was drawn
            origin = replace(drawn.origin, factory=f"{receiver.path}.{node.attr}", node=call.node)
            drawn = replace(drawn, origin=origin)
        return drawn if node.attr == "rsample" else replace(drawn, grad="")
    if node.attr in distributions.OF_VALUES:
        return _met(frame, call, node, receiver, held)
    return receiver if node.attr == "expand" else _told(receiver, node.attr)


def _told(receiver: Stateful, name: str) -> Value:
    """What a distribution tells of itself, by an attribute or a method."""
    return derived(replace(as_tensor(receiver.tensors[0]), many=None)) if name in distributions.OWN else UNKNOWN


def _dimensions(call: Call, receiver: Stateful, held: Tensor) -> bool | None:
    """Whether what is drawn has dimensions."""
    size = call.argument(0, "sample_shape")
    if size is not None and not (isinstance(size, Sequence) and not size.items):
        return True
    # of the probabilities of one thing, a number is drawn
    return None if receiver.path.endswith("Categorical") else held.many


def _met(frame: Frame, call: Call, node: ast.Attribute, receiver: Stateful, held: Tensor) -> Value:
    """A value meets the parameters."""
    value, where = call.argument(0, "value"), call.argument_node(0, "value")
    if value is None or where is None or not is_tensor(value):
        return derived(replace(held, many=None))
    name = receiver.path.rpartition(".")[2]
    return _compared(frame, call, f"{name}.{node.attr}", [(node.value, held, ""), (where, value, "")])


def _divergence(frame: Frame, call: Call) -> Value:
    """Two distributions are compared."""
    given = [(node, value) for node, value in call.given() if isinstance(value, Stateful) and is_one(value)]
    held: list[Met] = [(node, value.tensors[0], "") for node, value in given]
    if len(held) < 2:
        return UNKNOWN
    return _compared(frame, call, "kl_divergence", held)


def _compared(frame: Frame, call: Call, operator: str, met: list[Met]) -> Value:
    """What is computed of the parameters of distributions, and perhaps of a value."""
    clash = meet(frame, call.node, operator, OperationKind.OPERANDS, met)
    result = replace(blend(*(value for _, value, _ in met)), many=None, rank=None)
    return stranded(result) if clash else result


class _Distribution(ObjectModel):
    keeps_tensors = True

    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value:
        return _method(frame, call, value, node) if isinstance(value, Stateful) else UNKNOWN

    def attribute(self, frame: Frame, node: ast.Attribute, value: Value) -> Value:
        return _told(value, node.attr) if isinstance(value, Stateful) else UNKNOWN


MODELS.register({distributions.ROOT: _called, GENERATOR: _made, "torch.manual_seed": _seeded})
CLASSES.register({distributions.ROOT: _Distribution(), GENERATOR: _Generator()})
