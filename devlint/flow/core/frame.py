"""A frame: one function (or the module's top level) being interpreted, and how its sites get their surroundings."""

from __future__ import annotations

import ast
import re
from collections import abc
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from devlint.device import UNKNOWN as UNKNOWN_DEVICE
from devlint.device import Device, Kind, Role, symbol
from devlint.flow.domain.state import CHANGED, CHILDREN, DEVICE, STORY, State
from devlint.flow.domain.values import (
    CONTAINERS,
    PLACED,
    UNKNOWN,
    Const,
    DeviceValue,
    Flag,
    Module,
    Named,
    Opaque,
    Tensor,
    Value,
    as_tensor,
)
from devlint.flow.program.type_hints import is_device_name
from devlint.flow.syntax import nodes
from devlint.immutable import replace
from devlint.sites.base import Operand, Scope, Site, Step
from devlint.sites.devices import Literal

_MAY_BE_DEVICES = frozenset({DeviceValue, Opaque})
_MANY_DEVICES = 32
_MANY_NAMES = 200
_OF_DEVICES = re.compile(r"accelerat|cuda|gpu|device|mps|xpu", re.IGNORECASE)
"""What the conditions say by which a program chooses where it runs, and not where one thing is kept."""

if TYPE_CHECKING:
    from devlint.flow.engine.engine import Machine
    from devlint.flow.program.symbols import ClassInfo, FunctionInfo


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
    continues: list[State] = field(default_factory=list)
    breaks: list[State] = field(default_factory=list)


_NCCL = (".NCCL", "'nccl'")
"""How the keys of conditions end that ask for the backend of CUDA."""


@dataclass(eq=False)
class Frame:
    """One activation of a function: its state, what it returns, and what surrounds the code that runs."""

    machine: Machine
    state: State
    info: FunctionInfo | None = None
    owner: ClassInfo | None = None
    closure: tuple[Frame, ...] = ()
    inlined: bool = False
    caller: Frame | None = None
    returns: list[Value] = field(default_factory=list)
    exits: list[State] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    branches: int = 0
    """How many branches around the code that runs depend on a condition which is not known."""
    chances: int = 0
    """How many of them depend on what the innermost loop changes."""
    handler: bool = False
    tried: bool = False
    """Whether a failure of the code is caught."""
    test: bool = False
    discarded: frozenset[ast.AST] = frozenset()
    """The calls whose results nobody takes."""
    comparing: bool = False
    """Whether the operands of a comparison are being evaluated, where a device is named but nothing is placed."""
    checking: bool = False
    """Whether what is evaluated only decides whether to raise."""
    default_device: Device | None = None
    silent: bool = False
    """Whether the code runs where everything still is on the CPU, so that nothing in it can clash."""
    body: ast.Lambda | None = None
    """The lambda that runs, where it is no function."""
    defaults: bool = False
    """Whether the default of a parameter is being evaluated."""
    shim: bool = False
    """Whether the code is there for the sake of another version of torch."""
    asking: ast.Call | None = None
    """The call whose arguments are being evaluated, if it compares types or converts to them."""
    decorator: ast.AST | None = None
    """The decorator that is being evaluated."""
    conditions: dict[ast.expr, Flag] | None = None
    """The conditions of the test that is being evaluated, where nothing can change them meanwhile."""
    world: dict[str, Value] | None = None
    """The names of the top level as the function last found them, where it runs on its own."""

    @property
    def name(self) -> str:
        """The identity of the function, which prefixes the keys of its symbols."""
        return self.info.qualname if self.info else f"{self.machine.index.label}<module>"

    @property
    def inside(self) -> list[ast.AST]:
        """Every node of the function that runs; at the top level, of what belongs to no definition."""
        return self.machine.index.top if self.info is None else self.info.nodes

    @property
    def after_init(self) -> bool:
        """Whether this is a module's code that can run after the module was moved."""
        if self.owner is None and self.inlined and self.caller is not None:
            # a helper that a method calls
            return self.caller.after_init
        return bool(self.owner and self.owner.is_module and self.info and not self.info.initialises and not self.silent)

    def at(self, node: ast.stmt | ast.expr) -> str:
        """Where a node stands, in keys that no other file has."""
        return f"{self.machine.index.label}{node.lineno}:{node.col_offset}"

    def evaluate(self, node: ast.expr) -> Value:
        """The value of an expression, with the sites that it makes."""
        return self.machine.evaluate(self, node)

    def lookup(self, name: str) -> Value | None:
        """The value of a name: local, then closed over, then global."""
        state = self.state
        value = state.env.get(name)
        if value is None or self.machine.index.rebound:
            value = self._found(name, value)
            if value is None:
                return None
        kind = type(value)
        if kind is Named:
            return self.machine.behind(value, name)  # type: ignore[arg-type]  # it is a Named, seen above
        return state.seen(value) if kind in CONTAINERS or (state.facts and kind in PLACED) else value

    def _found(self, name: str, value: Value | None) -> Value | None:
        """What a name means of which the frame itself holds ``value``."""
        if self.info is not None and name in self.machine.index.rebound and (value is None or name in self.info.shared):
            # a function inside of this one assigns it, or some function, nobody knows when
            return UNKNOWN
        if value is not None:
            return value
        for outer in self.closure:
            value = outer.state.env.get(name)
            if value is not None:
                return value
        value = self.world.get(name) if self.world is not None else None
        value = self.machine.global_value(name) if value is None else value
        return UNKNOWN if self.info is not None and _is_setting(name, value) else value

    def scope(self) -> Scope:
        """The surroundings of the code that runs now."""
        loop = self.loops[-1] if self.loops else None
        return Scope(
            function=self.info.name if self.info else "",
            owner=self.owner.name if self.owner else "",
            module=self.after_init,
            loop=loop.node if loop else None,
            step=any(loop.step and not loop.encloses for loop in self.loops),
            guarded=self.state.accelerated,
            handler=self.handler or self.tried,
            test=self.test or self.machine.test,
            device_aware=bool(self.info and self.info.device_aware),
            # nobody reads what is found in silence
            devices=() if self.machine.muted else self.devices(),
            required=self.state.required,
            counted=any("device_count" in key for key in self.state.facts),
            sometimes=loop is not None and (self.chances > loop.chances or loop.skips),
            bound=self._knows_cuda_alone(),
        )

    def _knows_cuda_alone(self) -> bool:
        """Whether what is imported needs CUDA, or what has been asked for does."""
        asked = any(holds and key.endswith(_NCCL) for key, holds in self.state.facts.items())
        return asked or self.machine.index.bound

    def devices(self) -> tuple[str, ...]:
        """The device expressions at hand, as many as anybody would choose from: names first, then what ``self`` has."""
        named = at_hand(self.state.env)
        found = [name for name, value in named if type(value) in _MAY_BE_DEVICES and is_device(value)]
        known = set(found)
        found += [name for name in self.machine.global_devices() if name not in known]
        found.sort(key=lambda name: (name != "device", "device" not in name))
        if self.owner is not None:
            found += [f"self.{attr}" for attr in self.machine.device_attributes(self.owner)]
        found += [
            f"{name}.device"
            for name, value in named
            # a local of unknown origin may be anywhere, as a batch is, or not be bound yet
            if type(value) is Opaque and value.hint == "tensor" and value.role is Role.INPUT
            if isinstance(value.node, ast.arg) and value.node.arg == value.text == name and not value.optional
        ]
        if self.loops:
            spelled = self._spelled_out()
            found = [name for name in found if name not in spelled]
        return tuple(found[:_MANY_DEVICES])

    def _spelled_out(self) -> frozenset[str]:
        """The names of loops through lists that the code spells out: what is not taken from them is another choice."""
        loops = (loop.node for loop in self.loops)
        targets = [
            loop.target for loop in loops if isinstance(loop, ast.For) and isinstance(loop.iter, (ast.Tuple, ast.List))
        ]
        return frozenset(part.id for target in targets for part in nodes.walk(target) if isinstance(part, ast.Name))

    def emit(self, site: Site) -> None:
        """Hand a site to whoever judges it."""
        if self.defaults and isinstance(site, Literal):
            site = replace(site, role="parameter")
        self.machine.record(site, self)

    def operand(self, node: ast.AST, value: Value, role: str = "") -> Operand:
        """The site's view of a tensor value."""
        tensor = as_tensor(value)
        return Operand(
            node=node,
            text=self.machine.text(node),
            device=self.state.settled(tensor.device),
            many=tensor.many,
            certain=tensor.certain or self.machine.loaders.moved(tensor.batch),
            story=self._story(value, tensor),
            factory=tensor.factory,
            factory_node=tensor.factory_node,
            blended=tensor.blended,
            scattered=bool(tensor.alternatives) and self._scattered(tensor),
            attribute=tensor.attribute,
            role=role,
            derived=tensor.derived,
            grad=tensor.grad,
            near=self.state.settled(tensor.near),
        )

    def _scattered(self, tensor: Tensor) -> bool:
        """Whether the functions are several in which a tensor was made, on one path or another."""
        made = [node for node in (tensor.factory_node, *tensor.alternatives) if node is not None]
        known = [info.node for info in self.machine.index.functions.values()]
        rows = {(node.lineno, node.end_lineno or 0) for node in known}
        homes = {
            max((span for span in rows if span[0] <= getattr(node, "lineno", 0) <= span[1]), default=None)
            for node in made
        }
        return len(homes) > 1

    def _story(self, value: Value, tensor: Tensor) -> tuple[Step, ...]:
        if tensor.story or not isinstance(value, Opaque) or value.node is None:
            return tensor.story
        return (Step(value.node, f"`{value.text}` is an argument here"),) if value.role is Role.INPUT else ()

    def place_of(self, module: Module) -> Device:
        """Where a module is now."""
        held = self.state.heap.get((module.oid, DEVICE))
        return self.state.settled(held) if isinstance(held, Device) else UNKNOWN_DEVICE

    def own_place(self) -> Device:
        """Where the module is whose method runs, wherever that may be."""
        return symbol(self.owner.place, "self", Role.PLACE) if self.owner else UNKNOWN_DEVICE

    def put(self, module: Module, place: Device, step: Step | None, depth: int = 0) -> None:
        """Put a module, and the modules that it was made of, somewhere."""
        self.state.heap[(module.oid, DEVICE)] = place
        self.state.heap.pop((module.oid, CHANGED), None)
        self.state.heap[(module.oid, STORY)] = (step,) if step else ()
        children = self.state.heap.get((module.oid, CHILDREN))
        if isinstance(children, tuple) and depth < 8:
            for child in children:
                self.put(child, place, step, depth + 1)

    def story_of(self, module: Module) -> tuple[Step, ...]:
        """How a module came to its device."""
        held = self.state.heap.get((module.oid, STORY))
        return held if isinstance(held, tuple) else ()


def at_hand(env: dict[str, Value]) -> Collection[tuple[str, Value]]:
    """The names of a scope with their values; of very many the first and the newest."""
    if len(env) <= 2 * _MANY_NAMES:
        return env.items()
    return [*islice(env.items(), _MANY_NAMES), *islice(reversed(env.items()), _MANY_NAMES)]


def _is_setting(name: str, value: Value | None) -> bool:
    """Whether a name of the top level is the CPU as long as nobody writes something else there: not `CPU_DEVICE`."""
    if not is_device_name(name) or "cpu" in name.lower():
        return False
    if isinstance(value, Const):
        return value.value == "cpu"
    return isinstance(value, DeviceValue) and value.device.kind is Kind.CPU


def is_device(value: Value) -> bool:
    """Whether a name that holds the value is one to say a device by."""
    if isinstance(value, DeviceValue):
        return value.device.kind is Kind.SYMBOL or (value.device.kind is Kind.CHOICE and _chosen(value.device))
    # a rank or an index is a device only as an argument
    if not isinstance(value, Opaque) or value.hint != "device" or value.optional:
        return False
    return "dev" in value.text.lower()


def _chosen(place: Device) -> bool:
    """Whether a choice is not one for the CPU that hangs on something else than what there is."""
    return any(map(_OF_DEVICES.search, place.guards())) or all(leaf.kind is not Kind.CPU for leaf in place.leaves())
