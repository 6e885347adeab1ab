"""The registry of library models: who knows what a name of a library returns and does, and how its objects behave."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import ClassVar, Generic, TypeVar

from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.values import Value

Model = Callable[[Frame, Call, str], Value]
"""The result of a call of a qualified name, with all that it does in the frame."""
Effect = Callable[[Frame, Call, Value, ast.Attribute], None]
"""What a method does whatever it is a method of, before its result is asked for."""
_Known = TypeVar("_Known")


class ObjectModel:
    """How objects of one kind behave; ``None`` says that no more is known of it than of anything."""

    keeps_tensors: ClassVar[bool] = False
    """Whether the objects hold tensors that stay behind when a module is moved which keeps the object."""

    def called(self, frame: Frame, call: Call, value: Value) -> Value | None:
        """The result of calling an object."""
        return None

    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value | None:
        """The result of a method."""
        return None

    def attribute(self, frame: Frame, node: ast.Attribute, value: Value) -> Value | None:
        """An attribute that is read."""
        return None

    def assigned(self, frame: Frame, target: ast.Attribute, value: Value) -> None:
        """An attribute is set from outside."""


class Registry(Generic[_Known]):
    """Models by qualified name.

    Of an exact name, or of all names that begin with whole parts (``torch.optim.``) or end with one
    (``.from_pretrained``).
    """

    def __init__(self) -> None:
        self.stated: _Known | None = None
        """Who models all that rows of the catalog speak of."""
        self.fallback: _Known | None = None
        """Who models what has no other model."""
        self._exact: dict[str, _Known] = {}
        self._parts: dict[str, _Known] = {}
        self._found: dict[str, _Known | None] = {}
        self._members: dict[str, frozenset[str]] = {}

    def register(self, models: Mapping[str, _Known]) -> None:
        """Add models; a name that ends, or begins, with a dot stands for all names that have it there."""
        self._found.clear()
        self._members.clear()
        for path, model in models.items():
            known = self._parts if path.startswith(".") or path.endswith(".") else self._exact
            if path in known:
                raise ValueError(f"{path} has a model already")
            known[path] = model

    def model(self, path: str) -> _Known | None:
        """Who models a qualified name, by itself or with others; ``None`` where nobody does."""
        if path not in self._found:
            self._found[path] = self._exact.get(path) or self._with_others(path)
        return self._found[path]

    def exact(self, path: str) -> _Known | None:
        """Who models this very name."""
        return self._exact.get(path)

    def members(self, module: str) -> frozenset[str]:
        """The names in a module that have models of their own."""
        if module not in self._members:
            start = f"{module}."
            self._members[module] = frozenset(path[len(start) :] for path in self._exact if path.startswith(start))
        return self._members[module]

    def _with_others(self, path: str) -> _Known | None:
        """The model of the longest beginning of a name, else of its last part."""
        head, _, last = path.rpartition(".")
        while head:
            found = self._parts.get(f"{head}.")
            if found is not None:
                return found
            head = head.rpartition(".")[0]
        return self._parts.get(f".{last}")


MODELS: Registry[Model] = Registry()
"""The functions and classes of all libraries that are called; the modules of models add theirs when imported."""
CLASSES: Registry[ObjectModel] = Registry()
"""The objects of libraries' classes, by the names of their classes."""
KINDS: dict[type[Value], ObjectModel] = {}
"""The objects that have a kind of value of their own; of all that have not, that of :class:`Value` itself."""
EFFECTS: dict[str, Effect] = {}
"""What a method does by its name alone."""
