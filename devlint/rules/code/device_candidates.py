"""Which of the devices at hand would do in the place of a written one, and of what a value is made."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from devlint.device import parse
from devlint.flow.catalog.methods import TO_HOST
from devlint.flow.program.def_use import DESCRIPTIONS
from devlint.flow.program.type_hints import defaults_of
from devlint.flow.syntax.names import called
from devlint.flow.syntax.nodes import parameters
from devlint.rules.code.blocks import around, assigned, given, method_of, statement_of, stores, targets_of, way_to
from devlint.rules.code.control_flow import is_bound_at, stands_at
from devlint.rules.code.device_owners import has_device, says_tensor
from devlint.sites.base import Scope
from devlint.source.syntax import says_none, walk
from devlint.source.tree import Source

# A rank or an index is an accelerator's number, and of which kind the code does not say.
_DEVICE = re.compile(r"(?:.*[._])?dev(?:ice)?\d*", re.IGNORECASE)
# A word more, as in `origin_device` and `gather_device`, says that it is the device of something else.
_OF_ANYTHING = r"(?i)(?:.*\.)?_*(?:(?:cuda|gpu|torch|target|model)_)?dev(?:ice)?\d*"
_NOWHERE = r"(?:None|(?:[\w.]*device\()?'cpu'\)?)\Z"
"""A default with which a function takes no accelerator."""
_OTHER_GPU = r"'cuda(?::(?:\{\}'\.format\()?|', )[1-9]"
"""How a GPU is written that `.cuda()` does not mean as a rule, and which not every machine has."""
_VIEWS = frozenset({"data", "T", "mT", "H", "real", "imag"})
"""Attributes of a tensor that are the same memory."""
_TAKES_ARRAYS = frozenset(f"torch.{name}" for name in ("from_numpy", "Tensor", "FloatTensor", "LongTensor"))
"""What gets arrays and lists; of a tensor, it would be a copy that nobody needs."""
_TENSOR = r"(?:^|\.)(?:Tensor|Parameter)$"


def device_at_hand(source: Source, node: ast.AST, scope: Scope) -> str:
    """The best device expression to say at ``node``, empty where there is none."""
    return _best(source, node, scope.devices)


def device_instead_of_cuda(source: Source, node: ast.AST, scope: Scope) -> str:
    """The device at hand to say in the place of CUDA: not that of what goes away, nor of what that is made of."""
    function = around(source, node)
    others = (text for text in scope.devices if not _is_of_moved(text, function))
    others = (text for text in others if re.fullmatch(_OF_ANYTHING, text) and not left_to_default(text, node, function))
    others = (text for text in others if not _names_cuda(source, node, text))
    return _best(source, node, [text for text in others if not _goes_on_to(source, node, text)])


def _names_cuda(source: Source, node: ast.AST, text: str) -> bool:
    """Whether a device is CUDA wherever it is assigned, so that to name it opens nothing, or is one GPU of several."""
    classes = (outer for outer, _ in reversed(way_to(source, node)) if isinstance(outer, ast.ClassDef))
    here = next(classes, source.tree) if "." in text else around(source, node)
    held = assigned(here).get(text) or assigned(source.tree).get(text) or ()
    numbered = any(re.search(_OTHER_GPU, ast.unparse(value)) for _, value in held)
    return numbered or (bool(held) and all(_is_cuda(value) for _, value in held))


def _is_cuda(value: ast.AST | None) -> bool:
    """Whether an expression spells CUDA out: `"cuda"`, `f"cuda:{rank}"`, `torch.device("cuda", rank)`."""
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] == "device" and _is_cuda(next(iter(value.args), None))
    text = value.values[0] if isinstance(value, ast.JoinedStr) and value.values else value
    return isinstance(text, ast.Constant) and str(text.value).partition(":")[0] == "cuda"


def _is_of_moved(text: str, function: ast.AST) -> bool:
    """Whether a device is that of something the function moves away, be it under a name: ``device = x.device``."""
    moved, held = _sent_away(function), (value for _, value in assigned(function).get(text, ()))
    owners = (value.value for value in held if isinstance(value, ast.Attribute) and value.attr == "device")
    return text.rpartition(".")[0] in moved or any(not moved.isdisjoint(_read(owner)) for owner in owners)


def _best(source: Source, node: ast.AST, devices: Iterable[str]) -> str:
    for text in filter(_DEVICE.fullmatch, devices):
        name, _, rest = text.partition(".")
        held = assigned(source.tree if rest else around(source, node)).get(text, ())
        if rest and any(isinstance(value, ast.Name) and _lacks_default(source, value) for _, value in held):
            continue
        if any(called(value).endswith("cuda.current_device") for _, value in held):
            # the number of a GPU, to ask for which raises without CUDA, as what it would replace does
            continue
        if text in _words(source.tree) or (rest == "device" and _may_be_else(source, node, name)):
            continue
        if rest == "device" and name != "self" and not _is_tensor(source, node, name):
            continue
        if is_bound_at(source, name, node):
            return text
    return ""


def _is_tensor(source: Source, node: ast.AST, name: str) -> bool:
    """Whether a name is surely one of a tensor, or of what has a device as a tensor has."""
    function = around(source, node)
    array = name in _arrays(function, says_tensor(function, name))
    return has_device(source, node, name) and not array and not _may_be_none(source, node, name)


def _lacks_default(source: Source, name: ast.Name) -> bool:
    """Whether a name is a parameter that is an empty string unless somebody says otherwise: no device."""
    arguments = getattr(around(source, name), "args", None)
    default = defaults_of(arguments).get(name.id) if isinstance(arguments, ast.arguments) else None
    return isinstance(default, ast.Constant) and default.value == ""


def _goes_on_to(source: Source, node: ast.AST, text: str) -> bool:
    """Whether what a move makes, or what is made of that, is sent on to ``text`` further down: another place."""
    targets = {*targets_of(statement_of(source, node))}
    function, row = around(source, node), int(getattr(node, "lineno", 0))
    sent = (call for call in walk(function) if isinstance(call, ast.Call) and call.lineno > row) if targets else ()
    for call in sent:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
            told = map(ast.unparse, [*call.args[:1], *(word.value for word in call.keywords)])
            if text in told and not targets.isdisjoint(made_of(call.func.value, function)):
                return True
    return False


def _may_be_else(source: Source, node: ast.AST, name: str) -> bool:
    """Whether the function asks if ``name`` is something else than a tensor, and does not make it one."""
    function = around(source, node)
    for call in walk(function) if name not in stores(function) else ():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "isinstance":
            kinds = call.args[1] if len(call.args) > 1 else None
            named = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
            tensors = all(kind and re.search(_TENSOR, ast.unparse(kind)) for kind in named)
            if ast.unparse(call.args[0]) == name and not tensors:
                return True
    return False


def _may_be_none(source: Source, node: ast.AST, name: str) -> bool:
    """Whether ``name`` is a parameter that may be None by its annotation, or by its default and all that is asked."""
    arguments = getattr(around(source, node), "args", None)
    if isinstance(arguments, ast.arguments) and says_none(defaults_of(arguments).get(name)):
        return not stands_at(source, f"{name}.device", node)
    given = parameters(arguments) if isinstance(arguments, ast.arguments) else []
    written = (ast.unparse(one.annotation) for one in given if one.arg == name and one.annotation is not None)
    return any(re.search(r"\bNone\b|\bOptional\b", text) for text in written)


@lru_cache(maxsize=4)
def _arrays(function: ast.AST, annotated: bool) -> frozenset[str]:
    """What a function takes for an array: NumPy gets it, or torch makes a tensor of it, or it selects from an array.

    Of what is ``annotated`` as a tensor, old code makes another one.
    """
    made = {name for name, held in assigned(function).items() if any(_of_numpy(value) for _, value in held)}
    found: set[str] = set()
    for node in walk(function):
        takes = {"torch.from_numpy"} if annotated else _TAKES_ARRAYS
        if isinstance(node, ast.Call) and (_of_numpy(node) or ast.unparse(node.func) in takes):
            inside = given(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in made:
            inside = [node.slice]
        else:
            continue
        parts = (part for outer in inside for part in _selected(outer))
        found.update(part.id for part in parts)
    return frozenset(found)


def _selected(node: ast.expr) -> Iterator[ast.Name]:
    """The names of which an expression takes all, or a selection."""
    for part in node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]:
        while isinstance(part, ast.Subscript):
            part = part.value
        if isinstance(part, ast.Name):
            yield part


def _of_numpy(node: ast.expr) -> bool:
    """Whether an expression is what a function of NumPy returns, or a method of that."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
        if isinstance(node, ast.Name):
            return node.id in ("np", "numpy")
    return False


@lru_cache(maxsize=4)
def _sent_away(around: ast.AST) -> frozenset[str]:
    """Whose data a function or file itself moves to CUDA, or to a device of its own, so that it is not surely there."""
    names: set[str] = set()
    for call in walk(around):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda"):
            given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device")]
            named = (part.value for part in given if isinstance(part, ast.Constant))
            away = call.func.attr == "cuda" or any(str(name).startswith("cuda") for name in named)
            if away or any(re.fullmatch(_OF_ANYTHING, ast.unparse(part)) for part in given):
                names |= made_of(call.func.value, around)
    return frozenset(names)


@lru_cache(maxsize=4)
def _words(tree: ast.AST) -> frozenset[str]:
    """What a file compares with words that are no devices, such as ``self.device == "gpu"``, and keeps all the same."""
    found: set[str] = set()
    replaced: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, (ast.Name, ast.Attribute)):
            given = [part.value for part in walk(node.comparators[0]) if isinstance(part, ast.Constant)]
            if any(isinstance(text, str) and text and parse(text) is None for text in given):
                found.add(ast.unparse(node.left))
        elif isinstance(node, ast.If):
            stores = (target for part in node.body if isinstance(part, ast.Assign) for target in part.targets)
            replaced.update(ast.unparse(target) for target in stores)
    return frozenset(found - replaced)


def left_to_default(name: str, node: ast.AST, function: ast.AST | None) -> bool:
    """Whether ``name`` is a parameter that is None or the CPU unless somebody says otherwise, up to ``node``."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    default = defaults_of(function.args).get(name)
    if default is None or not re.match(_NOWHERE, ast.unparse(default)):
        return False
    return all(row >= getattr(node, "lineno", 0) for row, _ in assigned(function).get(name, ()))


def made_of(moved: ast.expr, around: ast.AST) -> set[str]:
    """The names, and the attributes of names, whose data ``moved`` carries, in the function or file ``around`` it."""
    found: set[str] = set()
    rest = list(_read(moved))
    while rest:
        name = rest.pop()
        if name not in found:
            found.add(name)
            values = (value for row, value in assigned(around).get(name, ()) if row < moved.lineno)
            rest += (source for value in values for source in _read(value))
    return found


def _read(node: ast.expr) -> Iterator[str]:
    """What an expression reads, but for what only describes a tensor or has come back to the host."""
    if isinstance(node, ast.Name) and node.id == "self":
        yield node.id
    rest: list[ast.AST] = [node]
    while rest:
        part = rest.pop()
        if isinstance(part, ast.Call):
            method = method_of(part)
            if method in TO_HOST or (isinstance(part.func, ast.Name) and part.func.id == "len"):
                continue
            if isinstance(part.func, ast.Attribute) and method not in DESCRIPTIONS:
                rest.append(part.func.value)
            rest += given(part)
        elif isinstance(part, ast.Attribute):
            if part.attr in _VIEWS:
                rest.append(part.value)
            elif part.attr not in DESCRIPTIONS:
                yield ast.unparse(part)
        elif isinstance(part, ast.Name):
            if part.id != "self":
                yield part.id
        else:
            rest.extend(ast.iter_child_nodes(part))
