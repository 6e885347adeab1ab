"""What a file imports from other files of its project: functions, classes and values, as they are defined there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from devlint.device import Kind
from devlint.flow.core.interpreter import Frame, Imports, Interpreter
from devlint.flow.domain.export import named_in, scrubbed
from devlint.flow.domain.objects import Class, Function, Stateful
from devlint.flow.domain.tensors import DeviceValue, Loader, Tensor
from devlint.flow.domain.values import Flag, Named, Unknown, Value
from devlint.flow.program.project import Definition, File, Project
from devlint.flow.program.relevance import called_of
from devlint.flow.program.symbols import ClassInfo, FunctionInfo, Index
from devlint.flow.syntax.names import is_class, joint
from devlint.immutable import replace

_USEFUL = (Class, DeviceValue, Flag, Function, Loader, Named, Stateful, Tensor)
"""What is worth knowing of a name of another file; a plain constant may be anybody's to set."""


class ProjectImports(Imports):
    """The imports of one file of a project."""

    def __init__(self, interpreter: Interpreter, filename: str, project: Project, family: Family) -> None:
        super().__init__(interpreter)
        self._filename = filename
        self._project = project
        self._family = family
        self._values: dict[str, Value] = {}
        self._stars: dict[str, str] = {}
        self._roots: dict[str, bool] = {}
        self._classes: dict[str, ClassInfo | None] = {}
        self._stated: dict[str, str] = {}
        self._states = bool(interpreter.catalog.stated)
        self.interpreter.index.stated = project.stated(filename)

    def value(self, named: Named, spelled: str) -> Value:
        """What is behind an imported name: itself where the project does not define it, or where it cannot be told.

        What is spelled like a class is itself, too, until it is called.
        """
        return named if is_class(named.path) and not self.stated(named.path) else self._value(named, spelled)

    def called(self, frame: Frame, named: Named) -> Value:
        """What is behind a name that is called.

        What a module is built of is placed with it: its constructor need not know the classes of other files.
        """
        builds = frame.info is not None and frame.info.initialises and not self.stated(named.path)
        return named if builds or not is_class(named.path) else self._value(named, named.path)

    def _value(self, named: Named, spelled: str) -> Value:
        path = named.path
        held = self._values.get(path)
        if held is None:
            # whoever comes here again on the way goes round in a circle
            self._values[path] = named
            stated = self.stated(path)
            held = self._values[path] = Named(stated) if stated else self._found(path, spelled) or named
        return held

    def stated(self, path: str) -> str:
        """The name under which a user has written a row for what a dotted name means, empty where nobody has."""
        if not self._states:
            return ""
        if path not in self._stated:
            own = self.interpreter.catalog.states(path)
            self._stated[path] = path if own else self._project.stated_as(self._filename, path)
        return self._stated[path]

    def stated_calls(self, text: str) -> Iterator[str]:
        """The functions, as this file spells them, for which users have written rows."""
        index = self.interpreter.index
        yield from index.stated
        for name, path in index.imports.items():
            if self.stated(path):
                yield name
            else:
                yield from (f"{name}.{part}" for part in called_of(name, text) if self.stated(f"{path}.{part}"))

    def parameters(self, path: str) -> tuple[str, ...]:
        """The positional parameters of a function or a method of the project, or of the constructor of a class."""
        found = self._find(path, base=True)
        if found is None or not found.name:
            owner, _, name = path.rpartition(".")
            behind = self.class_behind(owner)
            return () if behind is None else _positional(behind.method(name))
        node = found.file.defining(found.name)
        if isinstance(node, ast.ClassDef):
            return _positional(found.file.index.class_(node).method("__init__"))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _positional(found.file.index.function(node))
        return ()

    def star(self, name: str) -> Value | None:
        """What is behind a name that the file binds nowhere, if one of its stars brings it in."""
        if name not in self._stars:
            self._stars[name] = self._brought(name)
        path = self._stars[name]
        if path and (stated := self.stated(path)):
            return Named(stated)
        value = self._value(Named(path), name) if path else None
        return None if isinstance(value, Named) and value.path == path else value

    def _brought(self, name: str) -> str:
        """The dotted name that a star gives to a name, empty where none does, or where that cannot be told."""
        for module in reversed(self.interpreter.index.star_modules):
            star = self._project.find(self._filename, module)
            if star is None or star.name:
                return ""
            path = joint(module, name)
            if self.stated(path) or self._project.find(self._filename, path) is not None:
                return path
        return ""

    def worth_calling(self, text: str) -> Iterator[str]:
        """The functions of other files, as this file spells them, that say where something is."""
        for name, path in self.interpreter.index.imports.items():
            found = None if is_class(path) else self._find(path)
            if found is None:
                continue
            spelled = {name: path}
            if not found.name:
                spelled = {f"{name}.{part}": f"{path}.{part}" for part in called_of(name, text)}
            for call, meant in spelled.items():
                if self._says_something(meant):
                    yield call

    def _says_something(self, path: str) -> bool:
        """Whether a dotted name means a function of another file that says where something is."""
        found = self._find(path)
        info = found.file.function(found.name) if found is not None and found.name else None
        return found is not None and info is not None and found.file.index.says_something(info)

    def forget(self, path: str) -> None:
        """Something is assigned to a name of another file: nothing is known of it any more."""
        self._values[path] = Named(path)

    def home(self, index: Index) -> Interpreter:
        """Who interprets the file of a definition."""
        return self.interpreter if index is self.interpreter.index else self._family.of(index)

    def guests(self) -> tuple[Interpreter, ...]:
        """Who interprets the other files, for the sake of the one that is checked."""
        return tuple(self._family.guests.values())

    def class_behind(self, path: str) -> ClassInfo | None:
        """The class that a dotted name means, where another file of the project defines it."""
        if path not in self._classes:
            found = self._find(path, base=True)
            self._classes[path] = found.file.class_(found.name) if found is not None else None
        return self._classes[path]

    def _find(self, path: str, base: bool = False) -> Definition | None:
        root = path.partition(".")[0]
        if root not in self._roots:
            self._roots[root] = self._project.knows(self._filename, root)
        return self._project.find(self._filename, path, base) if self._roots[root] else None

    def _found(self, path: str, spelled: str) -> Value | None:
        found = self._find(path)
        if found is None or not found.name or not found.file.matters(found.name):
            return None
        home = self._family.interpreter(found.file)
        value = home.global_value(found.name)
        if value is None or isinstance(value, Unknown) or not isinstance(value, _USEFUL):
            return None
        if isinstance(value, Named):
            return None if value.path.startswith(".") else value
        if home is self.interpreter or not home.index.label:
            return value
        if isinstance(value, Flag):
            return value if value.accelerated else None
        if isinstance(value, DeviceValue):
            place = named_in(value.device, spelled)
            # a CPU that stands in another file is a default, which somebody may replace
            known = place.known and place.kind is not Kind.CPU
            return replace(value, device=place, source=None) if known else None
        return scrubbed(value)


def _positional(info: FunctionInfo | None) -> tuple[str, ...]:
    """The names of the positional parameters, that of the object left out."""
    if info is None:
        return ()
    arguments = info.node.args
    named = tuple(parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args))
    return named if info.owner is None or "staticmethod" in info.decorators else named[1:]


class Family:
    """The file that is checked, and those that it needs to be understood."""

    def __init__(self, host: Interpreter, project: Project, foreign: Foreign) -> None:
        self._host = host
        self._project = project
        self._foreign = foreign
        self.guests: dict[Index, Interpreter] = {}

    def interpreter(self, file: File) -> Interpreter:
        """Who interprets a file."""
        if file.filename == self._project.filename:
            return self._host
        known = self.guests.get(file.index)
        if known is None:
            known = self.guests[file.index] = self._foreign(self._host, file)
            known.imports = ProjectImports(known, file.filename, self._project, self)
        return known

    def of(self, index: Index) -> Interpreter:
        """Who interprets the definitions of an index."""
        return self.guests.get(index, self._host)


Foreign = Callable[[Interpreter, File], Interpreter]
"""What makes the interpreter of another file."""
