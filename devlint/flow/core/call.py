"""What a frame is made for and goes through: a call with its arguments evaluated, a loop."""

from __future__ import annotations

import ast
from collections import abc
from dataclasses import dataclass, field

from devlint.flow.domain.heap import Field
from devlint.flow.domain.state import State
from devlint.flow.domain.values import UNKNOWN, Value
from devlint.immutable import replace


@dataclass(slots=True)
class Call:
    """A call with everything evaluated: the values of the arguments beside their nodes."""

    node: ast.Call
    positional: tuple[Value, ...]
    nodes: tuple[ast.expr, ...]
    keywords: dict[str, Value]
    keyword_nodes: dict[str, ast.expr]
    open: bool
    """Whether ``**`` may add more keywords."""
    starred: bool = False
    """Whether ``*`` may add more positional arguments."""
    spread: tuple[tuple[ast.expr, Value], ...] = ()
    """What ``**`` adds of which not all keys are known, each with its node."""

    @property
    def first(self) -> Value:
        """The first positional argument, unknown where there is none."""
        return self.positional[0] if self.positional else UNKNOWN

    def argument(self, position: int, name: str) -> Value | None:
        """The argument at ``position`` or called ``name``, ``None`` where it is not given."""
        if name in self.keywords:
            return self.keywords[name]
        return self.positional[position] if 0 <= position < len(self.positional) else None

    def argument_node(self, position: int, name: str) -> ast.expr | None:
        """The node of that argument."""
        if name in self.keyword_nodes:
            return self.keyword_nodes[name]
        return self.nodes[position] if 0 <= position < len(self.nodes) else None

    def given(self) -> list[tuple[ast.expr, Value]]:
        """The arguments that the call spells out, each with its node."""
        named = [(node, self.keywords[name]) for name, node in self.keyword_nodes.items()]
        return [*zip(self.nodes, self.positional, strict=False), *named]

    def named(self) -> dict[str, ast.AST]:
        """The nodes of the keyword arguments: of those in a dict, that of the dict."""
        spread = next((keyword.value for keyword in self.node.keywords if keyword.arg is None), self.node)
        return {name: self.keyword_nodes.get(name, spread) for name in self.keywords}

    def values(self) -> tuple[Value, ...]:
        """All arguments."""
        return (*self.positional, *self.keywords.values()) if self.keywords else self.positional

    def probing(self, probes: abc.Mapping[int, Value]) -> Call:
        """The same call with other values in the place of some, which are known by their identity."""
        positional = tuple(probes.get(id(value), value) for value in self.positional)
        return replace(
            self,
            positional=positional,
            keywords={name: probes.get(id(value), value) for name, value in self.keywords.items()},
        )


CREATOR = Field("creator", Call)
"""The call by which an object of a class of the project was made."""


@dataclass(slots=True)
class Loop:
    """A loop being interpreted: where ``break`` and ``continue`` lead."""

    node: ast.AST
    step: bool
    branches: int = 0
    """How many branches the loop itself stands in."""
    encloses: bool = False
    """Whether a loop inside of it runs the steps."""
    chances: int = 0
    """How many of those branches some rounds take and others do not."""
    skips: bool = False
    """Whether some rounds go on to the next one before their end."""
    moment: int = 0
    """How many events the queue of the device had had when the round began."""
    continues: list[State] = field(default_factory=list)
    breaks: list[State] = field(default_factory=list)
