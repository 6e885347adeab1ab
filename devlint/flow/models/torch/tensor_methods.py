"""Methods of tensors: what they return, and what has to meet."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import ITEMS
from devlint.flow.catalog import complex_numbers, methods, shapes, torch_arguments, torch_table
from devlint.flow.catalog.accelerator_api import TENSOR_INDEX
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import KINDS, ObjectModel
from devlint.flow.domain.join import items_of, type_place
from devlint.flow.domain.objects import Stateful
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.tensors import Batches, Tensor, as_tensor, is_definite
from devlint.flow.domain.values import UNKNOWN, Const, Named, Opaque, Sequence, Value, is_literal
from devlint.flow.models.torch import autograd, factories, moves, rng
from devlint.flow.program.type_hints import TENSOR_ONLY
from devlint.flow.transfer import api_use, containers, havoc, memory
from devlint.flow.transfer.device_queue import DeviceQueue
from devlint.flow.transfer.indexing import item
from devlint.flow.transfer.placement import Met, blend, derived, is_tensor, meet, met_in_place, stranded, tied, written
from devlint.immutable import replace
from devlint.sites.base import Step
from devlint.sites.placement import OperationKind


def proves(call: Call, name: str) -> bool:
    """Whether nothing but a tensor has the method, or takes it by ``dim=``."""
    return name in TENSOR_ONLY or ("dim" in call.keywords and torch_table.method(name) is not None)


def method(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> Value:
    """The result of ``tensor.name(...)``."""
    if node.attr == "float" and isinstance(receiver, Tensor) and receiver.grad == "parameter":
        # of that type are the numbers of most, which it returns as they are
        return receiver
    return numbered(call, f"torch.Tensor.{node.attr}", _method(frame, call, receiver, node))


def numbered(call: Call, path: str, result: Value) -> Value:
    """The result of a function or method, as complex or real as it says."""
    given = (value.path for value in (*call.positional, *call.keywords.values()) if isinstance(value, Named))
    dtype = next(filter(methods.is_dtype, given), None)
    made = complex_numbers.makes(path) if dtype is None else dtype in complex_numbers.TYPES
    return result if made is None or not isinstance(result, Tensor) else replace(result, complex=made)


def _method(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> Value:
    name = node.attr
    if isinstance(receiver, Batches) and name in ("items", "values", "keys", "get", "pop"):
        held = receiver.under(None)
        if name == "items":
            return Sequence(None, Sequence((UNKNOWN, held), held))
        return Sequence(None, held) if name == "values" else held if name != "keys" else UNKNOWN
    if moves.is_move(call, name):
        return moves.move(frame, call, receiver, node)
    entry = torch_table.method(name)
    tensor = as_tensor(receiver)
    if "device" in call.keywords:
        # a stranger's method may have other names for devices
        ours = (isinstance(tensor, Tensor) and tensor.certain) or (entry is not None and entry.rule.endswith("kwarg"))
        api_use.device(frame, call.named()["device"], "device", call.keywords["device"], call if ours else None)
    api_use.name(frame, node, f"torch.Tensor.{name}", call.node)
    if entry is None:
        return _of_stranger(frame, call, receiver, node)
    if entry.rule in ("python", "numpy", "none"):
        return _no_tensor(frame, call, receiver, node)
    if entry.rule == "like_input_or_kwarg":
        return factories.make(frame, call, f"torch.Tensor.{name}", entry, beside=tensor)
    if entry.rule == "cpu-pinned":
        return replace(tensor, pinned=Step(call.node, "pinned here"))
    if entry.rule.startswith("mover"):
        return typed(tensor, call, _is_dtype(frame, call)) if name == "type" else Tensor(device.UNKNOWN)
    operands = meeting(frame, call, f".{name}()", arguments(call, entry, ((node.value, receiver, "self"),)))
    kind = OperationKind.ACCUMULATOR if name == "copy_" else OperationKind.OPERANDS
    clash = len(operands) > 1 and meet(frame, call.node, f".{name}()", kind, _reacting(frame, name, operands, entry))
    result = met_in_place(tensor, operands, call.node) if name.endswith("_") else blend(*deciding(operands, entry))
    result = memory.separate(tied(result, call), name)
    if "generator" in call.keywords:
        result = as_tensor(rng.numbers(frame, call, f".{name}()", (node.value, tensor), result))
    if clash:
        result = stranded(result)
    return shaped(call, name, result, tensor)


def _of_stranger(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> Value:
    """A method that no tensor has, but perhaps what a batch is: it may wait for the device, or move what it holds."""
    frame.component(DeviceQueue).unseen(frame, call.node)
    if not isinstance(receiver, Batches):
        return UNKNOWN
    havoc.handed(frame, call, receiver)
    for value in call.values() if node.attr in containers.FILLING else ():
        containers.put_into(frame, receiver, node.value, value)
    return receiver


def _no_tensor(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> Value:
    """The result of a method that returns no tensor."""
    if node.attr == "backward":
        autograd.handed(frame, call, ".backward()", (node.value, receiver), 0, "gradient")
    return Stateful(TENSOR_INDEX, node=call.node) if node.attr == "get_device" else UNKNOWN


def _reacting(
    frame: Frame, name: str, operands: list[tuple[ast.AST, Value, str]], entry: torch_table.Function
) -> list[tuple[ast.AST, Value, str]]:
    """The operands of a method that have to be in one place."""
    if name == "copy_" and as_tensor(operands[0][1]).origin.factory:
        return operands
    reacts = checked([met for met in operands if met[2] == "self" or matters(frame, met, entry)], entry)
    if "self" in entry.rejects_cpu:
        return [written(reacts[0]), *reacts[1:]] if name.endswith("_") else reacts
    return [met for met in reacts if met[2] != "self" or not _may_be_on_cpu(frame, met[1])]


def checked(operands: list[Met], entry: torch_table.Function) -> list[Met]:
    """The operands, without an exception for those of no dimension if the kernel makes none: `torch.clamp` does not."""
    return [written(met) for met in operands] if entry.device_check == "ExactSame" else operands


def typed(tensor: Tensor, call: Call, numbers: bool = False) -> Tensor:
    """The result of ``.type(...)``: a dtype leaves the tensor where it is, a tensor type has a device of its own.

    ``numbers`` says that what is given is known to be a dtype.
    """
    given = call.argument(0, "dtype")
    place = type_place(given)
    if given is None or numbers or (place is None and isinstance(given, (Const, Named))):
        return tensor
    if place is None:
        return Tensor(device.UNKNOWN)
    label = f"converted to a type of {place} here"
    return Tensor(place, many=tensor.many, rank=tensor.rank, origin=Origin((Step(call.node, label),)))


def _is_dtype(frame: Frame, call: Call) -> bool:
    """Whether a call asks for the type of another tensor's numbers: what options call a dtype may be a tensor type."""
    node = call.argument_node(0, "dtype")
    if not isinstance(node, ast.Attribute) or node.attr != "dtype":
        return False
    with frame.interpreter.quiet():
        owner = frame.evaluate(node.value)
    return isinstance(owner, Tensor) or (isinstance(owner, Opaque) and owner.hint == "tensor")


def arguments(
    call: Call, entry: torch_table.Function, leading: tuple[tuple[ast.AST, Value, str], ...] = ()
) -> list[tuple[ast.AST, Value, str]]:
    """The tensor operands of a call, items of lists included, each with the parameter that it lands in."""
    found = list(leading)
    offset = len(leading)
    for position, (node, value) in enumerate(zip(call.nodes, call.positional, strict=False)):
        _collect(found, node, value, entry.parameter_at(position + offset) or "")
    for name, value in call.keywords.items():
        if name in call.keyword_nodes:
            _collect(found, call.keyword_nodes[name], value, name)
    return [met for met in found if met[2] not in torch_arguments.OF_SIZES]


def meeting(frame: Frame, call: Call, operator: str, operands: list[Met]) -> list[Met]:
    """The tensor arguments of a call without those that torch copies to the first one."""
    copied = torch_arguments.COPIED.get(operator.strip(".()").rpartition(".")[2])
    for met in operands:
        if met[2] == copied:
            meet(frame, call.node, operator, OperationKind.INDEXED, (operands[0], met))
    return [met for met in operands if met[2] != copied]


def _collect(found: list[tuple[ast.AST, Value, str]], node: ast.AST, value: Value, parameter: str) -> None:
    if isinstance(value, Sequence):
        nodes = node.elts if isinstance(node, (ast.List, ast.Tuple)) and value.items is not None else ()
        if value.items is not None and len(nodes) == len(value.items):
            for inner, item in zip(nodes, value.items, strict=True):
                if is_tensor(item):
                    found.append((inner, item, parameter))
        elif is_tensor(value.item):
            found.extend((node, item, parameter) for item in kinds(value.item))
    elif is_tensor(value):
        found.append((node, value, parameter))


def kinds(item: Value) -> list[Value]:
    """The different tensors that a list holds, where it was filled from several sources."""
    if not isinstance(item, Tensor) or item.device.guard is not ITEMS:
        return [item]
    return [replace(item, device=place) if place.implied else item.placed(place) for place in items_of(item.device)]


def matters(frame: Frame, met: tuple[ast.AST, Value, str], entry: torch_table.Function) -> bool:
    """Whether the operand's device counts: a CPU tensor only where torch is known to reject it."""
    return met[2] in entry.rejects_cpu or met[2] == "out" or not _may_be_on_cpu(frame, met[1])


def _may_be_on_cpu(frame: Frame, value: Value) -> bool:
    """Whether a tensor is on the CPU, on some path or in some round, where there is an accelerator."""
    place = as_tensor(value).device
    if place.kind is not device.Kind.CHOICE:
        return place.kind is device.Kind.CPU
    place = frame.state.settled(place).assume(device.AVAILABLE, True)
    return any(leaf.accelerates() is False for leaf in place.leaves())


def deciding(operands: list[tuple[ast.AST, Value, str]], entry: torch_table.Function) -> list[Value]:
    """The tensors that decide where the result lives: not those that are only sizes or indexes."""
    definite = [met for met in operands if is_definite(met[1])]
    operating = [met for met in definite if met[2] in entry.rejects_cpu or met[2] in ("self", "input", "tensors")]
    if not operating and any(met[2] in ("self", "input", "tensors") for met in operands):
        # what decides is unknown, and so is the result
        return []
    return [met[1] for met in operating or definite]


def shaped(call: Call, name: str, result: Tensor, tensor: Tensor) -> Value:
    """The result with what is known of its dimensions; several results where the function returns several."""
    result = _collecting(call, name, result, tensor)
    if name in shapes.MATRICES:
        return replace(result, many=True, rank=shapes.MATRICES[name], certain=True)
    given = [key for key in call.keywords if key in ("dim", "axis", "keepdim")]
    has_dim = bool(given) or (bool(call.positional) and name not in ("norm",))
    if name in shapes.REDUCTIONS:
        if not has_dim:
            return derived(result, many=False, rank=0)
        keeps = isinstance(kept := call.keywords.get("keepdim"), Const) and kept.value is True
        left = None if tensor.rank is None or keeps or not is_dim(call) else tensor.rank - 1
        part = replace(result, many=result.many if keeps else _more_than(left, 0), rank=left, certain=True)
        return Sequence((part, part), part) if name in shapes.PAIRS and is_dim(call) else part
    if name == "unique" and len(call.positional) < 2 and not set(call.keywords) - {"sorted"}:
        return replace(result, many=True, rank=1, certain=True)
    if name in shapes.MULTIPLE:
        part = replace(result, rank=None, certain=True)
        return Sequence(None, item(replace(result, rank=tensor.rank)) if name == "unbind" else part)
    if name in ("item", "tolist"):
        return UNKNOWN
    if name in ("squeeze", "squeeze_", "unsqueeze", "index_select") or name in shapes.SHAPED_AS:
        return _reshaped(call, name, result, tensor)
    if name in shapes.ALWAYS_MANY:
        many = True if name != "view" or call.positional else result.many
        return replace(result, many=many, rank=_sizes(call) if name in shapes.SHAPED else None, certain=True)
    if name in shapes.SAME_SHAPE or name in shapes.PERMUTED:
        return replace(result, many=result.many, rank=tensor.rank, certain=True)
    if name in ("select", "diagonal", "dot", "inner"):
        return replace(result, many=None, rank=None, certain=True)
    return replace(result, rank=None, certain=True)


def _collecting(call: Call, name: str, result: Tensor, tensor: Tensor) -> Tensor:
    """The result with what is known of its gradients."""
    if name in shapes.UNDIFFERENTIATED:
        return replace(result, grad="")
    if tensor.grad == "parameter" and (name in shapes.SELF_PERHAPS or name.endswith("_")):
        # what changes it in place gives back itself
        return replace(result, grad=tensor.grad, buffer=tensor.buffer)
    if name == "requires_grad_" and not tensor.grad:
        asked = call.argument(0, "requires_grad")
        return replace(result, grad="leaf" if asked is None or is_literal(asked, True) else "")
    return result


def _reshaped(call: Call, name: str, result: Tensor, tensor: Tensor) -> Tensor:
    """The result of what adds a dimension, takes one away, or leaves them as they are."""
    if name == "index_select":
        return replace(result, many=tensor.many, rank=tensor.rank, certain=True)
    if name in shapes.SHAPED_AS:
        other = as_tensor(call.first)
        return replace(result, many=other.many, rank=other.rank, certain=True)
    if name == "unsqueeze":
        return replace(result, many=True, rank=None if tensor.rank is None else tensor.rank + 1, certain=True)
    many = _more_than(tensor.rank, 1) if call.positional else None
    return replace(result, many=many, rank=None, certain=True)


def _sizes(call: Call) -> int | None:
    """How many dimensions a call asks for that gives their sizes one by one."""
    sizes = [value.value for value in call.positional if isinstance(value, Const)]
    known = len(sizes) == len(call.positional) and all(isinstance(size, int) for size in sizes)
    return len(sizes) if known and sizes and not call.keywords and not call.starred else None


def _more_than(rank: int | None, least: int) -> bool | None:
    """Whether there are more dimensions than so many; one too few may be none at all."""
    return None if rank is None or rank <= least else True


def is_dim(call: Call) -> bool:
    """Whether ``max(...)`` reduces along a dimension, and so returns values and indices."""
    if "dim" in call.keywords:
        return True
    last = call.positional[-1] if call.positional else None
    return isinstance(last, Const) and isinstance(last.value, int)


class TensorModel(ObjectModel):
    """Tensors, and batches of them."""

    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value:
        """The result of a method."""
        return method(frame, call, value, node)


KINDS[Batches] = TensorModel()
