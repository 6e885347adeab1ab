"""Numbers that take the place of a tensor's own, made on the default device: `x.data = torch.zeros(3)`."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import Device
from devlint.flow.catalog.methods import MOVERS
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import as_tensor, surely_tensor
from devlint.flow.domain.values import Value
from devlint.flow.observers.hints.mixed_operands import is_fresh, lives_with_caller
from devlint.flow.program.type_hints import TENSOR_ONLY
from devlint.flow.syntax import names, nodes
from devlint.immutable import replace
from devlint.sites.placement import Hint, HintKind


class ReplacedData(Observer):
    """Tensors that are where their numbers are from then on, whatever else is said of them."""

    def on_data(self, frame: Frame, target: ast.Attribute, base: Value, value: Value) -> None:
        """A tensor is given other numbers."""
        made = as_tensor(value).origin.node
        # what sets up a tensor does so before anybody has moved it
        if not is_fresh(value) or made is None or (frame.info is not None and frame.info.initialises):
            return
        beside = frame.operand(target.value, base)
        tensor = replace(as_tensor(base), certain=surely_tensor(base) or _is_read(frame, target.value))
        if not lives_with_caller(tensor):
            beside = replace(beside, device=_moved_to(frame, target.value))
        if beside.device.known:
            frame.emit(Hint(target, scope_of(frame), HintKind.REPLACED, frame.operand(made, value), beside))


def _is_read(frame: Frame, node: ast.expr) -> bool:
    """Whether the code uses the numbers of something as only those of a tensor can be used: `x.data.uniform_()`."""
    path = f"{names.dotted(node)}.data"
    return any(
        isinstance(part, ast.Attribute)
        and names.dotted(part.value) == path
        and (part.attr in TENSOR_ONLY or (part.attr.endswith("_") and not part.attr.startswith("_")))
        for part in frame.inside
    )


def _moved_to(frame: Frame, node: ast.expr) -> Device:
    """Where another method of the class puts an attribute, if one does."""
    if not names.of_self(node) or frame.owner is None:
        return device.UNKNOWN
    for info in frame.owner.methods.values():
        for call in info.calls:
            name = names.method(call)
            if name in MOVERS - {"cpu"} and names.called(call).rpartition(".")[0] == names.dotted(node):
                said = next((names.dotted(part) for part in nodes.given(call) if isinstance(part, ast.expr)), "")
                return device.symbol(f"{frame.name}:{said}", said) if said else device.accelerator(name)
    return device.UNKNOWN
