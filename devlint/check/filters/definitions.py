"""What the files of a project define, and where their names stand."""

from __future__ import annotations

import ast
import enum
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from devlint.check.filters import project_files
from devlint.flow.catalog.concepts import INERT_DECORATORS
from devlint.source.files import held

_Defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PLAIN = frozenset({"object", "Module"})
"""Classes, by their last names, that call no method of those derived from them but what is in ``_HOOKS``."""
_HOOKS = re.compile(r"__\w+__|forward|extra_repr|train|_\w+|\w*(?:state_dict|parameters|modules|buffers|hook)\w*")
_COMMENT = re.compile(rb"^[ \t]*#[^\n]*", re.MULTILINE)
_DOTTED = re.compile(r"(?:\w+[.:])*([A-Za-z_]\w*)")
"""A text that is a name, or the place of one, as what is looked up is given."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition: its name, and the first and the last row of it. ``own`` is whether nobody else may know of it."""

    name: str
    rows: tuple[int, int]
    own: bool


class How(enum.Enum):
    """How a name stands in a file."""

    BARE = enum.auto()
    """By itself: it means what the file defines, or takes from another one."""
    OF_MODULE = enum.auto()
    """After the name of something imported."""
    OF_OBJECT = enum.auto()
    """After anything else."""
    TEXT = enum.auto()
    """In a text, by which it may be looked up."""
    TAKEN = enum.auto()
    """In a statement that takes it from another module and calls it something else, or offers it to others."""


class Mention(NamedTuple):
    """Where a name stands; after something imported, what that is: the module, and what it is in it, with dots."""

    row: int
    how: How
    source: str = ""


@dataclass(slots=True)
class Module:
    """A file: what it defines at its top level, and in its classes, by qualified name, and where its names stand.

    What it only takes from others, under their names for it, it does not name yet: ``taken`` has the modules that each
    such name comes from, ``stars`` those that everything is taken from, as the statements spell them.
    """

    definitions: dict[str, Definition]
    mentions: dict[str, list[Mention]] = field(default_factory=dict)
    taken: dict[str, list[str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    comments: Sequence[bytes] = ()

    def naming(
        self, name: str, ways: frozenset[How], means: Callable[[str], bool], but: tuple[int, int] = (0, 0)
    ) -> Iterator[str]:
        """The definitions at the top level that name something, outside some rows; empty for what is in none.

        ``means`` is whether it may be what is asked for after the name of something imported.
        """
        for row, how, source in self.mentions.get(name, ()):
            if how in ways and not but[0] <= row <= but[1] and (how is not How.OF_MODULE or means(source)):
                yield self._around(row)

    def gave_up(self, qualified: str) -> bool:
        """Whether a call of a definition is commented out: what is new, nothing need call yet."""
        call = re.compile(rb"^[ \t]*#[^\n]*\b%b\(" % self.definitions[qualified].name.encode())
        return any(map(call.match, self.comments))

    def _around(self, row: int) -> str:
        found = ((name, one.rows) for name, one in self.definitions.items() if "." not in name)
        return next((name for name, (first, last) in found if first <= row <= last), "")


def is_package(path: str) -> bool:
    """Whether a file is what a package has of its own, and takes from its modules."""
    return os.path.basename(path) == "__init__.py"


def module_of(path: str, installed: bool) -> Module | None:
    """What a file of a project defines; ``None`` if it cannot be read.

    Who installs the project may use what ``__all__`` has, and what a package takes from its modules.
    """
    tree = project_files.parsed(path)
    if tree is None:
        return None
    module = Module(_defined(tree.body), comments=_COMMENT.findall(held(path) or b""))
    try:
        _Mentions(module, installed, is_package(path)).visit(tree)
    except RecursionError:
        return None
    return module


class _Mentions(ast.NodeVisitor):
    """Writes down where the names of a file stand."""

    def __init__(self, module: Module, installed: bool, package: bool) -> None:
        self._module = module
        self._installed = installed
        self._offers = installed and package
        self._imported: dict[str, str] = {}

    def _add(self, name: str, row: int, how: How, source: str = "") -> None:
        self._module.mentions.setdefault(name, []).append(Mention(row, how, source))

    def visit_Module(self, node: ast.Module) -> None:
        """What is imported anywhere in it first: it may stand below who names it."""
        for one in ast.walk(node):
            if isinstance(one, ast.Import):
                for alias in one.names:
                    first = alias.name.partition(".")[0]
                    self._bind(alias.asname or first, alias.name if alias.asname else first)
            elif isinstance(one, ast.ImportFrom):
                for alias in one.names:
                    self._bind(alias.asname or alias.name, _joined(_source(one), alias.name))
        self.generic_visit(node)

    def _bind(self, name: str, source: str) -> None:
        """What is imported under one name from two places may be anything."""
        self._imported[name] = source if self._imported.get(name, source) == source else ""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        source = _source(node)
        for alias in node.names:
            if alias.name == "*":
                self._module.stars.append(source)
                continue
            self._module.taken.setdefault(alias.name, []).append(source)
            if alias.asname or self._offers:
                self._add(alias.name, node.lineno, How.TAKEN)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._add(node.id, node.lineno, How.BARE)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        row = node.end_lineno or node.lineno
        root, parts = node.value, []
        while isinstance(root, ast.Attribute):
            parts.append(root.attr)
            root = root.value
        if isinstance(root, ast.Name) and root.id in self._imported:
            source = self._imported[root.id]
            self._add(node.attr, row, How.OF_MODULE, source and ".".join([source, *reversed(parts)]))
        else:
            self._add(node.attr, row, How.OF_OBJECT)
        self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and (match := _DOTTED.fullmatch(node.value)):
            self._add(match[1], node.lineno, How.TEXT)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """The key of an item is no name of a definition."""
        self.visit(node.value)
        if not isinstance(node.slice, ast.Constant):
            self.visit(node.slice)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None and not isinstance(key, ast.Constant):
                self.visit(key)
            self.visit(value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self._installed or not any(isinstance(one, ast.Name) and one.id == "__all__" for one in node.targets):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if self._installed or not (isinstance(node.target, ast.Name) and node.target.id == "__all__"):
            self.generic_visit(node)


def _source(node: ast.ImportFrom) -> str:
    return "." * node.level + (node.module or "")


def _joined(source: str, name: str) -> str:
    return f"{source}{name}" if source.endswith(".") else f"{source}.{name}"


def _defined(body: list[ast.stmt]) -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    plain: set[str] = set(_PLAIN)
    for node in body:
        if not isinstance(node, _DEFINITIONS):
            continue
        # what is defined twice is used as whoever comes last
        found[node.name] = _definition(node, not _registered(node) and node.name not in found)
        if isinstance(node, ast.ClassDef) and all(ast.unparse(base).rpartition(".")[2] in plain for base in node.bases):
            plain.add(node.name)
            methods = (each for each in node.body if isinstance(each, _DEFINITIONS))
            for each in methods:
                own = not (_registered(each) or _registered(node) or node.keywords or _HOOKS.fullmatch(each.name))
                found[f"{node.name}.{each.name}"] = _definition(each, own)
    return found


def _registered(node: _Defining) -> bool:
    """Whether a decorator may make a definition known to somebody."""
    called = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return not all(any(f".{name}".endswith(f".{ast.unparse(one)}") for name in INERT_DECORATORS) for one in called)


def _definition(node: _Defining, own: bool) -> Definition:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return Definition(node.name, (first, node.end_lineno or node.lineno), own)
