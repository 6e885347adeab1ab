"""The other files of a project, as the interpreter reads them: parsed once for all that import from them.

The interpreter knows no folders.  It asks a :class:`Project` for the definition behind a dotted name, and reads no more
of another file than the statements that bind that name.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import NamedTuple, Protocol

from devlint.flow.catalog.libraries import BUILT_IN, Catalog
from devlint.flow.program import release, relevance
from devlint.flow.program.identity import ELSEWHERE
from devlint.flow.program.symbols import ClassInfo, FunctionInfo, Index
from devlint.flow.syntax.bindings import Outline
from devlint.flow.syntax.nodes import DEFINITIONS

_DEFAULT_DEVICE = ("set_default_device", "set_default_tensor_type", "DeviceContext")
_ENTERED = re.compile(r"\benter_context\([^\n]*(?<!cuda\.)\bdevice\b(?!_type|\.type)|\bdevice\([^\n]*\)\.__enter__\(")
_ENTERS = ("enter_context(", "__enter__(")
_PLACES = re.compile(r"device|cuda|cpu|torch|nn\.|DataLoader|\bmps\b|\bxpu\b", re.IGNORECASE)
"""What a value says that is worth knowing elsewhere."""
_CALLED = re.compile(r"(?<![\w.])(\w+)\(|self\.(\w+)\(")
_MADE = re.compile(r"^\s+return [A-Z]\w*\(", re.MULTILINE)
_DEEPEST = 3


def changes_default(text: str) -> bool:
    """Whether a file changes where tensors are made that nobody asks to be anywhere."""
    if any(word in text for word in _DEFAULT_DEVICE):
        return True
    return any(word in text for word in _ENTERS) and _ENTERED.search(text) is not None


def is_worth_reading(code: str, sayers: frozenset[str]) -> bool:
    """Whether a function, or a class, is worth more than a look at its text.

    ``sayers`` are the functions beside it that say where something is.
    """
    if code.startswith("class"):
        return "forward(" in code or "Module" in code or relevance.says_where(code)
    if relevance.says_where(code) or _MADE.search(code):
        return True
    return any(name in sayers for name, _ in _CALLED.findall(code))


class File:
    """A file of the project that others import from."""

    def __init__(self, filename: str, tree: ast.Module, text: str, catalog: Catalog = BUILT_IN) -> None:
        self.filename = filename
        self.catalog = catalog
        self.tree = tree
        self.text = text
        self._matters: dict[str, bool] = {}
        self._index: ConsultedIndex | None = None

    @property
    def index(self) -> ConsultedIndex:
        """Its definitions, under keys of their own."""
        if self._index is None:
            self._index = ConsultedIndex(
                self.tree, self.text, f"{ELSEWHERE}{self.filename}:", self.class_behind, self.catalog
            )
            self._index.outline = self.outline
        return self._index

    @cached_property
    def outline(self) -> Outline:
        """What it binds at its top level."""
        return Outline(self.tree)

    def class_behind(self, path: str) -> ClassInfo | None:
        """The class that the file means by a dotted name, where another file of the project defines it."""
        return None

    @property
    def in_use(self) -> bool:
        """Whether somebody may know its definitions."""
        return self._index is not None

    def dissolve(self) -> None:
        """Let go of its definitions, which know each other and it."""
        if self._index is not None:
            release.definitions(self._index)
            self._index = None

    def forget(self) -> None:
        """Others were dissolved: what it knows of their definitions is to be asked again."""
        if self._index is not None:
            release.others(self._index)

    def class_(self, name: str) -> ClassInfo | None:
        """The class of that name, if nothing else can be meant by it."""
        node = self.defining(name)
        return self.index.class_(node) if isinstance(node, ast.ClassDef) else None

    def function(self, name: str) -> FunctionInfo | None:
        """The function of that name, if nothing else can be meant by it, and nothing is wrapped around it."""
        node = self.defining(name)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.decorator_list:
            return self.index.function(node)
        return None

    def defining(self, name: str) -> ast.stmt | None:
        """The only statement that binds a name."""
        found = self.outline.bound.get(name, ())
        return found[0].statement if len(found) == 1 and name not in self.index.rebound else None

    def matters(self, name: str) -> bool:
        """Whether what binds a name may say where something is: it defines something, or speaks of devices."""
        if name in self._matters:
            return self._matters[name]
        found = self.outline.statements(name)
        defines = any(isinstance(node, (*DEFINITIONS, ast.Import, ast.ImportFrom)) for node in found)
        matters = self._matters[name] = defines or any(_PLACES.search(self.index.code(node)) for node in found)
        return matters


class ConsultedIndex(Index):
    """The definitions of a file that others import from: only those count that somebody asks for."""

    def _look_for_triggers(self) -> None:
        self._worth: dict[ast.AST, bool] = {}

    def _trigger_callers(self) -> None:
        """Nobody enters anything of this file unasked."""

    def triggered(self, node: ast.AST) -> bool:
        """What is asked for is worth it."""
        return True

    def says_something(self, info: FunctionInfo, depth: int = 0) -> bool:
        """Whether a function, or one that it calls, mentions anything that matters."""
        known = self._worth.get(info.node)
        if known is None:
            self._worth[info.node] = False
            code = self._body(info.node)
            known = relevance.says_where(code) or self._builds(info)
            if not known and depth < _DEEPEST:
                known = any(self.says_something(called, depth + 1) for called in self._called(info, code))
            self._worth[info.node] = known
        return known

    def _builds(self, info: FunctionInfo) -> bool:
        """Whether a function returns a new module."""
        made = (
            node.value.func for node in info.own if isinstance(node, ast.Return) and isinstance(node.value, ast.Call)
        )
        for called in made:
            bound = self.outline.bound.get(called.id, ()) if isinstance(called, ast.Name) else ()
            if len(bound) == 1 and isinstance(bound[0].statement, ast.ClassDef):
                return self.class_(bound[0].statement).is_module
        return False

    def _body(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        """The lines of a function, but for its documentation."""
        first = node.body[0]
        text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        code = self.code(node)
        lines = code.split("\n")
        return "\n".join(lines[first.end_lineno - node.lineno + 1 :]) if text and first.end_lineno else code

    def _called(self, info: FunctionInfo, code: str) -> list[FunctionInfo]:
        """The functions of the file that a function calls, and the methods of its own class."""
        found: list[FunctionInfo] = []
        for function, method in set(_CALLED.findall(code)):
            if method and info.owner is not None and method in info.owner.methods:
                found.append(info.owner.methods[method])
            for bound in self.outline.bound.get(function, ()):
                if isinstance(bound.statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    found.append(self.function(bound.statement))
        return found


class Definition(NamedTuple):
    """A name of a file; an empty one stands for the file itself."""

    file: File
    name: str


class Project(Protocol):
    """The project around the file that is checked."""

    filename: str
    """The name under which that file is known."""
    default_is_set: bool
    """Whether a script that imports it changes the default device."""

    def find(self, importer: str, path: str, base: bool = False) -> Definition | None:
        """What a dotted name, which begins with dots where it is relative, means in the file ``importer``.

        Of definitions only those are found that may say where something is, but for what is asked for as a ``base``.
        """
        ...

    def knows(self, importer: str, root: str) -> bool:
        """Whether a name that begins with ``root`` can mean something of the project in the file ``importer``."""
        ...

    def stated(self, filename: str) -> dict[str, str]:
        """The rows that users have written for what a file defines: `helper`, `Class.method`, each with its key."""
        ...

    def stated_as(self, importer: str, path: str) -> str:
        """The row that users have written for what a dotted name means in the file ``importer``, empty if none."""
        ...
