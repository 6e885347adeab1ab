"""Candidate arguments: expressions of a reproduction, which it evaluates itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from devlint.prove.arguments.usage import Usage

ACCELERATOR, HOST = "cuda", "cpu"


@dataclass(frozen=True, eq=False)
class Hint:
    """What is known of a value that is wanted: its name, its annotation as Python has it, and how it is used."""

    name: str
    annotation: Any = None
    usage: Usage | None = None


SETTING = "int | bool"
"""What an attribute is probably that nothing is known of but that it is read."""


@dataclass(frozen=True)
class Value:
    """A candidate; ``place`` in its text is where tensors are, ``moved`` moves a module there."""

    def text(self, place: str, inner: Mapping[str, str]) -> str:
        """The expression, given those of what is inside of it."""
        raise NotImplementedError

    def children(self) -> tuple[Hint, ...]:
        """What has to be chosen for what is inside of it."""
        return ()

    def optional(self) -> tuple[tuple[Hint, Any], ...]:
        """What may be chosen besides, with what holds otherwise."""
        return ()

    def imports(self) -> tuple[str, ...]:
        """The statements that its expression needs, besides ``import torch``."""
        return ()


@dataclass(frozen=True)
class Plain(Value):
    """An expression with gaps.

    ``{on}`` in a factory call and ``{moved}`` behind a module put it where all is that is given, which is ``{here}``;
    ``{place}`` is the accelerator.
    """

    expression: str
    needs: tuple[str, ...] = ()

    def text(self, place: str, inner: Mapping[str, str]) -> str:
        """The expression itself."""
        moved = f'.to("{place}")' if place != HOST else ""
        on = f', device="{place}"' if place != HOST else ""
        words = {"{moved}": moved, "{on}": on, "{here}": place, "{place}": ACCELERATOR}
        text = self.expression
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        return text

    def imports(self) -> tuple[str, ...]:
        """What it says that it needs."""
        return self.needs


@dataclass(frozen=True)
class Tensor(Value):
    """A tensor of a shape: ``float``, ``long`` (zeros), ``ones`` (long), ``bool`` or ``complex``."""

    shape: tuple[int, ...]
    kind: str = "float"

    def text(self, place: str, inner: Mapping[str, str]) -> str:
        """A factory call."""
        made = {
            "float": "rand",
            "long": "zeros",
            "ones": "ones",
            "bool": "ones",
            "complex": "rand",
        }[self.kind]
        dtype = {"long": "torch.long", "ones": "torch.long", "bool": "torch.bool", "complex": "torch.complex64"}
        words = [", ".join(map(str, self.shape)) or "()"]
        if self.kind in dtype:
            words.append(f"dtype={dtype[self.kind]}")
        if place != HOST:
            words.append(f'device="{place}"')
        return f"torch.{made}({', '.join(words)})"

    def shaped(self, *shape: int) -> Tensor:
        """The same with another shape."""
        return replace(self, shape=shape)


@dataclass(frozen=True, eq=False)
class Instance(Value):
    """An object of a class, made by what it has to be given; ``small``: with small numbers instead of its defaults."""

    module: str
    name: str
    wanted: tuple[Hint, ...] = ()
    small: tuple[tuple[str, int], ...] = ()
    is_module: bool = False
    takes_more: bool = False
    """Whether it takes arguments by names that it does not declare."""
    defaults: tuple[tuple[Hint, Any], ...] = ()
    """The parameters with a default."""

    def having(self, name: str) -> Instance:
        """The same with one argument more."""
        return replace(self, wanted=(*self.wanted, Hint(name, SETTING)))

    def text(self, place: str, inner: Mapping[str, str]) -> str:
        """A call of the class."""
        known = (*self.wanted, *(hint for hint, _ in self.defaults))
        given = [f"{hint.name}={inner[hint.name]}" for hint in known if hint.name in inner]
        given += [f"{name}={number}" for name, number in self.small if name not in inner]
        moved = f'.to("{place}")' if self.is_module and place != HOST else ""
        return f"{self.name}({', '.join(given)}){moved}"

    def children(self) -> tuple[Hint, ...]:
        """The parameters without a default."""
        return self.wanted

    def optional(self) -> tuple[tuple[Hint, Any], ...]:
        """The parameters with one."""
        return self.defaults

    def imports(self) -> tuple[str, ...]:
        """The class."""
        return (f"from {self.module} import {self.name.partition('.')[0]}",)


@dataclass(frozen=True, eq=False)
class Namespace(Value):
    """An object with attributes."""

    attributes: tuple[Hint, ...] = ()

    def text(self, place: str, inner: Mapping[str, str]) -> str:
        """A namespace of the standard library."""
        return f"SimpleNamespace({', '.join(f'{hint.name}={inner[hint.name]}' for hint in self.attributes)})"

    def children(self) -> tuple[Hint, ...]:
        """The values of the attributes."""
        return self.attributes

    def imports(self) -> tuple[str, ...]:
        """The class."""
        return ("from types import SimpleNamespace",)

    def names(self) -> set[str]:
        """The names of the attributes."""
        return {hint.name for hint in self.attributes}

    def having(self, name: str) -> Namespace:
        """The same with one attribute more."""
        return Namespace((*self.attributes, Hint(name, SETTING)))


@dataclass(frozen=True, eq=False)
class Table(Value):
    """A dict with keys that are strings."""

    keys: tuple[Hint, ...] = ()

    def text(self, place: str, inner: Mapping[str, str]) -> str:
        """A display of a dict."""
        return "{" + ", ".join(f'"{hint.name}": {inner[hint.name]}' for hint in self.keys) + "}"

    def children(self) -> tuple[Hint, ...]:
        """The values of the keys."""
        return self.keys

    def having(self, name: str) -> Table:
        """The same with one key more."""
        return Table((*self.keys, Hint(name)))


@dataclass(frozen=True, eq=False)
class Items(Value):
    """A list or a tuple of values, which are chosen one by one."""

    items: tuple[Hint, ...]
    is_list: bool = True

    def text(self, place: str, inner: Mapping[str, str]) -> str:
        """A display."""
        inside = ", ".join(inner[hint.name] for hint in self.items)
        if self.is_list:
            return f"[{inside}]"
        return f"({inside},)" if len(self.items) == 1 else f"({inside})"

    def children(self) -> tuple[Hint, ...]:
        """The items, called by their numbers."""
        return self.items
