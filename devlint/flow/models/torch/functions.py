"""Functions of torch by its table: which of their tensors have to meet, and where the result lives."""

from __future__ import annotations

import ast
from collections.abc import Callable

from devlint import device
from devlint.device import Role
from devlint.flow.catalog import shapes, torch_arguments, torch_table
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import MODELS
from devlint.flow.domain.tensors import Tensor, as_tensor, surely_tensor
from devlint.flow.domain.values import UNKNOWN, Opaque, Sequence, Value
from devlint.flow.models.torch import factories, rng, tensor_methods
from devlint.flow.syntax import nodes
from devlint.flow.transfer import device_queue, memory, placement
from devlint.flow.transfer.device_queue import DeviceQueue
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.placement import Met, blend, meet
from devlint.immutable import replace
from devlint.sites.placement import OperationKind

_FACTORIES = frozenset({"default_or_kwarg", "like_input_or_kwarg", "data_or_default", "arg_tensor_or_cpu", "cpu"})
"""The rules of functions that make tensors."""
_NO_TENSOR = frozenset({"python", "numpy", "none"})
"""The rules of functions that return none."""


def function(frame: Frame, call: Call, path: str) -> Value:
    """The result of calling a name of torch of which nobody knows more than the table."""
    entry = torch_table.function(path)
    if entry is not None:
        result = tensor_methods.numbered(call, path, _result(frame, call, path, entry))
        worked = _worked(frame, call, path, entry, result)
        # what fills a parameter gives back the parameter itself
        filled = call.argument(0, "tensor") if path.startswith("torch.nn.init.") and path.endswith("_") else None
        return worked if filled is None else filled
    if path.rpartition(".")[2] in device_queue.BLOCKING:
        frame.component(DeviceQueue).wait(frame, call.node)
    if path.startswith(torch_arguments.KEEPING):
        frame.component(Escapes).data(call.values())
    return UNKNOWN


def _worked(frame: Frame, call: Call, path: str, entry: torch_table.Function, result: Value) -> Value:
    """The result of a function of torch, which the device where it lives has to compute."""
    place = as_tensor(result).device
    first = call.argument(0, "input")
    node = call.argument_node(0, "input")
    if "generator" in call.keywords:
        filled = (call.node, result) if node is None or first is None or not surely_tensor(first) else (node, first)
        result = rng.numbers(frame, call, path, filled, result)
    sized = path in torch_arguments.SIZED and call.argument(1, torch_arguments.SIZED[path]) is not None
    if entry.sync == "always" and not sized and first is not None and node is not None:
        device_queue.wait(frame, call.node, node, as_tensor(first), path.rpartition(".")[2])
    elif entry.rule == "same_as_input" and place.known:
        frame.component(DeviceQueue).work(frame, call.node, place)
    return result


def _result(frame: Frame, call: Call, path: str, entry: torch_table.Function) -> Value:
    if entry.rule in _FACTORIES:
        return factories.make(frame, call, path, entry)
    if entry.rule in _NO_TENSOR:
        return UNKNOWN
    name = path.rpartition(".")[2]
    operands = tensor_methods.meeting(frame, call, path, tensor_methods.arguments(call, entry))
    if name not in torch_arguments.TAKES_NUMBERS:
        proofs = entry.rejects_cpu - torch_arguments.MAY_BE_NUMBERS
        operands = [(node, _proven(value) if role in proofs else value, role) for node, value, role in operands]
    clash = name not in torch_arguments.MOVES_ITSELF and _clash(frame, call, path, entry, operands)
    definite = tensor_methods.deciding(operands, entry) or _leading(frame, call, operands, entry, name)
    if not definite:
        return UNKNOWN
    made = memory.separate(blend(*definite), path)
    result = placement.stranded(made) if clash else placement.tied(made, call)
    shape = _SHAPES.get(name)
    if shape is not None:
        return shape(call, name, result, definite, operands)
    method = replace(call, positional=call.positional[1:], nodes=call.nodes[1:]) if call.positional else call
    return tensor_methods.shaped(method, name, result, as_tensor(definite[0]))


def _proven(value: Value) -> Value:
    """An argument that torch takes only as a tensor is one."""
    return replace(value, hint="tensor") if isinstance(value, Opaque) and not value.hint else value


def _clash(frame: Frame, call: Call, path: str, entry: torch_table.Function, operands: list[Met]) -> bool:
    """Whether tensors surely are in two places that have to be in one."""
    met = tensor_methods.checked([met for met in operands if tensor_methods.matters(frame, met, entry)], entry)
    kind = OperationKind.LOSS_TARGET if _SHAPES.get(path.rpartition(".")[2]) is _loss else OperationKind.OPERANDS
    return meet(frame, call.node, path, kind, met)


def _leading(frame: Frame, call: Call, operands: list[Met], entry: torch_table.Function, name: str) -> list[Value]:
    """The first argument, where nothing says of any that it is a tensor: what torch computes with is one."""
    first = entry.parameter_at(0) or ""
    if name in torch_arguments.TAKES_NUMBERS:
        return []
    if not operands and call.nodes and first == "input":
        return _computed(frame, call.nodes[0])
    leading = operands[:1]
    return [value for _, value, role in leading if isinstance(value, Opaque) and role == first]


def _computed(frame: Frame, node: ast.expr) -> list[Value]:
    """What an operation on arguments of the function makes, where it has to be a tensor."""
    parts = [part for part in nodes.walk(node) if isinstance(part, ast.Name)] if isinstance(node, ast.BinOp) else []
    held = [frame.lookup(part.id) for part in parts]
    given = [value for value in held if isinstance(value, Opaque) and value.role is Role.INPUT and not value.hint]
    return [replace(given[0], derived=True)] if given and len(given) == len(held) else []


# -- dimensions of results ---------------------------------------------------------------------------------------------


def _padded(call: Call, name: str, result: Tensor, definite: list[Value], operands: list[Met]) -> Value:
    """The sequences, and their lengths."""
    return Sequence((result, Tensor(device.CPU, many=True)), UNKNOWN)


def _loss(call: Call, name: str, result: Tensor, definite: list[Value], operands: list[Met]) -> Value:
    """A number, unless it is not to be reduced to one."""
    many = None if "reduction" in call.keywords else False
    return replace(result, many=many, rank=None, origin=result.origin.elsewhere())


def _joined(call: Call, name: str, result: Tensor, definite: list[Value], operands: list[Met]) -> Value:
    """Tensors put together, along a dimension that they have or a new one."""
    rank, more = as_tensor(definite[0]).rank, shapes.JOINED[name]
    if rank is None or more is None or any(as_tensor(value).rank != rank for value in definite):
        return replace(result, many=True, rank=None)
    return replace(result, many=True, rank=rank + more)


def _broadcast(call: Call, name: str, result: Tensor, definite: list[Value], operands: list[Met]) -> Value:
    """As many dimensions as the operand has that has most."""
    ranks = [as_tensor(value).rank for _, value, _ in operands]
    sure = [rank for rank in ranks if rank is not None]
    return replace(result, rank=max(sure) if sure and len(sure) == len(ranks) else None, certain=True)


def _looked_up(call: Call, name: str, result: Tensor, definite: list[Value], operands: list[Met]) -> Value:
    """Rows of a matrix: one dimension more than the numbers have that say which."""
    ranks = [as_tensor(value).rank for _, value, role in operands if role in ("input", "indices")]
    rank = ranks[0] if len(ranks) == 1 else None
    return replace(result, many=True, rank=None if rank is None else rank + 1, certain=True)


def _product(call: Call, name: str, result: Tensor, definite: list[Value], operands: list[Met]) -> Value:
    """A product of matrices."""
    return placement.ranked("@", result, [as_tensor(value) for _, value, _ in operands])


def _grid(call: Call, name: str, result: Tensor, definite: list[Value], operands: list[Met]) -> Value:
    """Several tensors, each with a dimension for each of those that span the grid."""
    part = replace(result, many=True, rank=None, certain=True)
    return Sequence(None, part)


_SHAPES: dict[str, Callable[[Call, str, Tensor, list[Value], list[Met]], Value]] = {
    "pad_packed_sequence": _padded,
    "matmul": _product,
    "embedding": _looked_up,
    "meshgrid": _grid,
    **dict.fromkeys(shapes.LOSSES, _loss),
    **dict.fromkeys(shapes.JOINED, _joined),
    **dict.fromkeys(shapes.BROADCASTING, _broadcast),
}
"""What is known of the dimensions of results that follow no rule of tensors' methods."""
MODELS.register({"torch.": function})
