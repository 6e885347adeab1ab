"""Literal accelerators: strings such as ``cuda:0`` where they decide about a placement."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint import device
from devlint.device import Device, Kind
from devlint.flow.catalog.accelerator_api import OF_CUDA, PLACES_NOTHING
from devlint.flow.catalog.concepts import DEVICE
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of, scope_of_placement
from devlint.flow.domain.values import Const, Value, is_literal
from devlint.flow.observers.portability.gpu_selection import GpuSelection
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.program.type_hints import defaults_of, is_device_name
from devlint.flow.syntax import names, nodes
from devlint.sites.devices import Literal
from devlint.sites.transfers import Transfer
from devlint.source.syntax import says_none

_PLACES = frozenset({"device", "map_location"})
_CHOSEN = frozenset({DEVICE, "variable"})
"""The roles of literals that say what a name stands for."""


class DeviceLiterals(Observer):
    """The strings that name an accelerator where a device is asked for."""

    def on_device(self, frame: Frame, node: ast.AST, role: str, value: Value | None, call: Call | None) -> None:
        """A device is named, perhaps by a string."""
        place = named_accelerator(node)
        if place is None or not isinstance(node, ast.Constant):
            return
        text = str(node.value)
        if role == "parameter":
            if frame.info is not None and _decides(frame, frame.info, node):
                frame.emit(Literal(node, scope_of(frame), text, role))
        elif not frame.comparing and not _is_meant(frame, node):
            revised = frame.state.hosted or _revised(frame, node) or _beside_cpu(frame, node)
            role = "parameter" if frame.defaults else _purpose(role, call)
            if role in _CHOSEN and _is_default(frame, node):
                role = "default"
            frame.emit(Literal(node, scope_of_placement(frame, node), text, role, revised))
            frame.component(GpuSelection).number(frame, node, place.index, text)

    def on_move(self, frame: Frame, transfer: Transfer, receiver: Value, call: Call) -> None:
        """Something is moved to a device."""
        if transfer.target_node is not None:
            self.on_device(frame, transfer.target_node, ".to", None, None)


def _purpose(role: str, call: Call | None) -> str:
    """What a literal is for, where other arguments of the call say more of that."""
    index = call.argument(1, "index") if call is not None and role == DEVICE else None
    if index is not None and not isinstance(index, Const):
        return "rank"
    enabled = call.keywords.get("enabled") if call is not None and role == "autocast" else None
    return "autocast off" if is_literal(enabled, False) else role


def _decides(frame: Frame, info: FunctionInfo, node: ast.Constant) -> bool:
    """Whether the function is seen to place something by the parameter whose default this is."""
    name = next((name for name, default in defaults_of(info.node.args).items() if default is node), "")
    return places_by(frame, info, name) and not _is_spared(frame, info, name)


def named_accelerator(node: ast.AST | None) -> Device | None:
    """The accelerator that a string names, ``None`` of any other node."""
    place = device.parse(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
    return place if place is not None and place.kind is Kind.ACCELERATOR else None


def places_by(frame: Frame, info: FunctionInfo, name: str) -> bool:
    """Whether a function places something by a parameter, whatever there is."""
    placed = any(_places(frame, inner, name) for inner in info.nodes)
    return placed and not any(_falls_back(inner, name) for inner in info.nodes)


def _is_spared(frame: Frame, info: FunctionInfo, name: str) -> bool:
    """Whether nobody gets a default: the function is private, and each call in its file gives the parameter."""
    if not info.name.startswith("_") or info.name.endswith("__"):
        return False
    taken = [parameter.arg for parameter in info.parameters]
    position = taken.index(name) - (info.owner is not None and "staticmethod" not in info.decorators)
    found = [node for node in ast.walk(frame.interpreter.tree) if isinstance(node, ast.Call)]
    calls = [call for call in found if names.called(call).rpartition(".")[2] == info.name]
    return bool(calls) and all(nodes.argument(call, position, name) is not None for call in calls)


def _is_meant(frame: Frame, node: ast.Constant) -> bool:
    """Whether CUDA is asked for by, or handed on beside, what knows no other accelerator; or in a list of devices."""
    held = {target for outer in frame.inside if isinstance(outer, ast.Assign) for target in _holders(outer, node)}
    for outer in frame.inside:
        if isinstance(outer, ast.Call):
            given = nodes.given(outer)
            if any(_makes(node, part) for part in given) and _needs_cuda(frame, outer):
                return True
            if any(names.dotted(part) in held for part in given) and any(_needs_cuda(frame, part) for part in given):
                return True
        elif isinstance(outer, (ast.Tuple, ast.List, ast.Set)):
            made = [_spoken(part) for part in outer.elts if isinstance(part, ast.Call)]
            if node in made and any(map(_is_cpu, made)):
                return True
    return False


def _holders(statement: ast.Assign, node: ast.Constant) -> list[str]:
    """The names that are given a tensor which is created where a literal says."""
    made = statement.value
    told = isinstance(made, ast.Call) and any(_makes(node, part) for part in nodes.given(made))
    return [names.dotted(target) for target in statement.targets] if told else []


def _makes(literal: ast.Constant, given: ast.expr) -> bool:
    """Whether something is a literal, or the device that is made of it."""
    return given is literal or _spoken(given) is literal


def _spoken(made: ast.expr) -> ast.expr | None:
    """What a device is made of, as far as that can be seen: the first argument of a call."""
    return made.args[0] if isinstance(made, ast.Call) and made.args else None


def _is_cpu(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cpu"


def _needs_cuda(frame: Frame, call: ast.expr) -> bool:
    """Whether a call is one of ``torch.cuda``, or one that is told to use NCCL."""
    if not isinstance(call, ast.Call):
        return False
    path = frame.interpreter.index.resolve(names.dotted(call.func))
    told = (keyword.value for keyword in call.keywords if keyword.arg == "backend")
    return path.startswith(OF_CUDA) or any(isinstance(part, ast.Constant) and part.value == "nccl" for part in told)


def _falls_back(node: ast.AST, name: str) -> bool:
    """Whether a function takes the CPU for a parameter where the accelerator is missing: it has asked."""
    if isinstance(node, ast.If):
        return _asks(node.test) and name in _given([*node.body, *_flat(node.orelse)], "cpu")
    chosen = node.value if isinstance(node, ast.Assign) else None
    return isinstance(chosen, ast.IfExp) and _asks(chosen.test) and name in _given([node], "cpu")


def _places(frame: Frame, node: ast.AST, name: str) -> bool:
    """Whether something is placed by a parameter here, or the parameter is kept, or handed on as a device."""
    if isinstance(node, ast.Assign):
        # what is only kept may be the choice of a backend, `cuda` or `naive`
        return is_device_name(name) and names.is_name(node.value, name) and isinstance(node.targets[0], ast.Attribute)
    if not isinstance(node, ast.Call):
        return False
    path = frame.interpreter.index.resolve(names.dotted(node.func))
    if path in PLACES_NOTHING:
        return False
    mover = isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "to_empty")
    if (mover or path == DEVICE) and any(names.is_name(argument, name) for argument in node.args):
        return True
    return any(keyword.arg in _PLACES and names.is_name(keyword.value, name) for keyword in node.keywords)


def _revised(frame: Frame, node: ast.Constant) -> bool:
    """Whether the function asks for CUDA further down, and decides there what is to become of what it was given."""
    if frame.info is None:
        return False
    later = (inner for inner in frame.info.nodes if isinstance(inner, ast.If) and inner.lineno > node.lineno)
    return any(_asks(inner.test) and _says_cuda(inner.test) for inner in later)


def _beside_cpu(frame: Frame, node: ast.Constant) -> bool:
    """Whether the other side of a branch gives the CPU to what is given an accelerator here: somebody can choose."""
    for branch in frame.inside:
        if isinstance(branch, ast.IfExp):
            sides = branch.body, branch.orelse
            if any(_makes(node, side) for side in sides) and any(
                _is_cpu(side) or _is_cpu(_spoken(side)) for side in sides
            ):
                return True
        if not isinstance(branch, ast.If) or not nodes.covers(branch, node):
            continue
        for side, rest in ((branch.body, branch.orelse), (branch.orelse, branch.body)):
            named = _given(side, node)
            if named and any(_given([statement], "cpu") & named for statement in _flat(rest)):
                return True
    return False


def _is_default(frame: Frame, node: ast.Constant) -> bool:
    """Whether a parameter gets the literal where the caller has passed ``None``."""
    if frame.info is None:
        return False
    parameters = {parameter.arg for parameter in frame.info.parameters}
    optional = {name for name, value in defaults_of(frame.info.node.args).items() if says_none(value)}
    return any(
        _for_none(inner.test) in parameters & _given(inner.body, node)
        if isinstance(inner, ast.If)
        else _lacking(inner, node) in optional
        for inner in frame.info.nodes
    )


def _lacking(expression: ast.AST, literal: ast.Constant) -> str:
    """The name that a literal stands in for where that is nothing, as in `name or literal`; empty where it is none."""
    asked, instead = None, None
    if isinstance(expression, ast.BoolOp) and isinstance(expression.op, ast.Or) and len(expression.values) == 2:
        asked, instead = expression.values
    elif isinstance(expression, ast.IfExp):
        asked, instead = expression.test, expression.orelse
        if _for_none(asked):
            return _for_none(asked) if _makes(literal, expression.body) else ""
        if isinstance(asked, ast.Compare) and isinstance(asked.ops[0], ast.IsNot) and says_none(asked.comparators[0]):
            asked = asked.left
    named = isinstance(asked, ast.Name) and instead is not None and _makes(literal, instead)
    return asked.id if named and isinstance(asked, ast.Name) else ""


def _for_none(test: ast.expr) -> str:
    """The name of which a test asks whether it is ``None``, empty where it asks anything else."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Is) or len(test.ops) != 1:
        return ""
    return test.left.id if says_none(test.comparators[0]) and isinstance(test.left, ast.Name) else ""


def _flat(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a branch, and of those that follow it by `elif`."""
    if len(body) == 1 and isinstance(body[0], ast.If):
        return [*_flat(body[0].body), *_flat(body[0].orelse)]
    return body


def _given(body: Iterable[ast.AST], wanted: ast.Constant | str) -> set[str]:
    """What the statements assign something to in which a literal is: this one, or any that says this."""
    return {
        names.dotted(target)
        for statement in body
        if isinstance(statement, ast.Assign)
        for part in ast.walk(statement.value)
        if part is wanted or (isinstance(part, ast.Constant) and part.value == wanted)
        for target in statement.targets
    }


def _asks(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "is_available" for node in ast.walk(test))


def _says_cuda(test: ast.expr) -> bool:
    """Whether a test compares something with CUDA."""
    texts = (node.value for node in ast.walk(test) if isinstance(node, ast.Constant))
    return any(isinstance(text, str) and "cuda" in text for text in texts)
