"""Random numbers: which generator they are drawn with, and on which device."""

from __future__ import annotations

import ast

from devlint import device
from devlint.flow.catalog.concepts import GENERATOR
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import CLASSES, MODELS, ObjectModel
from devlint.flow.domain.values import (
    UNKNOWN,
    DeviceValue,
    Stateful,
    Tensor,
    Value,
    as_tensor,
    is_none,
    named_place,
)
from devlint.flow.transfer import api_use
from devlint.flow.transfer.defaults import generator_place
from devlint.flow.transfer.placement import blend, meet, stranded
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
    if given is None or place is None or not isinstance(tensor, Tensor):
        return result
    made_at = given.node if isinstance(given, Stateful) else None
    story = () if made_at is None else (Step(made_at, f"the generator is made on {place} here"),)
    generator = Tensor(place, many=True, certain=True, story=story)
    operands = ((call.keyword_nodes["generator"], generator, "generator"), (node, tensor, ""))
    clash = meet(frame, call.node, operator, OperationKind.GENERATOR, operands)
    return replace(stranded(as_tensor(result)), device=blend(generator, tensor).device) if clash else result


class _Generator(ObjectModel):
    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value:
        return value if node.attr == "manual_seed" else UNKNOWN


MODELS.register({GENERATOR: _made, "torch.manual_seed": _seeded})
CLASSES.register({GENERATOR: _Generator()})
