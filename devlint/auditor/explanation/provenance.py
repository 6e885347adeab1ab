"""Why a tensor is where it is: the assignment that put it there, and what that assignment says."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from devlint.auditor.explanation.code import FunctionNode, frame_at, function_of, own_nodes, tree
from devlint.auditor.explanation.lookup import dotted, look_up
from devlint.auditor.explanation.operands import factory
from devlint.auditor.explanation.trail import Stop
from devlint.auditor.introspection.unregistered import Held
from devlint.flow.catalog.methods import TO_DEVICE
from devlint.flow.syntax.nodes import parameters
from devlint.record import Frame

_DEPTH = 4
_HOST_ONLY = ("from_numpy", "frombuffer")


class Reason(NamedTuple):
    """Why something is where it is, in words (empty if only the place is known), and where that was decided."""

    why: str = ""
    frame: Frame | None = None
    held: Held | None = None
    """By whom it is held without having been registered."""


class Binding(NamedTuple):
    """A place that gives a name its value: the assigned expression, or what is iterated over."""

    node: ast.AST
    value: ast.expr
    loop: bool = False


def bindings(function: ast.AST | None, target: str) -> Iterator[Binding]:
    """The places in a function that assign to ``target`` (a name, or ``self.x``), in the order of the text."""
    for node in own_nodes(function) if function is not None else ():
        if isinstance(node, ast.Assign):
            for goal in node.targets:
                if _binds(goal, target):
                    yield Binding(node, _part(goal, node.value, target))
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
            if _binds(node.target, target) and node.value is not None:
                yield Binding(node, node.value)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            if _binds(node.target, target):
                yield Binding(node.target, node.iter, loop=True)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None and _binds(node.optional_vars, target):
            yield Binding(node.optional_vars, node.context_expr)


def of_name(name: str, stop: Stop, device: str, depth: int = _DEPTH) -> Reason:
    """Why the variable holds something on ``device``, as told by the function of the stop."""
    bound = list(bindings(stop.function, name))
    # `x += y` leaves `x` where it is
    found = [binding for binding in bound if not isinstance(binding.node, ast.AugAssign)] or bound
    before = [binding for binding in found if getattr(binding.node, "lineno", 0) <= stop.line]
    # in a loop, what stands below has run in the round before
    chosen = (before or found)[-1:]
    dropped = dropped_move(name, stop, device, getattr(chosen[0].node, "lineno", 0) if chosen else 0)
    if dropped is not None or not chosen:
        return dropped or Reason()
    return of_binding(name, chosen[0], stop, device, depth)


def dropped_move(name: str, stop: Stop, device: str, after: int = 0) -> Reason | None:
    """``name.to(device)`` as a statement of its own, below the line ``after``: its result is lost."""
    if device != "cpu" or stop.function is None:
        return None
    for node in own_nodes(stop.function):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and after <= node.lineno <= stop.line:
            called = node.value.func
            if isinstance(called, ast.Attribute) and called.attr in TO_DEVICE and ast.unparse(called.value) == name:
                moved = ast.unparse(node.value)
                why = f"the result of `{moved}` is dropped: `.{called.attr}()` of a tensor returns the moved one"
                return Reason(why, stop.place(node.value))
    return None


def of_binding(name: str, binding: Binding, stop: Stop, device: str, depth: int = _DEPTH) -> Reason:
    """What an assignment says of the device of what it assigns."""
    place = stop.place(binding.node)
    value = binding.value
    if binding.loop and device != "cpu":
        return Reason(frame=place)
    if binding.loop:
        return Reason(f"it comes from the loop over `{_bare(value)}` as it is, and was never moved", place)
    made = made_by(value, stop.frame, device)
    if made:
        return Reason(made, place)
    root = _root(value)
    if root is not None and root.id != name and depth > 0 and not isinstance(value, ast.Call):
        inner = of_name(root.id, stop, device, depth - 1)
        if inner.why:
            return Reason(inner.why, inner.frame or place)
    if isinstance(value, ast.Call):
        returned = _returned(value, stop, device)
        if returned is not None:
            return returned
        if device == "cpu" and isinstance(value.func, ast.Name) and value.func.id == "next" and value.args:
            return Reason("it comes from the loader as it is, and was never moved", place)
    return Reason(frame=place)


def made_by(value: ast.AST, frame: types.FrameType, device: str) -> str:
    """What made something on a device, if the expression alone says so."""
    if isinstance(value, ast.Call):
        return _made_by_call(value, frame, device)
    if isinstance(value, ast.BinOp):
        sides = [side for side in (value.left, value.right) if not isinstance(side, ast.Constant)]
        known = [made_by(side, frame, device) for side in sides]
        return known[0] if known and all(known) else ""
    if isinstance(value, (ast.UnaryOp, ast.Subscript)):
        return made_by(value.operand if isinstance(value, ast.UnaryOp) else value.value, frame, device)
    return ""


def _made_by_call(call: ast.Call, frame: types.FrameType, device: str) -> str:
    name = factory(call, frame)
    if name:
        asked = "" if name.endswith(_HOST_ONLY) else ", since no `device=` is given"
        return f"`{name}` makes it on the CPU{asked}" if device == "cpu" else ""
    if dotted(call.func, frame):
        inner = [made_by(argument, frame, device) for argument in call.args]
        return inner[0] if len(inner) == 1 else ""
    if not isinstance(call.func, ast.Attribute):
        return ""
    method = call.func.attr
    if method == "cpu" and device == "cpu":
        return "`.cpu()` moved it to the CPU"
    if method in TO_DEVICE:
        return f"`{ast.unparse(call)}` moved it to {device}" if device != "cpu" else ""
    # a method of what was just made: `torch.zeros(3).unsqueeze(0)`
    return made_by(call.func.value, frame, device)


def _returned(call: ast.Call, stop: Stop, device: str) -> Reason | None:
    """What a function of the script returned, if all it returns was made there on the default device."""
    called = look_up(call.func, stop.frame)
    code = getattr(called, "__code__", None)
    if not isinstance(called, types.FunctionType) or not isinstance(code, types.CodeType):
        return None
    function = function_of(code)
    if function is None:
        return None
    shown = ast.unparse(call.func)
    # of a function that is not running only the globals are known; all that is asked of a frame is its names
    elsewhere: Any = types.SimpleNamespace(f_locals={}, f_globals=called.__globals__)
    for node in own_nodes(function):
        if isinstance(node, ast.Return) and node.value is not None:
            for part in node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else [node.value]:
                named = list(bindings(function, part.id))[-1:] if isinstance(part, ast.Name) else []
                value = named[0].value if named else part
                made = made_by(value, elsewhere, device)
                if made:
                    frame = frame_at(code, value, called.__qualname__)
                    return Reason(f"`{shown}()` returns it, and there {made}", frame)
    return None


def of_attribute(owner: object, name: str) -> tuple[Frame | None, ast.expr | None]:
    """The assignment ``self.name = ...`` in the code of the object's class, and the assigned expression."""
    best: tuple[Frame | None, ast.expr | None] = (None, None)
    for cls in type(owner).__mro__:
        for function in list(vars(cls).values()):
            code = getattr(function, "__code__", None)
            if not isinstance(code, types.CodeType) or tree(code.co_filename) is None:
                continue
            node = function_of(code)
            this = code.co_varnames[0] if code.co_argcount else "self"
            for binding in bindings(node, f"{this}.{name}"):
                if isinstance(binding.value, ast.Constant) and binding.value.value is None:
                    continue  # a placeholder
                frame = frame_at(code, binding.node, getattr(function, "__qualname__", ""))
                if code.co_name == "__init__":
                    return frame, binding.value
                best = best if best[0] else (frame, binding.value)
        if best[0]:
            break
    return best


def _binds(goal: ast.AST, target: str) -> bool:
    if isinstance(goal, (ast.Tuple, ast.List)):
        return any(_binds(part, target) for part in goal.elts)
    if isinstance(goal, ast.Starred):
        return _binds(goal.value, target)
    return isinstance(goal, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(goal) == target


def _part(goal: ast.expr, value: ast.expr, target: str) -> ast.expr:
    """The part of a tuple that goes to the target, where both sides are tuples."""
    if not isinstance(goal, (ast.Tuple, ast.List)) or not isinstance(value, (ast.Tuple, ast.List)):
        return value
    if len(goal.elts) != len(value.elts):
        return value
    pairs = zip(goal.elts, value.elts, strict=True)
    return next((_part(left, right, target) for left, right in pairs if _binds(left, target)), value)


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _bare(node: ast.expr) -> str:
    """What is looped over, without ``enumerate``, ``zip`` and ``tqdm`` around it."""
    while isinstance(node, ast.Call) and node.args and isinstance(node.func, (ast.Name, ast.Attribute)):
        node = node.args[0]
    return ast.unparse(node)


def is_parameter(name: str, function: FunctionNode | None) -> bool:
    """Whether the name is a parameter of the function, and so came from its caller."""
    if function is None or isinstance(function, ast.Module):
        return False
    return any(name == parameter.arg for parameter in parameters(function.args))
