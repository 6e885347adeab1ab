"""A place in a piece of code at which something happens, for observers that are tested without an interpreter.

The interpreter here runs nothing: it knows the values that a test gives to names and expressions, and keeps the sites
that the observers make.  A test emits the events itself.
"""

from __future__ import annotations

import ast
import textwrap
from typing import Any, TypeVar

import pytest

from devlint._about import is_compiled
from devlint.device import IMPLIED_CPU, Device, Role, accelerator, symbol
from devlint.flow.core.call import Call, Loop
from devlint.flow.core.events import Hearers, Observer, heard
from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.flow.domain.heap import Heap
from devlint.flow.domain.objects import Class, Function
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.state import State
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import UNKNOWN, Const, Flag, Opaque, Value
from devlint.flow.program.symbols import ClassInfo, FunctionInfo, Index
from devlint.sites.base import Act, Site, Step
from devlint.sites.placement import Forward, Operation

if is_compiled():
    pytest.skip("what a compiled interpreter calls cannot be replaced", allow_module_level=True)
CUDA, CHOSEN = accelerator("cuda"), symbol("f:device", "device")
PRELUDE = "import torch; from torch import nn\n"
Kind = TypeVar("Kind", bound=Site)
Node = TypeVar("Node", bound=ast.AST)
Seen = TypeVar("Seen", bound=Component)


def emit(event: str, frame: Frame, *given: object) -> None:
    """Let all who want to hear of an event hear of it."""
    for observer in heard(frame, event):
        getattr(observer, event)(frame, *given)


class Scene(Interpreter):
    """Code, who watches it, and what they say of it."""

    def __init__(self, code: str, *observers: type[Observer]) -> None:
        text = PRELUDE + textwrap.dedent(code)
        tree = ast.parse(text)
        super().__init__(Index(tree, text), tree, text, test=False)
        self.observers = observers
        self.values: dict[str, Value] = {}
        """What expressions are worth, by their text."""
        self.told: list[Site] = []

    def hearers(self, quiet: bool, inlined: bool) -> Hearers:
        return Hearers(self, quiet, inlined)

    # -- what a test asks ---------------------------------------------------------------------------------------------

    def frame(self, function: str = "f", env: dict[str, Value] | None = None, **besides: Any) -> Frame:
        """A frame of a function or a method of the code, or of its top level."""
        info = next((info for info in self._functions() if info.name == function), None)
        return Frame(self, State(dict(env or {})), info, info.owner if info else None, **besides)

    def _functions(self) -> list[FunctionInfo]:
        methods = [method for cls in self.index.classes.values() for method in cls.methods.values()]
        return [*self.index.functions.values(), *methods]

    def node(self, text: str, kind: type[Node] = ast.expr) -> Node:
        """The first node of the code that reads so."""
        return next(node for node in ast.walk(self.tree) if isinstance(node, kind) and ast.unparse(node) == text)

    def first(self, kind: type[Node]) -> Node:
        """The first node of a kind."""
        return next(node for node in ast.walk(self.tree) if isinstance(node, kind))

    def call(self, text: str, frame: Frame) -> Call:
        """A call of the code, with the values that its arguments have in a frame."""
        node = self.node(text, ast.Call)
        named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
        values = tuple(self.evaluate(frame, argument) for argument in node.args)
        keywords = {name: self.evaluate(frame, argument) for name, argument in named.items()}
        return Call(node, values, tuple(node.args), keywords, named, open=len(named) < len(node.keywords))

    def loop(self, step: bool = False) -> Loop:
        """The first loop of the code, as one that runs."""
        found = next(node for node in ast.walk(self.tree) if isinstance(node, (ast.For, ast.While)))
        return Loop(found, step)

    def fresh(self, text: str, **besides: Any) -> Tensor:
        """A tensor that a call of the code makes on the default device."""
        node = self.node(text, ast.Call)
        path = self.index.resolve(ast.unparse(node.func))
        return Tensor(IMPLIED_CPU, many=True, origin=Origin(factory=path, node=node), **besides)

    def sites(self, kind: type[Kind]) -> list[Kind]:
        """The sites of one kind that were made, at once or at the end."""
        late = [site for observer in self.observers for site in self.component(observer).sites()]
        return [site for site in (*self.told, *late) if isinstance(site, kind)]

    # -- what an observer asks ----------------------------------------------------------------------------------------

    def evaluate(self, frame: Frame, node: ast.expr) -> Value:
        """A literal, what a name holds, or what the test says."""
        if isinstance(node, ast.Constant):
            return Const(node.value)
        held = frame.lookup(node.id) if isinstance(node, ast.Name) else None
        return self.values.get(ast.unparse(node), UNKNOWN) if held is None else held

    def record(self, site: Site, frame: Frame) -> None:
        """Keep a site, whatever surrounds it."""
        self.told.append(site)

    def global_value(self, name: str) -> Value | None:
        """What a name of the top level holds."""
        return self.values.get(name)

    def global_devices(self) -> list[str]:
        """None."""
        return []

    def device_attributes(self, info: ClassInfo) -> list[str]:
        """None."""
        return []

    def moves_batches(self, loaders: tuple[int, ...]) -> bool:
        """No batch is moved."""
        return False

    # -- what no observer asks ----------------------------------------------------------------------------------------

    def attribute(self, frame: Frame, node: ast.Attribute, base: Value) -> Value:
        raise NotImplementedError

    def condition(self, frame: Frame, node: ast.expr) -> Flag:
        raise NotImplementedError

    def enter(self, frame: Frame, function: Function, call: Call) -> Value:
        raise NotImplementedError

    def construct(self, frame: Frame, cls: Class, call: Call) -> Value:
        raise NotImplementedError

    def run_call(self, frame: Frame, function: Function, call: Call) -> Value:
        raise NotImplementedError

    def refuses(self, frame: Frame, info: FunctionInfo) -> bool:
        raise NotImplementedError

    def is_worth(self, info: FunctionInfo) -> bool:
        raise NotImplementedError

    def self_value(self, info: ClassInfo) -> Value:
        raise NotImplementedError

    def class_heap(self, info: ClassInfo) -> Heap:
        raise NotImplementedError

    def overhear(self, frame: Frame, info: ClassInfo, call: Call) -> list[Operation | Forward]:
        raise NotImplementedError

    def defined(self, frame: Frame, info: FunctionInfo, closure: tuple[Any, ...]) -> None:
        raise NotImplementedError


def argument(name: str, hint: str = "tensor", **besides: Any) -> Opaque:
    """An argument of a function, of which only the identity is known."""
    return Opaque(f"f:{name}", name, hint, Role.INPUT, **besides)


def given(name: str) -> Tensor:
    """A tensor which is where the argument is."""
    return Tensor(symbol(f"f:{name}", name, Role.INPUT), many=True)


def moved(node: ast.AST, place: Device = CUDA) -> Tensor:
    """A tensor that the code has moved."""
    return Tensor(place, many=True, origin=Origin((Step(node, f"moved to {place} here", Act.MOVED),)))
