"""What makes a class a module, and whether it has parameters or buffers."""

from __future__ import annotations

import ast
import builtins

from devlint.flow.catalog import torch_table
from devlint.flow.catalog.concepts import MODULE, PARAMETER
from devlint.flow.program.module_bases import is_bare, is_plain
from devlint.flow.program.symbols import ClassInfo
from devlint.flow.syntax import names
from devlint.flow.syntax.nodes import derived


@derived
def has_state(info: ClassInfo) -> bool | None:
    """Whether a class has parameters or buffers; ``None`` where that cannot be seen."""
    answer: bool | None = False
    for node in info.calls:
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("register_buffer", "register_parameter"):
            return True
        path = info.index.resolve(names.dotted(node.func))
        known = torch_table.module(path)
        if path == PARAMETER or (known is not None and known.has_params):
            return True
        inner = info.index.classes.get(path)
        if inner is not None and inner is not info and inner.is_module:
            answer = None
    strange = any(not is_bare(root, info.index.catalog) for root in info.roots())
    return None if strange or any(has_state(parent) is not False for parent in info.parents()) else answer


_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
_BUILTINS = frozenset(dir(builtins))
_DEEPEST = 4


def is_empty(info: ClassInfo, depth: int = 0) -> bool:
    """Whether all that a class can hold is seen, and has neither parameters nor buffers: pooling, a chain of such."""
    if (
        depth == _DEEPEST
        or any(not is_bare(root, info.index.catalog) for root in info.roots())
        or has_state(info) is True
    ):
        return False
    inner: list[ClassInfo] = list(info.parents())
    first = info.methods.get("__init__")
    making = frozenset(first.calls) if first is not None else frozenset()
    for node in info.calls:
        made = _class_of(info, node)
        if made is not None and made.is_module:
            inner.append(made)
        elif made is None and not _makes_nothing(info, node, node in making):
            return False
    return not _calls_what_it_is_given(info) and all(is_empty(other, depth + 1) for other in inner)


def _class_of(info: ClassInfo, call: ast.Call) -> ClassInfo | None:
    """The class of the project that is called, as far as its name says that it is one."""
    spelled = names.dotted(call.func)
    path = info.index.resolve(spelled)
    known = info.index.classes.get(path)
    return info.index.outside(spelled, path) if known is None and names.is_class(spelled) else known


def _makes_nothing(info: ClassInfo, call: ast.Call, making: bool) -> bool:
    """Whether a call surely makes no module, or one without parameters and buffers; ``making``: in ``__init__``."""
    path = info.index.resolve(names.dotted(call.func))
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
    kept = {
        target.attr
        for node in info.nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }
    return any(not kept.isdisjoint(names.dotted(call.func).split(".")) for call in info.calls)


_MOST_NESTED = 3


@derived
def holds_only_tensors(info: ClassInfo) -> bool:
    """Whether a class is known to hold nothing but tensors: no layer, no unknown module, no unknown base."""
    return _only_tensors(info, 0)


def _only_tensors(info: ClassInfo, depth: int) -> bool:
    """Whether a class is known to hold nothing but tensors: no layer, no unknown module, no unknown base."""
    if depth > _MOST_NESTED or not all(root == MODULE or is_plain(root) for root in info.roots()):
        return False
    return all(_holds_no_layer(known, depth) for known in (info, *info.ancestors()))


def _holds_no_layer(info: ClassInfo, depth: int) -> bool:
    for node in info.calls:
        known = torch_table.module(info.index.resolve(names.dotted(node.func)))
        if known is not None and known.has_params:
            return False
    return all(_is_no_layer(info, name, depth) for name in _kept(info))


def _kept(info: ClassInfo) -> set[str]:
    """The names of what is called for an attribute of ``self``, and spelled like a class."""
    assigned = (node for node in info.of(ast.Assign) if isinstance(node.targets[0], ast.Attribute))
    called = (part for node in assigned for part in ast.walk(node.value) if isinstance(part, ast.Call))
    return {name for name in (names.dotted(node.func) for node in called) if names.is_class(name)}


def _is_no_layer(info: ClassInfo, name: str, depth: int) -> bool:
    path = info.index.resolve(name)
    if path.startswith("torch."):
        return True
    inner = info.index.classes.get(path) or info.index.outside(name, path)
    return inner is not None and (inner is info or not inner.is_module or _only_tensors(inner, depth + 1))
