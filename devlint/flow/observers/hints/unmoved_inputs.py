"""What is placed in one way and not in another: a branch that does not move, an input that nobody moved.

What is recorded here is worth a hint for those who ask, and no more: the tensor may be in the right place already.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.device import Device, Role
from devlint.flow.catalog.methods import MOVERS, is_dtype
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.objects import Module
from devlint.flow.domain.state import State
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import Opaque, Unknown, Value
from devlint.flow.syntax import names, nodes
from devlint.immutable import replace
from devlint.sites.base import Operand, Step
from devlint.sites.placement import Hint, HintKind

TOLD = ("device", "cuda", "gpu", ".to(")
"""Words in the code that made something which say that it was put somewhere."""
_LONGEST_CHAIN = 4
_NO_TENSOR = frozenset({"number", "device", "module", "host"})


class MovesOfOnePath(Observer):
    """Branches of which one path moves what it gives a name, and the other reads it off an object as it is.

    Where both are converted further down, that is the place to move both.
    """

    def on_branch(self, frame: Frame, node: ast.If, before: State, then: State, other: State) -> None:
        """One path may move what it names."""
        if then.dead or other.dead or not node.orelse:
            return
        first, second = _assigned(node.body), _assigned(node.orelse)
        for name in first.keys() & second.keys():
            for moved, left, state, rest in (
                (first[name], second[name], then, other),
                (second[name], first[name], other, then),
            ):
                value, beside = state.env.get(name), rest.env.get(name)
                if not isinstance(value, Tensor) or not _is_choice(value.device):
                    continue
                converted = (
                    _converted(frame, node, name) if names.method(moved) in MOVERS and _read_off(left, beside) else None
                )
                if converted is not None:
                    stray = Operand(left, frame.interpreter.text(left))
                    gone = replace(frame.operand(moved, value), text=name)
                    frame.emit(Hint(converted, scope_of(frame), HintKind.HALF, stray, gone))


def _assigned(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """What the statements of a branch last give each name."""
    return {
        target.id: statement.value
        for statement in body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _is_choice(place: Device) -> bool:
    """Whether it is a device that the code chose, which is not the CPU for sure."""
    return (
        place.known
        and place.accelerates() is not False
        and all(leaf.role in (Role.DEVICE, None) for leaf in place.leaves())
    )


def _read_off(node: ast.expr, value: Value | None) -> bool:
    """Whether it is an attribute of an object that this one holds, and nothing is known of it."""
    if not isinstance(value, Opaque) or value.hint in _NO_TENSOR or value.near.known:
        return False
    path = names.dotted(node)
    return path.count(".") > 1 and path.startswith("self.")


def _converted(frame: Frame, branch: ast.If, name: str) -> ast.Call | None:
    """The first conversion of what ``name`` stands for to another type of numbers, unless it is moved as well."""
    found: list[ast.Call] = []
    for node in frame.inside:
        if not isinstance(node, ast.Call) or names.method(node) not in MOVERS:
            continue
        if names.called(node).rpartition(".")[0] != name or node.lineno <= (branch.end_lineno or 0):
            continue
        if names.method(node) != "to" or not all(is_dtype(names.dotted(part)) for part in nodes.given(node)):
            return None
        found.append(node)
    return min(found, key=lambda call: call.lineno, default=None)


class UnmovedInputs(Observer):
    """Inputs of models that nobody moves."""

    wants_inlined = True

    def on_module_call(self, frame: Frame, call: Call, module: Module, place: Device) -> None:
        """A model that the code put on a device gets what a stranger made, as it is; elsewhere its inputs are moved."""
        interpreter = frame.interpreter
        story = frame.origin_of(module).story
        if frame.silent or not _is_choice(place) or not story:
            return
        for node, value in call.given():
            name = _root(node)
            if name is None or not isinstance(value, (Opaque, Unknown)) or not _unplaced(value):
                continue
            origin = _origin(frame, name)
            if origin is not None and _others_moved(frame, call.node):
                steps = (Step(origin, f"`{name}` is made here, and nowhere put on a device"),)
                stray = Operand(node, interpreter.text(node), story=steps)
                model = Operand(call.node.func, interpreter.text(call.node.func), place, story=story)
                frame.emit(Hint(call.node, scope_of(frame), HintKind.UNPLACED, stray, model))


def _unplaced(value: Opaque | Unknown) -> bool:
    known = isinstance(value, Opaque) and (value.role is Role.INPUT or value.hint in _NO_TENSOR or value.near.known)
    return not known and not (isinstance(value, Opaque) and value.managed)


def _root(node: ast.expr) -> str | None:
    """The name that an attribute or an item is taken from."""
    start = node
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) and node is not start else None


def _origin(frame: Frame, name: str, depth: int = 0) -> ast.expr | None:
    """The call of others which made what ``name`` stands for, where nothing in the file says where it is to be."""
    interpreter = frame.interpreter
    info = frame.info
    if info is not None and any(parameter.arg == name for parameter in info.parameters):
        return None
    inside = info.own if info is not None and _stores(info.own, name) else interpreter.index.own
    values = [node.value for node in inside if isinstance(node, ast.Assign) and name in map(names.dotted, node.targets)]
    if len(values) != 1 or len(_stores(inside, name)) != 1 or _is_put(_everywhere(frame), name):
        return None
    if any(word in ast.unparse(values[0]) for word in TOLD):
        return None
    if isinstance(values[0], ast.Call):
        path = names.dotted(values[0].func)
        return values[0] if path.partition(".")[0] in interpreter.index.imports else None
    inner = _root(values[0])
    return _origin(frame, inner, depth + 1) if inner is not None and depth < _LONGEST_CHAIN else None


def _stores(inside: list[ast.AST], name: str) -> list[ast.Name]:
    return [
        node for node in inside if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]


def _everywhere(frame: Frame) -> Iterator[ast.AST]:
    yield from frame.interpreter.index.own
    for info in frame.interpreter.index.functions.values():
        yield from info.own


def _is_put(inside: Iterator[ast.AST], name: str) -> bool:
    """Whether something is moved as a whole, or gets new parts."""
    return any(
        isinstance(node, (ast.Attribute, ast.Subscript))
        and (
            (isinstance(node, ast.Attribute) and node.attr in MOVERS and names.dotted(node.value) == name)
            or (isinstance(node.ctx, ast.Store) and _root(node) == name)
        )
        for node in inside
    )


def _others_moved(frame: Frame, call: ast.Call) -> bool:
    """Whether another call of the same model, or of a method of it, moves what it is given."""
    model = names.dotted(call.func).partition(".")[0]
    return any(
        isinstance(node, ast.Call)
        and node is not call
        and names.dotted(node.func).partition(".")[0] == model
        and any(names.method(argument) in MOVERS for argument in node.args)
        for node in _everywhere(frame)
    )
