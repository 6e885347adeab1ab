"""Conditions that ask where a tensor is, or what a device is: ``x.is_cuda``, ``device.type == "cuda"``; known items."""

from __future__ import annotations

import ast

from devlint.device import ALWAYS, AVAILABLE, CPU, Device, Kind, Truth, parse
from devlint.flow.catalog.concepts import DEVICE
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.state import State, availability
from devlint.flow.domain.tensors import DeviceValue, Tensor, as_tensor, placement
from devlint.flow.domain.values import UNKNOWN, Flag, Opaque, Value
from devlint.flow.evaluation import predicates
from devlint.flow.syntax import names, nodes
from devlint.immutable import replace


def asked(frame: Frame, node: ast.expr, right: ast.expr) -> Flag | None:
    """The condition ``x.device.type == "cuda"``, where it is known what it hangs on."""
    if not isinstance(right, ast.Constant) or not isinstance(right.value, str):
        return None
    place = _type_of(frame, node)
    return None if place is None else _is(place, right.value)


def either(frame: Frame, node: ast.expr) -> ast.expr | None:
    """The tensor of ``x.device.type`` if that is surely the CPU or CUDA, so that ``x.is_cuda`` asks the same."""
    if not isinstance(node, ast.Attribute) or node.attr != "type" or not isinstance(node.value, ast.Attribute):
        return None
    place = _type_of(frame, node)
    sure = place is not None and all(leaf.kind is Kind.CPU or leaf.type == "cuda" for leaf in place.leaves())
    return node.value.value if sure else None


def is_cpu(frame: Frame, node: ast.expr) -> bool:
    """Whether what something is compared with is the CPU: the word, the device, or a name for either."""
    if isinstance(node, ast.Constant):
        return node.value == "cpu"
    if isinstance(node, ast.Name):
        return placement(frame.lookup(node.id) or UNKNOWN) == CPU
    path = frame.interpreter.index.resolve(names.called(node))
    return path == DEVICE and isinstance(node, ast.Call) and bool(node.args) and is_cpu(frame, node.args[0])


def on_cuda(frame: Frame, tensor: ast.expr) -> Flag:
    """The condition ``x.is_cuda``, under the name that it is given, too: what it hangs on, where that is known."""
    place = _place(frame, tensor)
    known = None if place is None else _is(place, "cuda")
    return known or Flag(predicates.predicate(f"{predicates.key(frame, tensor)}.is_cuda"), accelerated=1)


def parts(node: ast.Compare) -> bool:
    """Whether two are compared which are the same where there is no accelerator: ``x.device != y.device``."""
    sides = [side.attr for side in (node.left, node.comparators[0]) if isinstance(side, ast.Attribute)]
    return sides in (["device", "device"], ["is_cuda", "is_cuda"])


def refine(frame: Frame, test: ast.expr, holds: bool) -> None:
    """Where ``x.is_cuda`` holds or not, ``x`` can only be on some of the devices that were possible."""
    node, kind, positive = _question(test)
    holds = holds is positive
    place = _place(frame, node) if node is not None else None
    if place is None or place.kind is not Kind.CHOICE or node is None:
        return
    left_over = {leaf for leaf in place.leaves() if (_is(leaf, kind) == Flag(ALWAYS)) is holds}
    sure = all(_is(leaf, kind) is not None for leaf in place.leaves())
    value = frame.state.env.get(node.id)
    if sure and len({leaf.kind for leaf in left_over}) == 1 and isinstance(value, Tensor):
        frame.state.env[node.id] = replace(value, device=left_over.pop())


def _question(test: ast.expr) -> tuple[ast.Name | None, str, bool]:
    """The tensor whose device a test asks for, the type it asks for, and whether it is there where the test holds."""
    test, positive = nodes.denied(test)
    asked: ast.expr | None = None
    kind = "cuda"
    if isinstance(test, ast.Attribute) and test.attr == "is_cuda":
        asked = test.value
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        left, right = test.left, test.comparators[0]
        if isinstance(right, ast.Constant) and isinstance(left, ast.Attribute) and left.attr == "type":
            asked = left.value.value if isinstance(left.value, ast.Attribute) and left.value.attr == "device" else None
            kind, positive = str(right.value), isinstance(test.ops[0], ast.Eq) is positive
    return (asked if isinstance(asked, ast.Name) else None), kind, positive


def left_alone(test: ast.expr, before: State, then: Value, other: Value) -> tuple[Value, Value]:
    """Both sides of a test of where ``x`` is, with what each makes of ``x``.

    After ``if x.is_cuda: x = x.cpu()`` it is on the CPU, since the side that leaves it alone has found it there.
    """
    node, kind, positive = _question(test)
    value = before.env.get(node.id) if node is not None else None
    if not isinstance(value, (Tensor, Opaque)) or as_tensor(value).device.kind is not Kind.SYMBOL:
        return then, other
    place = as_tensor(value).device
    if then is not value and other is value and _is_elsewhere(then, place):
        other = _found(value, kind, not positive)
    elif then is value and other is not value and _is_elsewhere(other, place):
        then = _found(value, kind, positive)
    elif (kind == "cuda") is positive:
        other = _beside(value, kind, then, other)
    else:
        then = _beside(value, kind, other, then)
    return then, other


def settle(test: ast.expr, before: State, then: State, other: State) -> None:
    """The sides of an ``if`` are about to be joined: see :func:`left_alone`."""
    node, kind, positive = _question(test)
    if node is None or then.dead or other.dead:
        return
    there, host = (then, other) if (kind == "cuda") is positive else (other, then)
    for name, moved in list(there.env.items()):
        left = host.env.get(name)
        if left is not None and moved is not left and name != node.id:
            host.env[name] = _beside(before.env.get(node.id), kind, moved, left)
    first, second = then.env.get(node.id), other.env.get(node.id)
    if first is not None and second is not None:
        then.env[node.id], other.env[node.id] = left_alone(test, before, first, second)


def _beside(value: Value | None, kind: str, moved: Value, left: Value) -> Value:
    """What is moved to ``x`` where that is not on the CPU is beside it, too, where both are there."""
    place = as_tensor(value).device if isinstance(value, (Tensor, Opaque)) else CPU
    if place.kind is not Kind.SYMBOL or kind not in ("cuda", "cpu"):
        return left
    if not isinstance(moved, Tensor) or not isinstance(left, Tensor) or left.device.kind is not Kind.CPU:
        return left
    return replace(left, device=place) if moved.device == place else left


def _is_elsewhere(value: Value, place: Device) -> bool:
    return isinstance(value, Tensor) and value.device.known and value.device.symbol != place.symbol


def _found(value: Tensor | Opaque, kind: str, there: bool) -> Value:
    """A tensor of which a test has said whether it is on a device of a type; where it is not on CUDA, on the CPU."""
    place = parse(kind) if there else CPU if kind == "cuda" else None
    return value if place is None else replace(as_tensor(value), device=place)


def decides(flag: Flag) -> Flag:
    """The condition on which two branches are to be joined: where one is for machines without accelerator, that."""
    for part in flag.parts:
        inner = part if part.condition is AVAILABLE else decides(part) if part.positive else part
        if inner.condition is AVAILABLE and not inner.positive:
            # all parts hold on one side, which is the first where the whole is positive
            return availability(not flag.positive)
    return flag


def _type_of(frame: Frame, node: ast.expr) -> Device | None:
    """The device of which an expression is the type."""
    if not isinstance(node, ast.Attribute) or node.attr != "type":
        return None
    inner = node.value
    if isinstance(inner, ast.Attribute) and inner.attr == "device":
        return _place(frame, inner.value)
    held = frame.lookup(inner.id) if isinstance(inner, ast.Name) else None
    return held.device if isinstance(held, DeviceValue) else None


def _place(frame: Frame, node: ast.expr) -> Device | None:
    """Where the tensor of a name surely is."""
    held = frame.lookup(node.id) if isinstance(node, ast.Name) else None
    sure = isinstance(held, Tensor) and held.certain and not held.optional and not held.derived
    return held.device if sure and isinstance(held, Tensor) else None


def _is(place: Device, kind: str) -> Flag | None:
    """Whether a device is of a type."""
    accelerated = -1 if kind == "cpu" else 1
    if place.kind is Kind.CPU:
        return Flag(Truth(kind == "cpu"))
    if place.kind is Kind.ACCELERATOR:
        return Flag(Truth(kind == place.type))
    if place.guard is None or place.then is None or place.other is None or not place.guard.asked:
        return None
    then, other = _is(place.then, kind), _is(place.other, kind)
    if then is None or other is None:
        return None
    if then.condition is other.condition:
        return then if then == other else None
    if not isinstance(then.condition, Truth) or not isinstance(other.condition, Truth):
        return None
    there = then.condition is ALWAYS
    return Flag(place.guard, there, accelerated if there else -accelerated)
