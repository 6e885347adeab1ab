"""Operations: tensors that meet, whether they may, and where the result lives."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from devlint import device
from devlint.device import Device, Kind, LoopRound, Role
from devlint.flow.catalog.concepts import ARRAY
from devlint.flow.catalog.methods import TO_HOST
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import MET
from devlint.flow.domain.objects import Stateful
from devlint.flow.domain.provenance import NO_ORIGIN, Origin
from devlint.flow.domain.tensors import Batches, Tensor, as_tensor, placement, surely_tensor
from devlint.flow.domain.values import UNKNOWN, Const, Opaque, Value
from devlint.flow.program.type_hints import sent_later
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer import memory
from devlint.flow.transfer.escapes import Escapes
from devlint.immutable import replace
from devlint.sites.base import Operand
from devlint.sites.placement import COPYING, Operation, OperationKind

_ARITHMETIC = frozenset({"+", "-", "*", "/", "@"})
_COUNTING = frozenset({"+", "-", "*", "//", "%"})
"""Operators with which indexes are computed; of the others come masks, and what is no index."""
_RAISING = frozenset({OperationKind.OPERANDS, OperationKind.LOSS_TARGET})
"""The kinds of operations that take no tensor of the CPU beside others, unless it has no dimensions."""
Met = tuple[ast.AST, Value, str]
"""A tensor in an operation: its node, its value, the parameter it is passed to."""


def elementwise(frame: Frame, node: ast.AST, operator: str, operands: Sequence[Met], inplace: bool = False) -> Value:
    """An arithmetic operation or comparison: 0-dim CPU tensors may meet anything."""
    tensors = [met for met in operands if is_tensor(met[1])]
    inplace = inplace and is_tensor(operands[0][1])
    if inplace:
        tensors[0] = written(tensors[0])
    clash = meet(frame, node, operator, OperationKind.OPERANDS, tensors)
    if inplace:
        return replace(as_tensor(operands[0][1]), certain=True)
    made = memory.separate(blend(*(met[1] for met in tensors)))
    result = ranked(operator, made, [as_tensor(value) for _, value, _ in operands])
    imaginary = any(isinstance(value, Const) and isinstance(value.value, complex) for _, value, _ in operands)
    element = operator in _COUNTING and any(as_tensor(met[1]).element for met in tensors)
    result = replace(result, element=element, complex=result.complex or imaginary)
    return stranded(result) if clash else result


def reckoned_with(*operands: Value) -> list[Opaque]:
    """Those of two operands that are tensors, if the code is right: beside an array, only what is known to be one."""
    array = any(isinstance(value, Stateful) and value.path == ARRAY for value in operands)
    return [
        value
        for value in operands
        if isinstance(value, Opaque) and (value.hint == "tensor" or (value.near.known and not array))
    ]


def written(met: Met) -> Met:
    """A tensor that an operation writes to, for which there is no exception on account of its dimensions."""
    node, value, role = met
    return (node, replace(value, many=True), role) if isinstance(value, Tensor) and value.certain else met


def ranked(operator: str, result: Tensor, operands: Sequence[Tensor]) -> Tensor:
    """The result of an operator with its number of dimensions, where those of the operands are known."""
    ranks = [operand.rank for operand in operands if operand.certain]
    known = [rank for rank in ranks if rank is not None]
    if not known or len(known) < len(ranks):
        return result
    if operator == "@":
        # of two vectors comes a number
        rank = max(known) if min(known) > 1 else max(known) - 1 if len(known) == 2 else None
        return replace(result, rank=rank, many=None if rank is None else rank > 0)
    return replace(result, rank=max(known))


def stranded(tensor: Tensor) -> Tensor:
    """The result of something that raises, or is lost: it is nowhere, and nothing follows from it.

    Where a caller says where things are, it need not raise: the result is where it was meant to be.
    """
    if not is_sure(tensor.device):
        return replace(tensor, derived=True, origin=tensor.origin.plain())
    return replace(tensor, device=device.NOWHERE, derived=True, near=device.UNKNOWN, origin=tensor.origin.plain())


def is_sure(place: Device) -> bool:
    """Whether no caller says where it is."""
    return all(leaf.role not in (Role.INPUT, Role.PLACE) for leaf in place.leaves())


def derive(frame: Frame, call: Call, receiver: Value = UNKNOWN) -> Value:
    """The result of a call that cannot be followed: it probably lives with the tensors that went in."""
    given = call.values()
    frame.component(Escapes).tensors(given)
    if names.method(call.node) in TO_HOST - {"cpu"}:
        # numbers, whatever they are taken from
        return UNKNOWN
    near = as_tensor(receiver).near
    if near.known and isinstance(receiver, (Tensor, Opaque, Batches)):
        return returned(frame, call, near)
    computed = any(_goes_in(value) for value in given)
    if not computed and not _goes_in(receiver):
        return UNKNOWN
    node = call.node
    key = f"{frame.name}:call@{node.lineno}:{node.col_offset}"
    return Opaque(key, frame.interpreter.text(node), "", Role.INPUT, derived=True, computed=computed)


def _goes_in(value: Value) -> bool:
    """Whether it is a tensor of the caller or of the module, or an argument that may be one."""
    if not isinstance(value, (Tensor, Opaque, Batches)):
        return False
    tensor = as_tensor(value)
    given = tensor.certain or (isinstance(value, Opaque) and value.role is Role.INPUT and not value.hint)
    return given and all(leaf.role in (Role.INPUT, Role.PLACE) for leaf in tensor.device.leaves())


def returned(frame: Frame, call: Call, place: Device) -> Value:
    """What a network at ``place`` returns, whatever it is: tensors in it are probably there."""
    if not place.known or place.accelerates() is False:
        return UNKNOWN
    node = call.node
    key = f"{frame.name}:call@{node.lineno}:{node.col_offset}"
    return Opaque(key, frame.interpreter.text(node), derived=True, near=place)


def is_tensor(value: Value) -> bool:
    """Whether the value is a tensor, or an argument that may be one."""
    return isinstance(value, (Tensor, Batches)) or (isinstance(value, Opaque) and value.hint in ("tensor", ""))


def meet(frame: Frame, node: ast.AST, operator: str, kind: OperationKind, tensors: Iterable[Met]) -> bool:
    """Tensors that need one device: a site where two of them surely have two.

    True where they surely fail; not where a condition says that all is on the CPU, or where one is copied.
    """
    met = [(where, value, role, frame.settled(as_tensor(value).device)) for where, value, role in tensors]
    if len(met) < 2:
        return False
    clash = False
    apart: list[events.Pair] = []
    for position, one in enumerate(met):
        _, value, _, place = one
        for two in met[position + 1 :]:
            _, other, _, other_place = two
            if place.differs(other_place) is not True:
                continue
            if _is_unsaid(frame, node, place, other) or _is_unsaid(frame, node, other_place, value):
                continue
            if _is_fetched_for(frame, one[0], other_place) or _is_fetched_for(frame, two[0], place):
                continue
            if _have_met(frame, kind, value, place, other_place) or _have_met(frame, kind, other, other_place, place):
                continue
            clash = clash or _sure(value, place, other, other_place)
            apart.append((one, two))
    for observer in events.heard(frame, "on_meet") if kind is not OperationKind.INDEXED else ():
        observer.on_meet(frame, node, operator, met, apart)
    if apart:
        operands = tuple(frame.operand(where, value, role) for where, value, role, _ in met)
        if frame.after_init and operator in _ARITHMETIC:
            operands = tuple(map(_reckoned, operands, (value for _, value, *_ in met)))
        sent = _sent(frame, node, [place for *_, place in met])
        frame.emit(Operation(node, scope_of(frame), operator, kind, operands, sent))
    return clash and kind not in COPYING and not frame.state.bare


def _have_met(frame: Frame, kind: OperationKind, made: Value, place: Device, argument: Device) -> bool:
    """Whether an argument has met a tensor where that is on the CPU, as it is on one path only: then both are there.

    What was wrong about that has been told at that place, unless the tensor may have no dimensions.
    """
    tensor, heap = as_tensor(made), frame.state.heap
    if tensor.origin.node is None or argument.role is not Role.INPUT or kind not in _RAISING:
        return False
    known = MET.of(heap, argument.symbol) or ()
    if place.kind is Kind.CPU and tensor.many is not False:
        MET.put(heap, argument.symbol, tuple(dict.fromkeys((*known, tensor.origin.node))))
    # in a later round of a loop it is the same place
    again = any(isinstance(guard, LoopRound) for guard in place.guards())
    return place.kind is Kind.CHOICE and not again and tensor.origin.node in known


def strays(frame: Frame, inputs: Iterable[Met], place: Device, module: Value) -> list[Met]:
    """What goes into a module at ``place`` and is surely elsewhere."""
    place = frame.settled(place)
    found = [(met, frame.settled(as_tensor(met[1]).device)) for met in inputs]
    return [met for met, where in found if where.differs(place) and not _is_unsaid(frame, met[0], where, module)]


def _reckoned(operand: Operand, value: Value) -> Operand:
    """What a part of a module makes of tensors, and reckons with beside another one, is very probably one itself."""
    return replace(operand, certain=True, derived=True) if isinstance(value, Opaque) and value.computed else operand


def _sent(frame: Frame, node: ast.AST, places: Sequence[Device]) -> bool:
    """Whether a result is moved on to an accelerator, or what may be one, where no operand is known to be."""
    moves = [call for call in (frame.info.calls if frame.info else ()) if names.method(call) in ("to", "cuda")]
    if isinstance(node, ast.Subscript):
        # what is written into may be moved when it is full
        return any(call.lineno > node.lineno and names.root(node) in names.inside(call.func) for call in moves)
    move = next((call for call in moves if any(part is node for part in _receivers(call))), None)
    if move is None:
        return False
    given = nodes.argument(move, 0, "device")
    if given is None:
        return names.method(move) == "cuda"
    with frame.interpreter.quiet():
        value = frame.evaluate(given)
    place = as_tensor(value).device if surely_tensor(value) else placement(value)
    return place is not None and place.kind is not Kind.CPU and not any(place.same(other) for other in places)


def _receivers(call: ast.AST) -> Iterator[ast.AST]:
    """What methods are called of, one after the other, to come to a call: `x.float()` and `x` of `x.float().to()`."""
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        call = call.func.value
        yield call


def _is_unsaid(frame: Frame, node: ast.AST, place: Device, other: Value) -> bool:
    """Whether it is where an argument is of which the call that was followed says nothing, beside ``other``.

    What a method of a module is given has probably to do with the module, and what the function itself makes is not
    handed on beside the argument.  What the function itself moves to a device further down is not there by now.
    """
    if place.role is not Role.INPUT:
        return False
    # of a part of an argument it is the name of the whole
    name = place.text.partition(".")[0].partition("[")[0]
    if frame.info is not None and sent_later(frame.info, name, getattr(node, "lineno", 0)):
        return True
    if not frame.inlined or (frame.owner is not None and frame.owner.is_module):
        return False
    entered: Frame | None = frame
    while entered is not None and entered.inlined:
        if entered.info is not None and place.symbol.startswith(f"{entered.info.qualname}:"):
            made = as_tensor(other).origin.node
            return made is None or all(node is not made for node in entered.info.own)
        entered = entered.caller
    return False


def _is_fetched_for(frame: Frame, node: ast.AST, place: Device) -> bool:
    """Whether something is copied to the host right where it meets another argument: who wrote that knows it there."""
    if place.role is not Role.INPUT or not isinstance(node, ast.Call) or names.method(node) != "cpu":
        return False
    with frame.interpreter.quiet():
        fetched = frame.evaluate(node.func.value) if isinstance(node.func, ast.Attribute) else UNKNOWN
    return not place.same(as_tensor(fetched).device)


def _sure(first: Value, place: Device, second: Value, other_place: Device) -> bool:
    """Whether the two surely are tensors that cannot meet."""
    one, two = as_tensor(first), as_tensor(second)
    cpu = one if place.kind is Kind.CPU else two if other_place.kind is Kind.CPU else None
    return one.certain and two.certain and (cpu is None or cpu.many is True)


def blend(*values: Value) -> Tensor:
    """The result of an operation that keeps its operands' device."""
    tensors = [as_tensor(value) for value in values]
    # what may be a number says nothing beside what is a tensor
    tensors = [tensor for tensor in tensors if tensor.certain or tensor.batch] or tensors
    if not tensors:
        return Tensor(device.UNKNOWN)
    if len(tensors) == 1:
        return derived(tensors[0])
    many = True if any(t.many for t in tensors) else False if all(t.many is False for t in tensors) else None
    place, source = _result_place(_deciding(tensors) or tensors)
    implied = any(leaf.implied for leaf in place.leaves())
    origin = NO_ORIGIN if source is None else source.origin.plain()
    if source is not None and implied and all(t.origin.factory or t.many is False for t in tensors):
        told = source.origin
        origin = Origin(told.story, told.factory, told.node, told.needs([t.origin for t in tensors]))
    return Tensor(
        place,
        many=many,
        certain=True,
        derived=any(t.derived for t in tensors),
        grad="graph" if any(t.grad for t in tensors) else "",
        near=next((t.near for t in tensors if t.near.known), device.UNKNOWN),
        complex=any(t.complex for t in tensors),
        origin=origin,
    )


def tied(tensor: Tensor, call: Call) -> Tensor:
    """The result of a call, which cannot be had elsewhere unless its generator is there, too."""
    if "generator" not in call.keywords or not tensor.origin.factory:
        return tensor
    return _moving_with(tensor, ("generator", call.node))


def met_in_place(tensor: Tensor, operands: Sequence[Met], node: ast.AST) -> Tensor:
    """What was created, after a method wrote into it: what it took from the CPU has to come along, too."""
    others = [as_tensor(value) for _, value, role in operands if role != "self"] if tensor.origin.factory else []
    met = [
        other
        for other in others
        if other.many is not False and Kind.CPU in {leaf.kind for leaf in other.device.leaves()}
    ]
    if not met:
        return tensor
    # what nobody has just created is there for a reason
    stays = tuple(("Argument", node) for other in met if other.origin.node is None)
    return _moving_with(tensor, *tensor.origin.needs([other.origin for other in met]), *stays)


def _moving_with(tensor: Tensor, *others: tuple[str, ast.AST]) -> Tensor:
    """What cannot be created elsewhere unless others are."""
    return replace(tensor, origin=replace(tensor.origin, blended=(*tensor.origin.blended, *others)))


def _deciding(tensors: list[Tensor]) -> list[Tensor]:
    """The operands that say where the result is: of those without dimensions, the ones that may not be on the CPU."""
    numbers = [t for t in tensors if t.many is False and (not t.device.known or surely_away(t.device))]
    return [*(tensor for tensor in tensors if tensor.many is not False), *numbers]


def surely_away(place: Device) -> bool:
    """Whether a place is known, and is not the CPU on any path, on a machine with an accelerator."""
    return place.switched or all(leaf.kind not in (Kind.CPU, Kind.UNKNOWN) for leaf in place.leaves())


def _result_place(tensors: list[Tensor]) -> tuple[Device, Tensor | None]:
    lost = next((tensor for tensor in tensors if tensor.device is device.NOWHERE), None)
    if lost is not None:
        # what is made of it never comes to be either
        return lost.device, lost
    away = [tensor for tensor in tensors if tensor.device.kind not in (Kind.CPU, Kind.UNKNOWN)]
    # where operands clash, the one that is surely not on the CPU shows what was meant: one mistake is told once
    for tensor in away:
        if surely_away(tensor.device):
            return tensor.device, tensor
    if away and all(tensor.device.known for tensor in tensors):
        return away[0].device, away[0]
    if all(tensor.device.kind is Kind.CPU for tensor in tensors):
        first = next((tensor for tensor in tensors if not tensor.device.implied), tensors[0])
        return first.device, first
    return device.UNKNOWN, None


def derived(tensor: Tensor, many: bool | None = None, rank: int | None = None) -> Tensor:
    """A tensor computed from one other: it lives with it."""
    keeps = tensor.many if many is None else many
    return replace(
        tensor, many=keeps, rank=rank, certain=True, optional=False, buffer=False, grad=in_graph(tensor), pinned=None
    )


def in_graph(tensor: Tensor) -> str:
    """The ``grad`` of what is computed from a tensor."""
    return "graph" if tensor.grad else ""


def symbol(node: ast.AST) -> str:
    """The operator of an operation or a comparison."""
    operator = getattr(node, "op", None) or (getattr(node, "ops", None) or [None])[0]
    return _SYMBOLS.get(type(operator), "operator")


_SYMBOLS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.MatMult: "@",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Pow: "**",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=",
}  # fmt: skip
