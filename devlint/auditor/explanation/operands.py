"""The tensors and modules that take part in an expression which failed."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from devlint.auditor.explanation.lookup import MISSING, dotted, look_up
from devlint.auditor.introspection.tensors import device_of, home, is_scalar, leaves
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.methods import MOVERS, TO_DEVICE, TO_HOST

_ENDS = MOVERS | TO_HOST | {"type"}
_SKIPPED = frozenset({"device", "dtype", "map_location"})
_MAKERS = ("default_or_kwarg", "cpu", "data_or_default")
"""Rules of torch's table for functions that make a tensor where they are told, or on the default device."""
Role = Literal["input", "parameter", "buffer", "attribute", "variable"]
_COMMON = 8
"""So many tensors of one container are worth a word."""


@dataclass(frozen=True, slots=True)
class Operand:
    """What takes part in an operation: a tensor, a module, or a result whose device is known though it is gone.

    ``node`` is its expression, where it has one; ``direct`` says that it is an operand itself, rather than something
    that an operand was computed from.  ``made`` names the function that made it on the default device, in the
    expression.  ``module`` is the module whose parameter stands for it; ``why`` says why it had to be elsewhere.
    """

    text: str
    device: str
    value: torch.Tensor | nn.Module | None = None
    role: Role = "variable"
    module: nn.Module | None = None
    why: str = ""
    node: ast.expr | None = None
    direct: bool = True
    made: str = ""


def operands(node: ast.AST, frame: types.FrameType) -> list[Operand]:
    """What takes part in an expression or a statement, in the order of its text."""
    found: dict[tuple[str, str], Operand] = {}
    for operand in _visit(node, frame, 0):
        found.setdefault((operand.text, operand.device), operand)
    return list(found.values())


def _visit(node: ast.AST, frame: types.FrameType, depth: int) -> Iterator[Operand]:
    """``depth`` counts the operations around the node; the outermost one is the one that failed."""
    if isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        yield from _named(node, frame, depth)
    elif isinstance(node, ast.Call):
        yield from _call(node, frame, depth)
    elif isinstance(node, (ast.IfExp, ast.BoolOp)):
        yield from _either(node, frame, depth)
    else:
        written = isinstance(node, ast.Assign) and any(isinstance(goal, ast.Subscript) for goal in node.targets)
        deeper = depth + (written or isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp)))
        for child in ast.iter_child_nodes(node):
            yield from _visit(child, frame, deeper)


def rest(node: ast.AST, frame: types.FrameType) -> ast.expr | None:
    """The operand of an operation of which nothing is known, where that is one, and all others are on one device."""
    sides = [side for side in _sides(node, frame) if look_up(side, frame) is MISSING]
    if len(sides) > _COMMON:
        return None
    unknown = [side for side in sides if not any(_visit(side, frame, 1))]
    return unknown[0] if len(unknown) == 1 else None


def _sides(node: ast.AST, frame: types.FrameType) -> list[ast.expr]:
    """What an operation works on: the sides of an operator, the arguments of a function of torch, a tensor's own."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Subscript):
        return [node.value, node.slice]
    if not isinstance(node, ast.Call):
        return []
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg not in _SKIPPED)]
    given = [item for one in given for item in (one.elts if isinstance(one, (ast.List, ast.Tuple)) else [one])]
    if dotted(node.func, frame):
        return given
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return [owner, *given] if owner is not None and look_up(node.func, frame) is MISSING else []


def _either(node: ast.IfExp | ast.BoolOp, frame: types.FrameType, depth: int) -> Iterator[Operand]:
    """What takes one of several values: something is known of it where they are all on one device."""
    values = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
    found = [list(_visit(value, frame, max(depth, 1))) for value in values]
    if all(found) and len({operand.device for operands in found for operand in operands}) == 1:
        yield from found[0]


def _named(node: ast.Name | ast.Attribute | ast.Subscript, frame: types.FrameType, depth: int) -> Iterator[Operand]:
    value = look_up(node, frame)
    if value is not MISSING:
        yield from _of(node, ast.unparse(node), value, depth <= 1)
    elif isinstance(node, ast.Attribute):
        yield from _visit(node.value, frame, depth)
    elif isinstance(node, ast.Subscript):
        yield from _visit(node.value, frame, depth + 1)
        yield from _visit(node.slice, frame, depth + 1)


def _of(node: ast.expr, text: str, value: object, direct: bool) -> Iterator[Operand]:
    if isinstance(value, nn.Module):
        device = home(value)
        if device:
            yield Operand(text, device, value, node=node, direct=direct)
        return
    if isinstance(value, types.ModuleType | type) or callable(value):
        return
    for count, (path, tensor) in enumerate(leaves(value, text)):
        if count >= _COMMON * 4:
            return
        if not is_scalar(tensor):
            yield Operand(path, device_of(tensor), tensor, node=node, direct=direct)


def _call(node: ast.Call, frame: types.FrameType, depth: int) -> Iterator[Operand]:
    function = node.func
    moved = isinstance(function, ast.Attribute) and function.attr in _ENDS
    made = factory(node, frame)
    device = _target(node, frame) if moved else default_device() if made else _placed(node, frame)
    if depth and (moved or device):
        if device:
            yield Operand(ast.unparse(node), device, node=node, direct=depth <= 1, made="" if moved else made)
        return
    called = look_up(function, frame)
    inner = depth + 1
    if isinstance(called, nn.Module):
        if depth and home(called):
            yield Operand(ast.unparse(node), home(called), node=node, direct=depth <= 1)
            inner = depth + 2
        yield from _of(function, ast.unparse(function), called, depth == 0)
    elif isinstance(function, ast.Attribute) and not dotted(function, frame):
        # a method's receiver is as good as its result, but that of the script's own method is anything
        own = called is not MISSING
        yield from _visit(function.value, frame, inner + own if own else max(depth, 1))
    for child in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg not in _SKIPPED)):
        yield from _visit(child, frame, inner)


def _target(call: ast.Call, frame: types.FrameType) -> str:
    """Where a move goes, empty if that is not known; without an index where the code gives none."""
    method: str = getattr(call.func, "attr", "")
    if method in ("cpu", "numpy"):
        return "cpu"
    asked = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device")]
    found = next(filter(None, (_device(node, frame) for node in asked)), "")
    return found or (method if method in TO_DEVICE - {"to"} and not call.args else "")


def _maker(call: ast.Call, frame: types.FrameType) -> tuple[str, str]:
    """The name of the function of torch that a call names, and its rule, if that makes a tensor; else empty."""
    name = dotted(call.func, frame)
    entry = torch_table.function(name) if name.startswith("torch") else None
    return (name, entry.rule) if entry is not None and entry.rule in _MAKERS else ("", "")


def _placed(call: ast.Call, frame: types.FrameType) -> str:
    """The device that a function of torch is told to make a tensor on, empty if it is not told or does not make one."""
    asked = (keyword.value for keyword in call.keywords if keyword.arg == "device")
    return next((_device(value, frame) for value in asked), "") if _maker(call, frame)[0] else ""


def _device(node: ast.expr, frame: types.FrameType) -> str:
    """The device that an argument names, or that of a tensor; empty if that is not known."""
    if isinstance(node, ast.Attribute) and node.attr == "device":
        owner = look_up(node.value, frame)
        if isinstance(owner, torch.Tensor):
            return device_of(owner)
    value = look_up(node, frame)
    if isinstance(value, torch.Tensor):
        return device_of(value)
    return str(value) if isinstance(value, (str, torch.device)) else ""


def factory(node: ast.AST, frame: types.FrameType) -> str:
    """The name of torch's function if a call makes a tensor on the default device, empty if it does anything else."""
    if not isinstance(node, ast.Call):
        return ""
    name, rule = _maker(node, frame)
    if any(keyword.arg in ("device", None) for keyword in node.keywords):
        return ""
    copied = rule == "data_or_default" and node.args and isinstance(look_up(node.args[0], frame), torch.Tensor)
    return "" if copied else name


def default_device() -> str:
    """Where torch's factories make tensors."""
    return str(torch.get_default_device())
