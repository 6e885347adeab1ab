"""Of what a value is made: the names whose data goes into an expression, also through the assignments above it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from devlint.device import parse
from devlint.flow.catalog.methods import TO_HOST
from devlint.flow.program.def_use import DESCRIPTIONS
from devlint.flow.program.type_hints import defaults_of
from devlint.source.syntax import walk

_NOWHERE = re.compile(r"(?:None|(?:[\w.]*device\()?'cpu'\)?)\Z")
"""A default with which a function takes no accelerator."""
_VIEWS = frozenset({"data", "T", "mT", "H", "real", "imag"})
"""Attributes of a tensor that are the same memory."""


@lru_cache(maxsize=4)
def sent_to_cuda(around: ast.AST) -> frozenset[str]:
    """Whose data a function or file itself moves to CUDA, so that it is not surely there."""
    calls = (node for node in walk(around) if isinstance(node, ast.Call))
    moved = (call.func.value for call in calls if isinstance(call.func, ast.Attribute) and _goes_to_cuda(call))
    return frozenset(name for value in moved for name in made_of(value, around))


@lru_cache(maxsize=4)
def held_devices(around: ast.AST) -> dict[str, frozenset[str]]:
    """The names that hold the device of something, with what that is made of: `device = x.device`."""
    found: dict[str, frozenset[str]] = {}
    for node in walk(around):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == "device":
            parts = frozenset(_read(node.value.value))
            for target in node.targets:
                name = ast.unparse(target)
                found[name] = found.get(name, frozenset()) | parts
    return found


@lru_cache(maxsize=4)
def numbers_of_cuda(around: ast.AST) -> frozenset[str]:
    """The names that hold the number of a GPU, as CUDA gives it: `device = torch.cuda.current_device()`."""
    return frozenset(
        ast.unparse(target)
        for node in walk(around)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if ast.unparse(node.value.func).endswith("cuda.current_device")
        for target in node.targets
    )


@lru_cache(maxsize=4)
def words(tree: ast.AST) -> frozenset[str]:
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


def left_to_default(name: str, node: ast.AST, function: ast.AST) -> bool:
    """Whether ``name`` is a parameter that is None or the CPU unless somebody says otherwise, up to ``node``."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    default = defaults_of(function.args).get(name)
    if default is None or not _NOWHERE.match(ast.unparse(default)):
        return False
    return all(row >= getattr(node, "lineno", 0) for row, _ in _assigned(function).get(name, ()))


def _goes_to_cuda(call: ast.Call) -> bool:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device")]
    named = (part.value for part in given if isinstance(part, ast.Constant))
    return method == "cuda" or (method == "to" and any(str(name).startswith("cuda") for name in named))


def made_of(moved: ast.expr, around: ast.AST) -> set[str]:
    """The names, and the attributes of names, whose data ``moved`` carries, in the function or file ``around`` it."""
    assigned = _assigned(around)
    found: set[str] = set()
    rest = list(_read(moved))
    while rest:
        name = rest.pop()
        if name not in found:
            found.add(name)
            rest += (source for row, sources in assigned.get(name, ()) if row < moved.lineno for source in sources)
    return found


@lru_cache(maxsize=4)
def _assigned(around: ast.AST) -> dict[str, list[tuple[int, list[str]]]]:
    """For each name the rows in which it is assigned, and of what that is made."""
    found: dict[str, list[tuple[int, list[str]]]] = {}
    for node in walk(around):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            targets, value = [node.target], node.value
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            targets, value = [node.target], node.iter
        else:
            continue
        sources = list(_read(value))
        for target in targets:
            for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,):
                if isinstance(part, (ast.Name, ast.Attribute)):
                    found.setdefault(ast.unparse(part), []).append((part.lineno, sources))
    return found


def _read(node: ast.expr) -> Iterator[str]:
    """What an expression reads, but for what only describes a tensor or has come back to the host."""
    if isinstance(node, ast.Name) and node.id == "self":
        yield node.id
    rest: list[ast.AST] = [node]
    while rest:
        part = rest.pop()
        if isinstance(part, ast.Call):
            method = part.func.attr if isinstance(part.func, ast.Attribute) else ""
            if method in TO_HOST or (isinstance(part.func, ast.Name) and part.func.id == "len"):
                continue
            if isinstance(part.func, ast.Attribute) and method not in DESCRIPTIONS:
                rest.append(part.func.value)
            rest += part.args
            rest += (keyword.value for keyword in part.keywords)
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
