"""Writes a program line by line: what names there are, what kind of thing they hold, and where that probably is.

The places are a guess that keeps programs in balance: most operands are chosen to go together, some are not.  Nothing
is concluded from them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tests.accuracy.fuzz.program import Line, Program

T = TypeVar("T")

# Kinds of values.
MATRIX, VECTOR, SCALAR, INDEX, MASK, LEAF = "matrix", "vector", "scalar", "index", "mask", "leaf"
LIST, PAIR, DICT = "list", "pair", "dict"
MODULE, DEVICE, FLAG, FUNCTION, LOADER, CLASS = "module", "device", "flag", "function", "loader", "class"
NET = "net"  # an object of a class of the program
CPU, CUDA, ANY = "cpu", "cuda", "?"
SPARE = {
    MATRIX: "torch.ones(4, 4)",
    VECTOR: "torch.ones(4)",
    SCALAR: "torch.tensor(1.0)",
    INDEX: "torch.arange(4)",
    MASK: "torch.eye(4) > 0",
    LEAF: "torch.ones(4, 4, requires_grad=True)",
    LIST: "[torch.ones(4, 4), torch.ones(4, 4)]",
    PAIR: "(torch.ones(4, 4), torch.ones(4, 4))",
    DICT: '{"a": torch.ones(4, 4), "b": torch.ones(4, 4)}',
}
"""What stands in for a value that could not be computed."""


@dataclass(frozen=True)
class Name:
    """A name, or what can be read like one (``self.mask``), what it holds and where that is."""

    text: str
    kind: str
    place: str = ANY
    info: Any = None
    fixed: bool = False
    """Whether it cannot be bound again."""


@dataclass
class Scope:
    """The names of a function, or of the top level."""

    names: dict[str, Name] = field(default_factory=dict)
    function: bool = False


class Writer:
    """Draws what is written next, and writes it."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw
        self.lines: list[Line] = []
        self.indent = 0
        self.scopes: list[Scope] = [Scope()]
        self.used: Counter[str] = Counter()
        self.words: list[str] = []
        self.loops = 0
        self.returns: str | None = None
        self.iterated = 0
        self.method = False
        self.placed: dict[str, str] = {}
        self._count = 0

    # -- drawing ---------------------------------------------------------------------------------------------------

    def choose(self, options: Sequence[T]) -> T:
        return options[self._draw(len(options))] if len(options) > 1 else options[0]

    def weighted(self, options: Sequence[tuple[T, int]]) -> T:
        position = self._draw(sum(weight for _, weight in options))
        for option, weight in options:
            position -= weight
            if position < 0:
                return option
        return options[-1][0]

    def chance(self, percent: int) -> bool:
        """True that often; false is simpler."""
        return self._draw(100) >= 100 - percent

    def number(self, least: int, most: int) -> int:
        return least + self._draw(most - least + 1)

    def use(self, construct: str) -> None:
        """Count that the program has this construct."""
        self.used[construct] += 1

    # -- names -----------------------------------------------------------------------------------------------------

    def fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    @property
    def inside(self) -> bool:
        """Whether a function is being written."""
        return len(self.scopes) > 1

    def visible(self) -> list[Name]:
        found: dict[str, Name] = {}
        for scope in self.scopes:
            found.update(scope.names)
        return list(found.values())

    def all(self, *kinds: str) -> list[Name]:
        return [name for name in self.visible() if name.kind in kinds]

    def own(self, *kinds: str) -> list[Name]:
        """The names that a statement here may bind again."""
        return [name for name in self.scopes[-1].names.values() if name.kind in kinds and not name.fixed]

    def declare(self, text: str, kind: str, place: str = ANY, info: Any = None, fixed: bool = False) -> Name:
        name = Name(text, kind, place, info, fixed)
        self.scopes[-1].names[text] = name
        return name

    def place(self, text: str, place: str) -> None:
        """What a name holds is somewhere else now."""
        for scope in reversed(self.scopes):
            if text in scope.names:
                scope.names[text] = replace(scope.names[text], place=place)
                return

    def pick(self, kind: str, want: str = ANY) -> Name | None:
        """A name of this kind, there if possible."""
        names = self.all(kind)
        if not names:
            return None
        if want != ANY and not self.chance(8):
            names = [name for name in names if name.place == want]
            if not names:
                return None
        return names[-1 - self._draw(len(names))] if len(names) > 1 else names[0]

    # -- lines -----------------------------------------------------------------------------------------------------

    def line(self, text: str, repaired: str = "pass", mended: str = "", limit: str = "") -> None:
        self.lines.append(Line("    " * self.indent + text, repaired, mended, limit))

    def bind(self, text: str, kind: str, expression: str, place: str, info: Any = None) -> None:
        """An assignment to a name."""
        self.line(f"{text} = {expression}", f"{text} = {SPARE.get(kind, expression)}")
        self.declare(text, kind, place, info)

    @contextlib.contextmanager
    def block(self, header: str, always: bool = False) -> Iterator[None]:
        """An indented block; where it may not run, names made in it are gone after it, and places are unknown."""
        self.line(header)
        before = dict(self.scopes[-1].names)
        self.indent += 1
        written = len(self.lines)
        yield
        if len(self.lines) == written:
            self.line("pass")
        self.indent -= 1
        if not always:
            names = self.scopes[-1].names
            after = {text: names.get(text, name) for text, name in before.items()}
            changed = {text for text, name in after.items() if name != before[text]}
            self.scopes[-1].names = {
                text: replace(name, place=ANY) if text in changed else name for text, name in after.items()
            }

    @contextlib.contextmanager
    def function(self, header: str) -> Iterator[None]:
        """A definition: a scope of its own."""
        self.line(header)
        outer = self.loops, self.returns
        self.loops, self.returns = 0, None
        self.scopes.append(Scope(function=True))
        self.indent += 1
        written = len(self.lines)
        yield
        if len(self.lines) == written:
            self.line("pass")
        self.indent -= 1
        self.scopes.pop()
        self.loops, self.returns = outer

    def program(self) -> Program:
        return Program(tuple(self.lines), tuple(self.words), dict(self.placed), dict(self.used))
