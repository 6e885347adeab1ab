"""Tensors handed to what reads the host's memory alone: arrays, plots, estimators, lengths of sequences."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint import device
from devlint.device import Device, Role
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.schema import Row
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import CONSUMER
from devlint.flow.domain.values import Batches, Const, Opaque, Sequence, Tensor, Unknown, Value, as_tensor
from devlint.flow.syntax import device_tests
from devlint.immutable import replace
from devlint.sites.base import Operand, Step
from devlint.sites.placement import HostRead

READERS = frozenset({"numpy", "__array__"})
"""The methods by which a tensor becomes an array."""
_Met = tuple[ast.AST, Value]


def method(frame: Frame, call: Call, receiver: Value, name: str) -> None:
    """``receiver.numpy()``."""
    forced = call.argument(0, "force")
    if name in READERS and (forced is None or (isinstance(forced, Const) and forced.value is False)) and not call.open:
        node = call.node.func
        if isinstance(node, ast.Attribute):
            _note(frame, call, f"torch.Tensor.{name}", [(node.value, receiver)])
            _for_one_kind(frame, call, node, receiver)


def _for_one_kind(frame: Frame, call: Call, node: ast.Attribute, receiver: Value) -> None:
    """A tensor is read that was copied to the host only from one kind of accelerator."""
    if not isinstance(receiver, (Tensor, Opaque, Unknown)) or not any(
        map(frame.interpreter.index.mentions, device_tests.WORDS)
    ):
        return
    test = device_tests.for_one_kind(frame.inside, node)
    if test is not None and not frame.interpreter.muted:
        operand = replace(
            frame.operand(node.value, receiver), story=(Step(test, "others than these stay where they are"),)
        )
        frame.emit(HostRead(call.node, scope_of(frame), f"torch.Tensor.{node.attr}", "one kind", (operand,)))


def stated(frame: Frame, call: Call, path: str, row: Row) -> None:
    """A call of another library, which wants arrays, or tensors on the CPU."""
    single, several = "*" in row.must_be_cpu, "*[]" in row.must_be_cpu
    if single or several:
        _arguments(frame, call, path, single, several)
    for name in row.must_be_cpu:
        position = row.parameters.index(name) if name in row.parameters else -1
        node, value = call.argument_node(position, name), call.argument(position, name)
        if node is not None and value is not None and _tensor(value):
            _note(frame, call, path, [(node, value)])


def lengths(frame: Frame, call: Call, path: str, entry: torch_table.Function) -> None:
    """Arguments of a function of torch that have to be on the CPU."""
    for name in entry.must_be_cpu:
        position = entry.parameters.index(name)
        node, value = call.argument_node(position, name), call.argument(position, name)
        if node is not None and value is not None:
            sequences = call.argument(0, entry.parameters[0])
            beside = device.UNKNOWN if sequences is None else frame.state.settled(as_tensor(sequences).device)
            _note(frame, call, path, [(node, value)], kind="lengths", beside=beside)


def _arguments(frame: Frame, call: Call, path: str, single: bool, several: bool) -> None:
    given = call.given()
    alone = [(node, value) for node, value in given if single and not isinstance(value, Sequence)]
    for node, value in given if several else ():
        if isinstance(value, Sequence) and isinstance(node, (ast.List, ast.Tuple)) and value.items is not None:
            alone += zip(node.elts, value.items, strict=False)
        elif isinstance(value, Sequence):
            _note(frame, call, path, [(node, value.item)], several=True)
    _note(frame, call, path, [(node, value) for node, value in alone if _tensor(value)])


def _tensor(value: Value) -> bool:
    """Whether a value is a tensor where any object would do: what a network returns need not be one."""
    return isinstance(value, (Tensor, Batches)) or (isinstance(value, Opaque) and value.hint == "tensor")


def _note(
    frame: Frame,
    call: Call,
    path: str,
    met: Iterable[_Met],
    several: bool = False,
    kind: str = "array",
    beside: Device = device.UNKNOWN,
) -> None:
    away = [(node, value) for node, value in met if _away(frame, value)]
    if away:
        operands = tuple(_operand(frame, node, value) for node, value in away)
        computed = all(not isinstance(value, Opaque) or value.derived for _, value in away)
        frame.emit(HostRead(call.node, scope_of(frame), path, kind, operands, several, computed, beside))


def _operand(frame: Frame, node: ast.AST, value: Value) -> Operand:
    """The site's view of a tensor: what a module took as its input is where the module is."""
    operand = frame.operand(node, value)
    place = CONSUMER.of(frame.state.heap, operand.device.symbol)
    return replace(operand, device=_elsewhere(operand.device if place is None else place))


def _elsewhere(place: Device) -> Device:
    """A place that is known only where there is an accelerator, as it is there: without one nothing fails."""
    return place if place.known else place.assume(device.AVAILABLE, True)


def _away(frame: Frame, value: Value) -> bool:
    """Whether a value may well be on an accelerator."""
    if not isinstance(value, (Tensor, Batches, Opaque)) or frame.state.hosted or frame.interpreter.muted:
        return False
    if frame.interpreter.of_another_library:
        return False
    if isinstance(value, Opaque) and value.role is not Role.INPUT and not value.near.known:
        return False
    tensor = as_tensor(value)
    place = _elsewhere(frame.state.settled(tensor.device))
    if not place.known:
        place = tensor.near
    return place.known and place.accelerates() is not False
