"""Leads: where a tensor of the default device probably does harm, although nothing proves that it does.

What is recorded here is worth a hint and no more: one name that stands for a new tensor of the CPU on one path and for
a tensor of the caller on the other, or a new tensor that goes where only an accelerator's are taken.
"""

from __future__ import annotations

import ast

from devlint.device import Device, Kind, Role
from devlint.flow.catalog.methods import MOVERS, TO_HOST
from devlint.flow.catalog.schema import Row
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.state import State
from devlint.flow.domain.tensors import Tensor, as_tensor, surely_tensor
from devlint.flow.domain.values import UNKNOWN, Flag, Opaque, Sequence, Unknown, Value
from devlint.flow.program import type_hints
from devlint.flow.syntax import names
from devlint.flow.syntax.device_tests import asks_for_array
from devlint.immutable import replace
from devlint.sites.base import Act
from devlint.sites.placement import Hint, HintKind
from devlint.source.syntax import makes_nothing

_CONVERSIONS = frozenset(f"torch.{name}" for name in ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer"))
"""Factories that wrap data of the host."""
_LIBRARY = "torch_"
"""How packages are called whose functions compute with tensors where those are."""
_OF_NETWORKS = frozenset({"parameters", "named_parameters", "state_dict", "named_modules"})
"""Methods of modules, and of nothing that a function takes beside tensors."""
_NO_TENSOR = frozenset({"number", "device", "module", "host"})


class MixedOperands(Observer):
    """Tensors of the default device beside those of the caller."""

    def on_branch(self, frame: Frame, node: ast.If, before: State, then: State, other: State) -> None:
        """A name may be new on the one path, the caller's on the other."""
        if then.dead or other.dead:
            return
        for name, value in then.env.items():
            beside = other.env.get(name)
            if value is beside or beside is None:
                continue
            known = before.env.get(name)
            if is_fresh(value) and value is not known:
                _alternative(frame, node.test, name, value, beside)
            elif is_fresh(beside) and beside is not known:
                _alternative(frame, node.test, name, beside, value)

    def on_choice(self, frame: Frame, node: ast.IfExp, flag: Flag, then: Value, other: Value) -> None:
        """The same, of the two values of an expression."""
        for fresh, beside, place in ((then, other, node.orelse), (other, then, node.body)):
            if is_fresh(fresh):
                _alternative(frame, place, frame.interpreter.text(place), fresh, beside, asks_for_array(node.test))

    def on_item(self, frame: Frame, target: ast.Subscript, base: Value, index: Value, value: Value) -> None:
        """An item of a list takes the place of a new tensor: those that are not replaced stay on the CPU."""
        held = base.item if isinstance(base, Sequence) else None
        if isinstance(held, Tensor) and held.many is not False and any(leaf.implied for leaf in held.device.leaves()):
            _alternative(frame, target, frame.interpreter.text(target), held, value)

    def on_row(self, frame: Frame, node: ast.Tuple | ast.List, items: list[tuple[ast.expr, Value]]) -> None:
        """One row of a list holds tensors of the default device beside one that the function made on a device."""
        if frame.info is None:
            return
        fresh = [(part, as_tensor(value)) for part, value in items if is_fresh(value) and as_tensor(value).many]
        beside = next(((part, value) for part, value in items if _made_there(value)), None)
        if not fresh or beside is None or not _joined_by_column(frame.info.nodes, node):
            return
        for part, tensor in fresh:
            stray = frame.operand(tensor.origin.node or part, tensor)
            frame.emit(Hint(node, scope_of(frame), HintKind.ROW, stray, frame.operand(*beside)))

    def on_unfollowed_call(self, frame: Frame, call: Call, path: str, row: Row | None) -> None:
        """A tensor of the default device and one of the caller go into a library that works on tensors."""
        if path and not path.rpartition(".")[2].islower():
            # a class may only keep them
            return
        given = call.given()
        beside = _network(frame, [(call.node.func, UNKNOWN), *given])
        known = path.startswith(_LIBRARY) or (row is not None and "*" in row.rejects_cpu)
        if beside is None and known and (frame.after_init or bool(frame.info and frame.info.device_aware)):
            beside = next(
                (met for met in given if surely_tensor(met[1]) and lives_with_caller(as_tensor(met[1]))), None
            )
        if beside is None and frame.info is not None:
            # what the same function puts on a device shows where such tensors belong
            beside = next((met for met in given if is_put_there(met[1])), None)
        for node, value in given if beside is not None else ():
            for held in (value.items or ()) if isinstance(value, Sequence) else (value,):
                if beside is not None and is_fresh(held) and as_tensor(held).many:
                    stray = frame.operand(as_tensor(held).origin.node or node, held)
                    frame.emit(Hint(call.node, scope_of(frame), HintKind.TOGETHER, stray, frame.operand(*beside)))


def is_fresh(value: Value | None) -> bool:
    """Whether it is a tensor which a factory made on the default device, and nothing else."""
    return (
        isinstance(value, Tensor)
        and value.origin.node is not None
        and value.many is not False
        and value.device.kind is Kind.CPU
        and value.device.implied
        and value.origin.attribute is None
    )


def _alternative(frame: Frame, node: ast.expr, name: str, fresh: Value, beside: Value, tensor: bool = False) -> None:
    """On one path a tensor of the default device, on the other ``beside``, where ``tensor`` says that it is one."""
    made = as_tensor(fresh)
    lost = isinstance(beside, Unknown) or (isinstance(beside, Opaque) and beside.derived)
    network = tensor and frame.after_init and lost
    if made.origin.node is None or _moves_after(frame, node, name):
        return
    if not network and not _is_callers(frame, beside, made):
        return
    if made.origin.factory in _CONVERSIONS and not frame.after_init:
        # what converts its arguments may well be meant for the host
        return
    other = replace(frame.operand(node, beside), text=name)
    frame.emit(Hint(node, scope_of(frame), HintKind.ALTERNATIVE, frame.operand(made.origin.node, fresh), other))


def _is_callers(frame: Frame, value: Value, made: Tensor) -> bool:
    """Whether it lives where the caller keeps an argument, or the module: nobody here moved it there."""
    if isinstance(value, Opaque):
        if value.role is not Role.INPUT or value.hint in _NO_TENSOR:
            return False
        if value.derived:
            # what a part of the module makes of tensors is where they are, and here a tensor takes its place
            return frame.after_init and made.many is True and not makes_nothing(made.origin.node)
        if "." in value.text:
            return False
        # a tensor takes its place, so it is one; but what kind of function this is has to be seen
        return frame.after_init or (made.many is True and _takes_tensors(frame, value))
    return isinstance(value, Tensor) and lives_with_caller(value)


def lives_with_caller(tensor: Tensor) -> bool:
    """Whether it is a tensor that nobody here moved to where it is."""
    place = tensor.device
    moved = any(step.act is Act.MOVED for step in tensor.origin.story)
    there = place.kind is Kind.SYMBOL and place.role in (Role.INPUT, Role.PLACE)
    return there and tensor.certain and not tensor.derived and not moved


def _moves_after(frame: Frame, node: ast.AST, name: str) -> bool:
    """Whether the function moves what ``name`` stands for, whichever it is, further down."""
    line = getattr(node, "end_lineno", 0)
    return any(
        later.attr in MOVERS and later.lineno > line and names.dotted(later.value) == name
        for later in (frame.info.attributes if frame.info is not None else ())
    )


def _takes_tensors(frame: Frame, beside: Opaque) -> bool:
    """Whether the function shows one more of its arguments to be a tensor."""
    if frame.info is None:
        return False
    arguments = {parameter.arg for parameter in frame.info.parameters}
    return any(
        hint == "tensor" and name in arguments and name != beside.text
        for name, hint in type_hints.hints(frame.info).items()
    )


def _network(frame: Frame, given: list[tuple[ast.expr, Value]]) -> tuple[ast.expr, Value] | None:
    """The argument of a function that is a network, or a copy of one: whose parameters the function asks for."""
    inside = frame.info.attributes if frame.info is not None else ()
    for node, _ in given:
        while isinstance(node, ast.Call) and node.args and names.dotted(node.func).endswith("copy"):
            node = node.args[0]
        value = frame.lookup(node.id) if isinstance(node, ast.Name) else None
        if not isinstance(node, ast.Name) or not isinstance(value, Opaque) or value.role is not Role.INPUT:
            continue
        for asked in inside:
            if asked.attr in _OF_NETWORKS and isinstance(asked.value, ast.Name) and asked.value.id == node.id:
                return node, value
    return None


def _made_there(value: Value) -> bool:
    """Whether it is a tensor which was made on a device that the code chose."""
    if not isinstance(value, Tensor) or not value.certain or value.derived:
        return False
    return any(step.act is Act.CREATED for step in value.origin.story) and _is_told(value.device)


def is_put_there(value: Value) -> bool:
    """Whether it was made on, or moved to, a device that the code chose."""
    if _made_there(value):
        return True
    moved = isinstance(value, Tensor) and any(step.act is Act.MOVED for step in value.origin.story)
    place = as_tensor(value).device
    return moved and _is_told(place) and all(leaf.role in (None, Role.DEVICE) for leaf in place.leaves())


def _is_told(place: Device) -> bool:
    """Whether the code says where it is, and not that it is the CPU."""
    return place.known and not any(leaf.implied for leaf in place.leaves()) and place.accelerates() is not False


def _joined_by_column(inside: list[ast.AST], row: ast.AST) -> bool:
    """Whether a row is put into a list whose columns are taken, and of which no row is copied to the host."""
    calls = [node for node in inside if isinstance(node, ast.Call)]
    added = [node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "append"]
    kept = next((names.dotted(node.func)[: -len(".append")] for node in added if row in node.args), "")
    columns = any(
        isinstance(part, ast.Starred) and names.dotted(part.value) == kept
        for node in calls
        if names.dotted(node.func) == "zip"
        for part in node.args
    )
    rows = [node for node in added if names.dotted(node.func) == f"{kept}.append"]
    copied = any(isinstance(part, ast.Attribute) and part.attr in TO_HOST for node in rows for part in ast.walk(node))
    return bool(kept) and columns and not copied
