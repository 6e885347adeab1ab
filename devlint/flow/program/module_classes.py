"""What makes a class a module, and whether it has parameters or buffers."""

from __future__ import annotations

import ast
import builtins

from devlint.flow.catalog import shapes, torch_table
from devlint.flow.catalog.concepts import MEMBERS, MODULE, PARAMETER
from devlint.flow.catalog.creation import FLAT, SIZED
from devlint.flow.program.def_use import called
from devlint.flow.program.module_bases import is_bare, is_plain
from devlint.flow.program.symbols import ClassInfo
from devlint.flow.syntax import names, nodes
from devlint.flow.syntax.nodes import derived
from devlint.source.syntax import says_none

_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
_OWN_MOVES = frozenset({"self.to", "self.cuda"})
_KEEPING = (shapes.SAME_SHAPE | shapes.ALWAYS_MANY | shapes.PERMUTED) - {"type"}
"""Methods whose result is where the tensor is."""
_BUILTINS = frozenset(dir(builtins))
_DEEPEST = 4
_MOST_NESTED = 3


@derived
def has_state(info: ClassInfo) -> bool | None:
    """Whether a class has parameters or buffers; ``None`` where that cannot be seen."""
    answer: bool | None = False
    for node, path in called(info):
        known = torch_table.module(path)
        registers = isinstance(node.func, ast.Attribute) and node.func.attr in nodes.REGISTERING
        if registers or path in MEMBERS or (known is not None and known.has_params):
            return True
        inner = info.index.classes.get(path)
        if inner is not None and inner is not info and inner.is_module:
            answer = None
    return None if _is_strange(info) or any(has_state(parent) is not False for parent in info.parents()) else answer


@derived
def finds_its_state(info: ClassInfo) -> bool:
    """Whether all parameters and buffers of a class are variables from outside of it, wherever these are."""
    held: list[ast.expr | None] = []
    for node, path in called(info):
        known = torch_table.module(path)
        inner = info.index.classes.get(path)
        if (known is not None and known.has_params) or (inner is not None and inner.is_module):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in nodes.REGISTERING:
            held.append(nodes.argument(node, 1, "tensor"))
        elif path in MEMBERS:
            held.append(nodes.argument(node, 0, "data"))
    inside = list(nodes.walk(info.node))
    own = {node.id for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in inside if isinstance(node, ast.arg)}
    return bool(held) and all(isinstance(node, ast.Name) and node.id not in own for node in held)


@derived
def made_later(info: ClassInfo) -> frozenset[str]:
    """The attributes that methods of a module give parameters, and nothing else, where one moves it afterwards."""
    if not any(names.called(call) in _OWN_MOVES for call in info.calls):
        return frozenset()
    made: dict[str, list[bool]] = {}
    for node in info.of(ast.Assign):
        for name in filter(None, map(names.of_self, node.targets)):
            made.setdefault(name, []).append(_is_parameter(info, node.value))
    return frozenset(name for name, all_made in made.items() if all(all_made))


def _is_parameter(info: ClassInfo, node: ast.expr) -> bool:
    """Whether an expression makes a parameter; of the type that it has anyway, a conversion leaves it one."""
    if isinstance(node, ast.Call) and names.method(node) == "float" and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return isinstance(node, ast.Call) and info.index.resolve(names.called(node)) == PARAMETER


@derived
def left_later(info: ClassInfo) -> dict[str, ast.expr]:
    """The attributes that methods of a module give tensors of the default device, where one moves the module.

    Each with what makes it; none that anything else but ``None`` is given to as well.
    """
    if not any(names.called(call) in _OWN_MOVES for call in info.calls):
        return {}
    stored = [names.of_self(node) for node in info.of(ast.Attribute) if not isinstance(node.ctx, ast.Load)]
    made: dict[str, list[ast.expr]] = {}
    for node in info.of(ast.Assign):
        for name in filter(None, map(names.of_self, node.targets)):
            made.setdefault(name, []).append(node.value)
    found = {}
    for name, values in made.items():
        given = [value for value in values if not says_none(value)]
        if given and len(values) == stored.count(name) and all(_is_creation(info, value) for value in given):
            found[name] = given[0]
    return found


def _is_creation(info: ClassInfo, node: ast.expr) -> bool:
    """Whether an expression makes a tensor with dimensions where nobody says where, whatever it does to it then."""
    while isinstance(node, ast.Call) and not any(word.arg in ("device", None) for word in node.keywords):
        path = info.index.resolve(names.called(node))
        entry = torch_table.function(path)
        name = path.rpartition(".")[2]
        if entry is not None and (name in SIZED or name in FLAT or name == "from_numpy"):
            return True
        if entry is not None and entry.rule == "same_as_input" and node.args:
            node = node.args[0]
        elif names.method(node) in _KEEPING and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return False
    return False


def _is_strange(info: ClassInfo) -> bool:
    """Whether a base that the project does not define may bring parameters or buffers along."""
    return not all(is_bare(root, info.index.catalog) for root in info.roots())


def is_empty(info: ClassInfo, depth: int = 0) -> bool:
    """Whether all that a class can hold is seen, and has neither parameters nor buffers: pooling, a chain of such."""
    if depth == _DEEPEST or _is_strange(info) or has_state(info) is True:
        return False
    inner: list[ClassInfo] = list(info.parents())
    first = info.methods.get("__init__")
    making = frozenset(first.calls) if first is not None else frozenset()
    for node, path in called(info):
        spelled = names.dotted(node.func)
        made = info.index.classes.get(path) or (info.index.outside(spelled, path) if names.is_class(spelled) else None)
        if made is not None and made.is_module:
            inner.append(made)
        elif made is None and not _makes_nothing(node, path, node in making):
            return False
    return not _calls_what_it_is_given(info) and all(is_empty(other, depth + 1) for other in inner)


def _makes_nothing(call: ast.Call, path: str, making: bool) -> bool:
    """Whether a call surely makes no module, or one without parameters and buffers; ``making``: in ``__init__``."""
    known = torch_table.module(path)
    if known is not None and known.buffer_arguments:
        # a loss, which keeps nothing but weights
        told = {keyword.arg for keyword in call.keywords}
        return not call.args and None not in told and known.buffer_arguments.isdisjoint(told)
    if known is not None:
        return not (known.has_params or known.has_buffers or path.rpartition(".")[2] in _CONTAINERS)
    if path.startswith(("torch.", "math.")) or path in _BUILTINS:
        return True
    # super().__init__(), and what the other methods ask of their inputs; a class begins with a capital
    name = call.func.attr if isinstance(call.func, ast.Attribute) else path.rpartition(".")[2]
    return bool(name) and not name[:1].isupper() and not (making and path)


def _calls_what_it_is_given(info: ClassInfo) -> bool:
    """Whether an attribute that keeps an argument is called, or asked for something, as a module would be."""
    given = [target for node in info.of(ast.Assign) if isinstance(node.value, ast.Name) for target in node.targets]
    kept = {target.attr for target in given if isinstance(target, ast.Attribute)}
    return any(not kept.isdisjoint(names.dotted(call.func).split(".")) for call in info.calls)


@derived
def holds_only_tensors(info: ClassInfo) -> bool:
    """Whether a class is known to hold nothing but tensors: no layer, no unknown module, no unknown base."""
    return _only_tensors(info, 0)


def _only_tensors(info: ClassInfo, depth: int) -> bool:
    if depth > _MOST_NESTED or not all(root == MODULE or is_plain(root) for root in info.roots()):
        return False
    return all(_holds_no_layer(known, depth) for known in info.linearization())


def _holds_no_layer(info: ClassInfo, depth: int) -> bool:
    """Whether no layer is made, and nothing that may be one is kept as an attribute."""
    known = (torch_table.module(path) for _, path in called(info))
    if any(module is not None and module.has_params for module in known):
        return False
    kept = (node.value for node in info.of(ast.Assign) if isinstance(node.targets[0], ast.Attribute))
    made = {names.called(part) for value in kept for part in nodes.walk(value)}
    return all(_is_no_layer(info, name, depth) for name in made if names.is_class(name))


def _is_no_layer(info: ClassInfo, name: str, depth: int) -> bool:
    path = info.index.resolve(name)
    if path.startswith("torch."):
        return True
    inner = info.index.classes.get(path) or info.index.outside(name, path)
    return inner is not None and (inner is info or not inner.is_module or _only_tensors(inner, depth + 1))


def is_alone(info: ClassInfo) -> bool:
    """Whether no other class of the file that is known, and has methods, has its name."""
    owners = (method.owner for method in info.index.functions.values())
    return all(owner is info or owner is None or owner.name != info.name for owner in owners)
