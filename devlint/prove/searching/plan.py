"""A plan: a way into the code, and a value for each argument; it is written as a script."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from devlint.prove.arguments.hints import candidates, hints
from devlint.prove.arguments.values import ACCELERATOR, HOST, Hint, Value
from devlint.prove.searching.entries import Entry

Path = tuple[str, ...]
"""Where an argument is: of the constructor (``made``), of the call or of its result, then by names inward."""
MADE, CALLED, RESULT = "made", "called", "result"
VARIABLES = frozenset({"model", "made"})
"""What a script calls the object that it makes: a module of torch, or something else."""
APART = "apart"
"""A place: the object stays on the host, and its arguments are on the accelerator."""
DEEPEST = 4


@dataclass(frozen=True)
class Slot:
    """An argument that has to be chosen, or can be left out."""

    path: Path
    hint: Hint
    default: Any = inspect.Parameter.empty
    by_position: bool = False
    spread: bool = False
    """Whether it stands for any number of arguments (`*args`)."""

    @property
    def may_be_left_out(self) -> bool:
        """Whether the call does without it."""
        return self.spread or self.default is not inspect.Parameter.empty


@dataclass(frozen=True, eq=False)
class Target:
    """What an entry means once its module is imported: a class, a function or both, and how they are called."""

    module: str
    file: str
    entry: Entry
    owner: type | None = None
    function: Any = None
    kind: str = "function"
    """Or ``method``, ``static``, ``property``, ``construct``, ``module``, ``main``."""
    inner: tuple[str, ...] = ()
    """The parameters of what it returns, if that is called."""

    @property
    def is_module(self) -> bool:
        """Whether the class is one of torch's modules, so that it can be moved."""
        return self.owner is not None and issubclass(self.owner, nn.Module)

    def slots(self) -> Iterator[Slot]:
        """The arguments of the constructor, and those of the call."""
        if self.owner is not None and self.kind != "static":
            yield from _slots(MADE, self.owner)
        if self.kind in ("function", "static") and self.function is not None:
            yield from _slots(CALLED, self.function)
        elif self.kind == "method":
            yield from _slots(CALLED, self.function, bound=True)
        if self.entry.result:
            yield from (Slot((RESULT, name), Hint(name)) for name in self.inner)


def _slots(begin: str, function: Callable[..., Any], bound: bool = False) -> Iterator[Slot]:
    for hint, one in hints(function, bound):
        spread = one.kind is one.VAR_POSITIONAL
        yield Slot((begin, one.name), hint, one.default, one.kind is not one.KEYWORD_ONLY and not spread, spread)


@dataclass(frozen=True, eq=False)
class Plan:
    """What is chosen so far; of the rest the first candidate holds, and what may be left out is."""

    target: Target
    place: str = ACCELERATOR
    """Where all is that is given: ``cuda``, ``cpu``, or ``APART``."""
    chosen: Mapping[Path, Value | None] = field(default_factory=dict)

    def slots(self) -> Iterator[tuple[Slot, Value | None]]:
        """All arguments with their values, those inside of others too; ``None`` where one is left out."""
        for slot in self.target.slots():
            yield from self._below(slot)

    def _below(self, slot: Slot) -> Iterator[tuple[Slot, Value | None]]:
        value = self.chosen[slot.path] if slot.path in self.chosen else _first(slot)
        yield slot, value
        if value is not None and len(slot.path) < DEEPEST:
            for hint in value.children():
                yield from self._below(Slot((*slot.path, hint.name), hint))
            for hint, default in value.optional():
                yield from self._below(Slot((*slot.path, hint.name), hint, default))

    def changed(self, path: Path, value: Value | None) -> Plan:
        """Another plan with this value there."""
        kept = {known: one for known, one in self.chosen.items() if known[: len(path)] != path}
        return replace(self, chosen={**kept, path: value})

    def script(self) -> str:
        """The plan as Python."""
        texts, imports = self._texts()
        target = self.target
        body = "".join(f"{line}\n" for line in self._body(texts))
        root = f"{target.owner.__qualname__ if target.owner else target.entry.name}".partition(".")[0]
        if target.kind == "main":
            imports.setdefault("import runpy")
        elif target.kind != "module":
            imports.setdefault(_import(target.module, root))
        for word, line in (("torch", "import torch"), ("nn", "from torch import nn"), ("asyncio", "import asyncio")):
            if re.search(rf"(?<![\w.]){word}\.", body):
                imports.setdefault(line)
        lines = sorted(imports, key=lambda line: (not line.startswith("import "), line))
        return "".join(f"{line}\n" for line in lines) + ("\n" if lines else "") + body

    def _texts(self) -> tuple[dict[Path, str], dict[str, None]]:
        texts: dict[Path, str] = {}
        imports: dict[str, None] = {}
        found = [*self.slots()]
        for slot, value in reversed(found):  # what is inside comes after what it is inside of
            if value is None:
                continue
            inner = {path[-1]: text for path, text in texts.items() if path[:-1] == slot.path}
            for hint in value.children():
                inner.setdefault(hint.name, "None")
            apart = slot.path[0] == MADE and self.place == APART
            place = HOST if apart or self.place == HOST else ACCELERATOR
            texts[slot.path] = value.text(place, inner)
            imports.update(dict.fromkeys(value.imports()))
        return texts, imports

    def _arguments(self, begin: str, texts: Mapping[Path, str]) -> str:
        given, named = [], False
        for slot in self.target.slots():
            if slot.path[0] != begin:
                continue
            text = texts.get(slot.path)
            if text is None:
                named = named or not slot.spread
            elif slot.spread or begin == RESULT or (slot.by_position and not named and begin == CALLED):
                given.append(text)
            else:
                given.append(f"{slot.path[-1]}={text}")
        return ", ".join(given)

    def _body(self, texts: Mapping[Path, str]) -> Iterator[str]:
        target, name = self.target, self.target.entry.name
        if target.kind == "main":
            yield f"runpy.run_path({target.file!r}, run_name={'__main__'!r})"
        elif target.kind == "module":
            yield f"import {target.module}"
        if target.kind in ("main", "module"):
            return
        owner = target.owner.__qualname__ if target.owner else ""
        if target.kind in ("function", "static"):
            callee = f"{owner}.{name}" if owner else name
        else:
            moved = f'.to("{self.place}")' if target.is_module and self.place == ACCELERATOR else ""
            variable = "model" if target.is_module else "made"
            yield f"{variable} = {owner}({self._arguments(MADE, texts)}){moved}"
            callee = variable if name == "forward" and target.is_module else f"{variable}.{name}"
            if target.kind == "construct":
                return
            if target.kind == "property":
                yield callee
                return
        call = f"{callee}({self._arguments(CALLED, texts)})"
        if target.entry.result:
            call += f"({self._arguments(RESULT, texts)})"
        yield _finished(target.function, call)


def _finished(function: Any, call: str) -> str:
    function = inspect.unwrap(function) if callable(function) else function
    if inspect.iscoroutinefunction(function):
        return f"asyncio.run({call})"
    return f"list({call})" if inspect.isgeneratorfunction(function) else call


def _first(slot: Slot) -> Value | None:
    if slot.may_be_left_out:
        return None
    return next(iter(candidates(slot.hint)), None)


def _import(module: str, name: str) -> str:
    if all(part.isidentifier() for part in module.split(".")):
        return f"from {module} import {name}"
    return f'{name} = __import__("{module}").{name}'


def targets(module: Any, name: str, file: str, entry: Entry, inner: tuple[str, ...] = ()) -> Iterator[Target]:
    """What an entry means in an imported module; a class that is derived from it in the same module is one, too."""
    if entry.is_module:
        return
    thing: Any = module
    for part in entry.owner:
        thing = vars(thing).get(part) if thing is not None else None
    if not entry.owner:
        function = getattr(module, entry.name, None)
        if isinstance(function, type):
            yield Target(name, file, entry, function, None, "construct")
        elif callable(function):
            yield Target(name, file, entry, None, function, "function", inner)
        return
    if not isinstance(thing, type):
        return
    for owner in (thing, *_derived(thing)):
        yield _of_class(owner, name, file, entry, inner)


def _derived(owner: type) -> list[type]:
    """The classes of the same module that are derived from it, the nearest first."""
    below: list[type] = owner.__subclasses__()
    found = [one for one in below if one.__module__ == owner.__module__]
    deeper = [other for one in found for other in _derived(one)]
    return [*dict.fromkeys([*found, *deeper])][:3]


def _of_class(owner: type, name: str, file: str, entry: Entry, inner: tuple[str, ...]) -> Target:
    if not entry.name:
        return Target(name, file, entry, owner, None, "construct")
    own = inspect.getattr_static(owner, entry.name, None)
    if isinstance(own, (staticmethod, classmethod)):
        return Target(name, file, entry, owner, getattr(owner, entry.name), "static", inner)
    if not callable(own):
        return Target(name, file, entry, owner, own, "property")
    return Target(name, file, entry, owner, own, "method", inner)
