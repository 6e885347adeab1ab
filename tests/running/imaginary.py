"""What fixtures import and nobody has: modules that they made up, and libraries that are not installed."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, NoReturn

from torch import nn

PACKAGE = "fixture"
"""The package that the file which runs is in."""


def _on_device(batches: Iterable[Sequence[Any]], device: Any) -> Iterator[list[Any]]:
    for batch in batches:
        yield [part.to(device, non_blocking=True) for part in batch]


MADE_UP: dict[str, dict[str, Any]] = {
    PACKAGE: {},
    f"{PACKAGE}.base": {"Configured": type("Configured", (), {})},
    "mylib": {"Base": nn.Module, "BaseLoss": nn.Module},
    "project": {"Model": lambda: nn.Linear(8, 2)},
    "project.distributed": {"set_up": lambda: 0},
    "helpers": {"describe": lambda *values: None},
    "display": {"progress": lambda batches, **options: batches, "on_device": _on_device},
    "bars": {"tqdm": lambda batches: batches},
}
"""Modules of an imagined project around the fixture."""


class NotInstalled(Exception):
    """A library is asked for what only it can do."""


class Absent(type):
    """The type of what stands for the names of a library that is not installed: they can be imported, not used."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent(f"{cls.__qualname__}.{name}")

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotInstalled(cls.__qualname__)


def absent(name: str) -> Absent:
    """A stand-in for one name."""
    return Absent.__new__(Absent, name.rpartition(".")[2], (), {"__qualname__": name})


class _Absent(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent(f"{self.__name__}.{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked after all others; it answers fixtures only, since libraries look what is installed."""

    def __init__(self, wanted: set[str]) -> None:
        self._wanted = wanted

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        known = fullname in MADE_UP or fullname.partition(".")[0] in self._wanted
        if known and _asking() == PACKAGE:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        if spec.name in MADE_UP:
            module = ModuleType(spec.name)
            vars(module).update(MADE_UP[spec.name])
            return module
        return _Absent(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _asking() -> str:
    """The package of the code that imports something."""
    frame = sys._getframe(2)
    while frame.f_back is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return str(frame.f_globals.get("__package__"))


def install(libraries: set[str]) -> set[str]:
    """From now on, fixtures can import these although they are not installed, and the modules that were made up.

    Those that are installed are returned.
    """
    there = {name for name in libraries if importlib.util.find_spec(name)}
    sys.meta_path.append(_Finder(libraries - there))
    return there


def imported(tree: ast.Module) -> set[str]:
    """The libraries that a file imports, wherever it does."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names - MADE_UP.keys()
