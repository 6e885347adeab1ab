"""What the files of a project define, and where their words stand."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from devlint.flow.catalog.concepts import INERT_DECORATORS
from devlint.source.files import held

_Defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_EXPORTED = re.compile(rb"^__all__\s*\+?=\s*[\[(][^\])]*[\])]", re.MULTILINE)
"""What a module offers is used where somebody takes it."""
_PLAIN = frozenset({"object", "Module"})
"""Classes, by their last names, that call no method of those derived from them but what is in ``_HOOKS``."""
_HOOKS = re.compile(r"__\w+__|forward|extra_repr|train|_\w+|\w*(?:state_dict|parameters|modules|buffers|hook)\w*")
_COMMENT = re.compile(rb"^[ \t]*#[^\n]*", re.MULTILINE)
"""What is commented out names nothing; a shebang, or a line of a shell script, neither."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition: its name, and the first and the last row of it. ``own`` is whether nobody else may know of it."""

    name: str
    rows: tuple[int, int]
    own: bool


@dataclass(frozen=True, slots=True)
class Module:
    """A file: what it defines at its top level, and in its classes, by qualified name, and where its words stand.

    What it only takes from others, under their names for it, it does not name yet: ``taken`` are the rows of that.
    """

    definitions: dict[str, Definition]
    lines: list[bytes]
    taken: frozenset[int]
    comments: list[bytes]

    def naming(self, name: str, but: tuple[int, int] = (0, 0)) -> Iterator[str]:
        """The definitions at the top level that name something, outside some rows; empty for what is in none."""
        word = re.compile(rb"\b%b\b" % name.encode())
        for row, line in enumerate(self.lines, 1):
            if not but[0] <= row <= but[1] and row not in self.taken and word.search(line):
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
    data = held(path) or b""
    try:
        tree = ast.parse(data)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    shown = _COMMENT.sub(b"", data)
    if not installed:
        shown = _EXPORTED.sub(lambda match: b"\n" * match[0].count(b"\n"), shown)
    taken = frozenset[int]() if installed and is_package(path) else frozenset(_taken(tree))
    return Module(_defined(tree.body), shown.splitlines(), taken, _COMMENT.findall(data))


def _taken(tree: ast.Module) -> Iterator[int]:
    """The rows of statements that take names from other modules, and give them no other."""
    for node in ast.walk(tree):
        if isinstance(node, _IMPORTS) and not any(alias.asname for alias in node.names):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


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
    return Definition(node.name, (node.lineno, node.end_lineno or node.lineno), own)
