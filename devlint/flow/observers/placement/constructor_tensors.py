"""Tensors that a module is made with and keeps in plain attributes: they stay where whoever made it had them.

So do those that the constructor makes on the device that it is given, and those in plain lists and dicts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from devlint import device
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.concepts import PARAMETER
from devlint.flow.catalog.methods import FETCHES, MOVERS, OF_MODULES
from devlint.flow.catalog.modules import CONTAINERS
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Interpreter
from devlint.flow.program import mutations, type_hints
from devlint.flow.program.symbols import ClassInfo, FunctionInfo, Index
from devlint.flow.syntax import names, nodes
from devlint.sites.base import Operand, Scope, Step
from devlint.sites.placement import Attribute

_BUILDS = OF_MODULES | {"__init__", "reset_parameters", "_apply"}
_ENDS = MOVERS | FETCHES | {"size", "dim", "numel", "new_zeros", "new_ones"}
"""Methods after which it is somewhere else, or no tensor any more."""
_Kept = tuple[str, ast.expr, str]
"""The name of an attribute, what it holds, and in which container."""
_NO_TENSOR = frozenset({"shape", "device", "dtype", "ndim", "requires_grad"})


class ConstructorTensors(Observer):
    """The plain attributes of a file's modules that hold arguments of their constructors, or what stays beside them."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._index = interpreter.index

    def sites(self) -> Iterator[Attribute]:
        """A site for each attribute that holds an argument annotated as a tensor, and meets what a method is given."""
        for info in self._index.classes.values():
            init = info.methods.get("__init__")
            if init is None or not info.is_module:
                continue
            found = (*_kept(init, _tensors(init)), *_made(init, self._index), *_on_one_path(init, self._index))
            for name, value, container in found:
                if mutations.takes_along(info, name) or name in info.stored or _registered(info, name):
                    continue
                uses = tuple(_uses(info, name))
                if uses:
                    scope = Scope(function="__init__", owner=info.name, module=True)
                    operand = Operand(value, names.spelled(value), device.UNKNOWN)
                    yield Attribute(value, scope, info.name, name, operand, uses, kind="given", container=container)


def _tensors(init: FunctionInfo) -> dict[str, ast.arg]:
    """The arguments that are annotated as tensors, and stay what they are."""
    found = {parameter.arg: parameter for parameter in init.parameters if parameter.annotation is not None}
    return {
        name: parameter
        for name, parameter in found.items()
        if parameter.annotation is not None and type_hints.annotated(parameter.annotation) == "tensor"
    }


def _kept(init: FunctionInfo, given: dict[str, ast.arg]) -> Iterator[_Kept]:
    free = given.keys() - _bound(init)
    for node in init.of(ast.Assign) if free else ():
        if len(node.targets) == 1 and isinstance(node.value, ast.Name) and node.value.id in free:
            name = names.of_self(node.targets[0])
            if name:
                yield name, node.value, ""


def _bound(method: FunctionInfo) -> list[str]:
    """The names that a method binds, as often as it does."""
    return [node.id for node in method.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _made(init: FunctionInfo, index: Index) -> Iterator[_Kept]:
    """What the constructor makes on a device that it is given, and lists and dicts of what it makes."""
    given = {parameter.arg for parameter in init.parameters}.difference(_bound(init))
    for node in init.of(ast.Assign):
        target = node.targets[0]
        if len(node.targets) > 1:
            continue
        item = isinstance(target, ast.Subscript)
        name = names.of_self(target.value if isinstance(target, ast.Subscript) else target)
        parts = _parts(node.value)
        if not name:
            continue
        if item:
            if _is_made(node.value, index, None):
                yield name, node.value, "dict"
        elif parts:
            if all(_is_made(part, index, None) for part in parts):
                yield name, node.value, "dict" if isinstance(node.value, ast.Dict) else "list"
        elif _is_made(node.value, index, given):
            yield name, node.value, ""


def _on_one_path(init: FunctionInfo, index: Index) -> Iterator[_Kept]:
    """What the constructor makes a parameter or leaves a tensor, as it is asked to: the tensor."""
    given = _tensors(init).keys() - _bound(init)
    for name, arms in _alternatives(init):
        kept = [arm for arm in arms if index.resolve(names.called(arm)) != PARAMETER]
        if len(kept) != 1:
            continue
        of = [names.code(part) for arm in arms if isinstance(arm, ast.Call) and arm not in kept for part in arm.args]
        # a parameter is made of nothing but a tensor
        same = not isinstance(kept[0], ast.Call) and names.code(kept[0]) in of[:1]
        if same or _is_made(kept[0], index, None) or _is_one_of(kept[0], given):
            yield name, kept[0], ""


def _alternatives(init: FunctionInfo) -> Iterator[tuple[str, tuple[ast.expr, ast.expr]]]:
    """The attributes that have one of two values, as a condition says."""
    for node in init.of(ast.Assign):
        if isinstance(node.value, ast.IfExp) and names.of_self(node.targets[0]):
            yield names.of_self(node.targets[0]), (node.value.body, node.value.orelse)
    for branch in (node for node in init.nodes if isinstance(node, ast.If)):
        then, other = _assigned(branch.body), _assigned(branch.orelse)
        yield from ((name, (then[name], other[name])) for name in then.keys() & other.keys())


def _assigned(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """What the statements of a branch last give each attribute."""
    given = [node for node in body if isinstance(node, ast.Assign) and names.of_self(node.targets[0])]
    return {names.of_self(node.targets[0]): node.value for node in given}


def _parts(node: ast.expr) -> list[ast.expr]:
    """What a display of a list or a dict puts into it."""
    return node.values if isinstance(node, ast.Dict) else node.elts if isinstance(node, (ast.List, ast.Tuple)) else []


def _is_made(node: ast.expr, index: Index, given: set[str] | None) -> bool:
    """Whether a call of torch makes a tensor: on a device among what is ``given``, or where nobody asks for one."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        path = index.resolve(names.dotted(node.func))
        entry = torch_table.function(path) if path.startswith("torch.") else None
        if entry is not None:
            asked = next((keyword.value for keyword in node.keywords if keyword.arg in ("device", None)), None)
            told = asked is None if given is None else _is_given(asked, given)
            # one without dimensions may meet any other
            sized = node.args and (isinstance(node.args[0], (ast.List, ast.Tuple)) or not path.endswith("tensor"))
            return entry.rule == "default_or_kwarg" and told and bool(sized)
        moved = node.func.attr == "to" and len(node.args) == 1 and not node.keywords
        if given is not None and moved and _is_given(node.args[0], given):
            return _is_made(node.func.value, index, None)
        if node.func.attr in _ENDS or path.startswith("torch."):
            return False
        node = node.func.value
    return False


def _is_given(node: ast.expr | None, given: set[str]) -> bool:
    """Whether it is a device that the constructor is given, or finds in the module."""
    return node is not None and (names.of_self(node) == "device" or (isinstance(node, ast.Name) and node.id in given))


def _registered(info: ClassInfo, name: str) -> bool:
    """Whether something registers a tensor under that name, or under one that is computed."""
    for node in info.calls:
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("register_buffer", "register_parameter"):
            first = node.args[0] if node.args else None
            if not isinstance(first, ast.Constant) or first.value == name:
                return True
    return False


def _uses(info: ClassInfo, name: str) -> Iterator[Step]:
    layers = _layers(info)
    for method in info.methods.values():
        if method.name in _BUILDS or "staticmethod" in method.decorators:
            continue
        arguments = {parameter.arg for parameter in method.parameters[1:]}
        same = {f"self.{name}"} | _aliases(method, name, arguments)
        for node in method.nodes:
            parts = _operands(info, node)
            held = [part for part in parts if _is_one_of(part, same)]
            if held and any(_computes(part, arguments) for part in parts if part is not held[0]):
                yield Step(held[0], "meets what the method is given here")
            elif isinstance(node, ast.Call) and names.of_self(node.func) in layers:
                held = [part for part in nodes.given(node) if _is_one_of(part, same)]
                if held:
                    yield Step(held[0], "goes into a layer of the module here")


def _layers(info: ClassInfo) -> set[str]:
    """The attributes in which the constructor keeps layers of torch that have parameters."""
    found: set[str] = set()
    for node in info.methods["__init__"].of(ast.Assign):
        name, path = names.of_self(node.targets[0]), info.index.resolve(names.called(node.value))
        known = torch_table.module(path)
        if name and (path in CONTAINERS or (known is not None and known.has_params)):
            found.add(name)
    return found


def _aliases(method: FunctionInfo, name: str, arguments: set[str]) -> set[str]:
    """The names of what is computed from the attribute alone; those that come from ``arguments`` are put there."""
    named = _bound(method)
    found = {f"self.{name}"}
    for node in method.of(ast.Assign):
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Name) or named.count(target.id) > 1:
            continue
        if _is_one_of(node.value, found):
            found.add(target.id)
        elif _computes(node.value, arguments):
            arguments.add(target.id)
    return found


def _operands(info: ClassInfo, node: ast.AST) -> list[ast.expr]:
    """The parts of an operation, or of a call of torch, that have to be in one place."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call) and (node.args or node.keywords):
        path = info.index.resolve(names.dotted(node.func))
        if path.startswith("torch.") and torch_table.function(path) is not None:
            given = nodes.given(node)
            return [part for one in given for part in (one.elts if isinstance(one, (ast.List, ast.Tuple)) else (one,))]
    return []


def _is_one_of(node: ast.expr, same: AbstractSet[str]) -> bool:
    """Whether it is the attribute, or a tensor computed from it alone."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _ENDS:
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return names.dotted(node) in same


def _computes(node: ast.expr, arguments: set[str]) -> bool:
    """Whether an operand is one of the arguments, or a tensor that is computed from one of them."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _ENDS:
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.BinOp):
            return _computes(node.left, arguments) or _computes(node.right, arguments)
        elif isinstance(node, ast.Attribute) and node.attr not in _NO_TENSOR:
            node = node.value
        else:
            return False
    return node.id in arguments
