"""What a module is given beside its input: lengths, sizes and places may well stay on the CPU, and many have to.

The first tensor of a call meets the module's layers.  The others do where ``forward`` is seen to bring them together
with anything elsewhere; of a module whose code is not seen nobody knows.
"""

from __future__ import annotations

from devlint.device import Device, Kind, Role
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.values import Module, Tensor, Value, as_tensor
from devlint.flow.models.nn.parallel import WRAPPERS
from devlint.flow.program.symbols import ClassInfo
from devlint.flow.transfer.placement import Met
from devlint.sites.base import Step
from devlint.sites.placement import Forward, Operation


def due(frame: Frame, call: Call, module: Module, place: Device, inputs: list[Met]) -> list[Met]:
    """Those of the tensors that go into a module which have to be where the module is, as far as is known."""
    if module.path in WRAPPERS and isinstance(module.wraps, Module):
        module = module.wraps
    if len(inputs) < 2 or module.path.startswith("torch.nn."):
        return inputs
    places = [frame.state.settled(as_tensor(value).device) for _, value, _ in inputs]
    strays = [number for number, where in enumerate(places) if where.differs(place)]
    if not strays or strays[0] == 0 or not all(places[number].kind is Kind.CPU for number in strays):
        return inputs
    missed = _missed(frame, call, module.cls, [inputs[number][1] for number in strays])
    return [met for number, met in enumerate(inputs) if number not in strays or id(met[1]) in missed]


def _missed(frame: Frame, call: Call, info: ClassInfo | None, strays: list[Value]) -> set[int]:
    """Those of the arguments, by identity, which ``forward`` brings together with what is elsewhere."""
    if info is None:
        return set()
    marks = {id(value): Step(call.node, f"argument {number}") for number, value in enumerate(strays)}
    probes = {
        id(value): Tensor(as_tensor(value).device, many=as_tensor(value).many, story=(marks[id(value)],))
        for value in strays
    }
    heard = frame.interpreter.overhear(frame, info, call.probing(probes))
    return {known for known, mark in marks.items() if any(_is_stray(site, mark) for site in heard)}


def _is_stray(site: Operation | Forward, mark: Step) -> bool:
    """Whether a claim is of the argument: what it was computed from is told in its story."""
    operands = site.inputs if isinstance(site, Forward) else site.operands
    return any(mark in operand.story for operand in operands if operand.device.role is not Role.PLACE)
