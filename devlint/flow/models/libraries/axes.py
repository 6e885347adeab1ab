"""Functions of einops: the pattern says how many dimensions the result has, and the tensors where it is."""

from __future__ import annotations

from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import MODELS
from devlint.flow.domain.tensors import Tensor, is_definite
from devlint.flow.domain.values import Const, Sequence, Value
from devlint.flow.transfer import placement
from devlint.immutable import replace
from devlint.sites.placement import OperationKind

_OF_ONE = ("rearrange", "reduce", "repeat")
_ARROW = "->"


def _of_one(frame: Frame, call: Call, path: str) -> Value:
    """The result of a function of one tensor, or of a list of such."""
    given = call.first.items if isinstance(call.first, Sequence) and call.first.items else (call.first,)
    return _shaped(call, [value for value in given if is_definite(value)]) or placement.derive(frame, call)


def _einsum(frame: Frame, call: Call, path: str) -> Value:
    """The result of a product of several tensors, which have to be in one place."""
    operands = [(node, value, "tensors") for node, value in call.given() if placement.is_tensor(value)]
    clash = placement.meet(frame, call.node, "einsum", OperationKind.OPERANDS, operands)
    result = _shaped(call, [value for _, value, _ in operands if is_definite(value)])
    if result is None:
        return placement.derive(frame, call)
    return placement.stranded(result) if clash else result


def _shaped(call: Call, tensors: list[Value]) -> Tensor | None:
    """The tensor that comes of some; ``None`` where none of them is known."""
    result = placement.blend(*tensors)
    pattern = next((value.value for value in call.positional if isinstance(value, Const)), None)
    if not tensors or not result.device.known:
        return None
    axes = pattern.partition(_ARROW)[2].split() if isinstance(pattern, str) and _ARROW in pattern else None
    return replace(result, many=None if axes is None else bool(axes), rank=None, certain=True)


MODELS.register({**{f"einops.{name}": _of_one for name in _OF_ONE}, "einops.einsum": _einsum})
