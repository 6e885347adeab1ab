"""Tensors handed to what reads the host's memory alone: arrays, plots, estimators, lengths of sequences."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint import device
from devlint.device import Device, Role
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.concepts import TENSOR
from devlint.flow.catalog.schema import Row
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import CONSUMER
from devlint.flow.domain.tensors import Batches, Tensor, as_tensor, is_definite
from devlint.flow.domain.values import Opaque, Sequence, Unknown, Value, is_literal
from devlint.flow.syntax import device_tests
from devlint.flow.transfer.indexing import ROUND
from devlint.immutable import replace
from devlint.sites.base import Operand, Step
from devlint.sites.placement import HostRead

_READERS = frozenset({"numpy", "__array__"})
"""The methods by which a tensor becomes an array."""
_Met = tuple[ast.AST, Value]


class HostReads(Observer):
    """What is read on the host although it may be on an accelerator."""

    wants_inlined = True

    def on_method(self, frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
        """``receiver.numpy()``."""
        if node.attr not in _READERS or call.open:
            return
        forced = call.argument(0, "force")
        if forced is None or is_literal(forced, False):
            _note(frame, call, f"{TENSOR}.{node.attr}", [(node.value, receiver)])
            _for_one_kind(frame, call, node, receiver)

    def on_unfollowed_call(self, frame: Frame, call: Call, path: str, row: Row | None) -> None:
        """A call of another library, which wants arrays, or tensors on the CPU."""
        if row is None or not row.must_be_cpu:
            return
        _arguments(frame, call, path, row)
        for name in row.must_be_cpu:
            position = row.parameters.index(name) if name in row.parameters else -1
            node, value = call.argument_node(position, name), call.argument(position, name)
            if node is not None and value is not None and is_definite(value):
                _note(frame, call, path, [(node, value)])

    def on_library_call(self, frame: Frame, call: Call, path: str) -> None:
        """Arguments of a function of torch that have to be on the CPU."""
        entry = torch_table.function(path)
        if entry is None:
            return
        for name in entry.must_be_cpu:
            position = entry.parameters.index(name)
            node, value = call.argument_node(position, name), call.argument(position, name)
            if node is not None and value is not None:
                sequences = call.argument(0, entry.parameters[0])
                beside = device.UNKNOWN if sequences is None else frame.settled(as_tensor(sequences).device)
                _note(frame, call, path, [(node, value)], kind="lengths", beside=beside)


def _for_one_kind(frame: Frame, call: Call, node: ast.Attribute, receiver: Value) -> None:
    """A tensor is read that was copied to the host only from one kind of accelerator."""
    if not isinstance(receiver, (Tensor, Opaque, Unknown)) or not any(
        map(frame.interpreter.index.mentions, device_tests.WORDS)
    ):
        return
    test = device_tests.for_one_kind(frame.inside, node)
    if test is not None:
        operand = replace(
            frame.operand(node.value, receiver), story=(Step(test, "others than these stay where they are"),)
        )
        frame.emit(HostRead(call.node, scope_of(frame), f"{TENSOR}.{node.attr}", "one kind", (operand,)))


def _arguments(frame: Frame, call: Call, path: str, row: Row) -> None:
    single, several = "*" in row.must_be_cpu, "*[]" in row.must_be_cpu
    anywhere = [node for name, node in call.keyword_nodes.items() if name in row.accepts_cpu]
    given = [one for one in call.given() if one[0] not in anywhere]
    alone = [(node, value) for node, value in given if single and not isinstance(value, Sequence)]
    for node, value in given if several else ():
        if isinstance(value, Sequence) and isinstance(node, (ast.List, ast.Tuple)) and value.items is not None:
            alone += zip(node.elts, value.items, strict=False)
        elif isinstance(value, Sequence):
            _note(frame, call, path, [(node, value.item)], several=True)
    _note(frame, call, path, [(node, value) for node, value in alone if _is_tensor(value)])


def _is_tensor(value: Value) -> bool:
    """Whether something is known to be a tensor, or annotated as one."""
    return is_definite(value) or (isinstance(value, Opaque) and value.hint == "tensor" and not value.derived)


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
    if not isinstance(value, (Tensor, Batches, Opaque)) or frame.state.hosted:
        return False
    if frame.interpreter.catalog.is_foreign(frame.interpreter.index.imports.values()):
        return False
    if isinstance(value, Opaque) and value.role is not Role.INPUT and not value.near.known:
        return False
    tensor = as_tensor(value)
    place = _elsewhere(frame.settled(tensor.device))
    if f"{ROUND}[" in place.symbol:
        # a part of a batch: from the host, as long as nobody moves it
        return False
    if not place.known:
        place = tensor.near
    return place.known and place.accelerates() is not False
