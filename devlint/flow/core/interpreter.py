"""The contract of the interpreter: what it can be asked, the frames that it runs, and whose state it keeps."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from devlint.device import UNKNOWN as UNKNOWN_DEVICE
from devlint.device import Device, Kind, Role, symbol
from devlint.flow.core.call import Call, Loop
from devlint.flow.domain.heap import CHANGED, CHILDREN, DEVICE, ORIGIN, Heap
from devlint.flow.domain.objects import Class, Function, Instance, Module
from devlint.flow.domain.provenance import NO_ORIGIN, Origin
from devlint.flow.domain.state import State
from devlint.flow.domain.tensors import PLACED, Batches, DeviceValue, as_tensor
from devlint.flow.domain.values import CONTAINERS, UNKNOWN, Const, Environment, Flag, Named, Opaque, Value
from devlint.flow.program.def_use import Code, apart
from devlint.flow.program.observations import Observed
from devlint.flow.program.project import changes_default
from devlint.flow.program.symbols import ClassInfo, FunctionInfo, Index
from devlint.flow.program.type_hints import is_device_name
from devlint.flow.syntax import names
from devlint.flow.syntax.loops import LoopText
from devlint.sites.base import Operand, Site, Step
from devlint.sites.placement import Forward, Operation

_DEEPEST_PART = 8


class Component:
    """What a model or an observer knows of one file, made when somebody first asks for it.

    A file that is only entered for the sake of another has components of its own, but for those that are ``shared``:
    what a loader or a caller knows belongs to the file that is checked, wherever it happens.
    """

    shared: ClassVar[bool] = False

    def __init__(self, interpreter: Interpreter) -> None:
        pass

    def sites(self) -> Iterator[Site]:
        """What is to be told once the file has been read to its end."""
        return iter(())


Part = TypeVar("Part", bound=Component)


class Quiet:
    """A context in which code runs without being heard: to find a fixpoint, or to find something out."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter

    def __enter__(self) -> None:
        self._interpreter.mute(1)

    def __exit__(self, *_: object) -> None:
        self._interpreter.mute(-1)


class Imports:
    """What the names of a file mean that other files define; here none does, and a name means itself."""

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter

    def value(self, named: Named, spelled: str) -> Value:
        """What is behind an imported name: itself where the project does not define it, or where it cannot be told."""
        return named

    def called(self, frame: Frame, named: Named) -> Value:
        """What is behind a name that is called."""
        return named

    def star(self, name: str) -> Value | None:
        """What is behind a name that the file binds nowhere, if a star brings it in."""
        return None

    def parameters(self, path: str) -> tuple[str, ...]:
        """The positional parameters of a function or a method of the project, or of the constructor of a class."""
        return ()

    def forget(self, path: str) -> None:
        """Something is assigned to a name of a module: nothing is known of it any more."""

    def home(self, index: Index) -> Interpreter:
        """Who interprets the file of a definition."""
        return self.interpreter

    def guests(self) -> tuple[Interpreter, ...]:
        """Who interprets the other files, for the sake of the one that is checked."""
        return ()


class Interpreter(ABC):
    """The interpreter of one file, as the analysis sees it: what it knows of the file, and what it can be asked to do.

    ``host`` is the interpreter of the file that is checked, which may be this one; ``own_text`` is what models and
    observers look through for what concerns them, empty in a file of which nothing is reported.
    """

    evaluate: Callable[[Frame, ast.expr], Value]
    """The value of an expression in a frame, with the sites that it makes."""
    attribute: Callable[[Frame, ast.Attribute, Value], Value]
    """The value of an attribute of a value."""
    condition: Callable[[Frame, ast.expr], Flag]
    """The condition that a test expresses."""
    construct: Callable[[Frame, Class, Call], Value]
    """A new object of a class of the project."""

    def __init__(
        self, index: Index, tree: ast.Module, text: str, test: bool, host: Interpreter | None = None,
        observers: tuple[type[Component], ...] = (),
    ) -> None:  # fmt: skip
        self.host = self if host is None else host
        self.index = index
        self.catalog = index.catalog
        self.tree = tree
        self.text_of_file = text
        self.own_text = text if host is None else ""
        self.imports = Imports(self)
        self.test = test
        self.default_is_set: bool = host is not None and host.default_is_set
        """Whether a script that imports the file changes the default device."""
        self.muted = 0 if host is None else 1
        """How many times it is to be quiet; :meth:`mute` changes that."""
        self.finished = host is not None
        """Whether the top level has been run."""
        self.default_device: object = None
        self.watch: Callable[[Frame, ast.AST, Value], None] | None = None
        """Who wants to know the values of names, each where it stands."""
        self.observed: Observed | None = None
        """Where a run has seen what the code leaves open, if one is asked."""
        self.told: set[tuple[str, Device]] | None = None
        """Where some call in the code says that an argument is, by its symbol; None where nobody asks."""
        self.asked: dict[ast.expr, tuple[frozenset[str] | None, tuple[str, ...]]] = {}
        """What :func:`predicates.keep` knows of tests."""
        self.bound: set[str] = set()
        """The keys of what names were bound to; of any other, no heap can have anything yet."""
        self.observers = observers
        self._audiences = tuple((self.hearers(quiet, False), self.hearers(quiet, True)) for quiet in (False, True))
        self.audience = self._audiences[min(self.muted, 1)]
        """Who hears of each event now: where a function runs alone, and where it does for a caller."""
        self.components: dict[type[Component], Any] = {}
        self._loops: dict[ast.AST, LoopText] = {}
        self._spelled: dict[ast.AST, str] = {}
        self._quiet = Quiet(self)
        self.kept: list[Frame] = []
        """The frames that are known to what is defined in them."""

    @abstractmethod
    def hearers(self, quiet: bool, inlined: bool) -> dict[str, list[Any]]:
        """The observers of each event, found when it first happens: in silence or not, for a caller or not."""

    def component(self, kind: type[Part]) -> Part:
        """The state that a model or an observer has here."""
        found: Part | None = self.components.get(kind)
        if found is None:
            found = self.components[kind] = (
                self.host.component(kind) if kind.shared and self.host is not self else kind(self)
            )
        return found

    def mute(self, by: int) -> None:
        """Be quiet once more, or once less."""
        self.muted += by
        self.audience = self._audiences[min(self.muted, 1)]

    def quiet(self) -> Quiet:
        """A context in which nothing that is found out is told."""
        return self._quiet

    def text(self, node: ast.AST) -> str:
        """The code of a node on one line, short enough for a message."""
        text = self._spelled.get(node)
        if text is None:
            text = self._spelled[node] = names.spelled(node)
        return text

    def loop_text(self, loop: ast.AST) -> LoopText:
        """What the text of a loop says."""
        found = self._loops.get(loop)
        if found is None:
            found = self._loops[loop] = LoopText(loop)
        return found

    @cached_property
    def default_changed(self) -> bool:
        """Whether the file, or who imports it, changes where tensors are made that nobody asks to be anywhere."""
        return self.default_is_set or changes_default(self.text_of_file)

    def self_value(self, info: ClassInfo) -> Value:
        """``self`` in the methods of a class: one object, whoever made it."""
        oid = info.oid
        return Module(oid, cls=info, text="self", has_state=True) if info.is_module else Instance(oid, info)

    def is_worth(self, info: FunctionInfo) -> bool:
        """Whether a function can say anything of where something is."""
        return True

    @abstractmethod
    def enter(self, frame: Frame, function: Function, call: Call) -> Value:
        """The result of calling a function of the project."""

    @abstractmethod
    def run_call(self, frame: Frame, function: Function, call: Call) -> Value:
        """The result of calling a function of this file."""

    @abstractmethod
    def refuses(self, frame: Frame, info: FunctionInfo) -> bool:
        """Whether a call is not worth being followed, or leads back to where it came from."""

    @abstractmethod
    def record(self, site: Site, frame: Frame) -> None:
        """Keep a site, unless nobody is to hear of it."""

    @abstractmethod
    def global_value(self, name: str) -> Value | None:
        """What a name of the top level holds, ``None`` where it has no such name."""

    @abstractmethod
    def global_devices(self) -> list[str]:
        """The names of the top level that hold a device."""

    @abstractmethod
    def class_heap(self, info: ClassInfo) -> Heap:
        """What ``__init__`` leaves in ``self``, as any method finds it later."""

    @abstractmethod
    def device_attributes(self, info: ClassInfo) -> list[str]:
        """The attributes of ``self`` that hold a device, unless it is the CPU."""

    @abstractmethod
    def overhear(self, frame: Frame, info: ClassInfo, call: Call) -> list[Operation | Forward]:
        """What ``forward`` of a class would claim if it was called so; nothing if it is not followed."""

    @abstractmethod
    def defined(self, frame: Frame, info: FunctionInfo | ClassInfo, closure: tuple[Environment, ...]) -> None:
        """A function or a class is defined inside of a function."""

    @abstractmethod
    def moves_batches(self, loaders: tuple[int, ...]) -> bool:
        """Whether the file moves batches of these loaders."""


@dataclass(eq=False)
class Frame(Environment):
    """One activation of a function: its state, what it returns, and what surrounds the code that runs."""

    interpreter: Interpreter
    state: State
    info: FunctionInfo | None = None
    owner: ClassInfo | None = None
    closure: tuple[Environment, ...] = ()
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
        return self.info.qualname if self.info else f"{self.interpreter.index.label}<module>"

    @property
    def code(self) -> Code:
        """The function that runs, or the top level."""
        return self.interpreter.index if self.info is None else self.info

    @property
    def inside(self) -> list[ast.AST]:
        """Every node of the function that runs; at the top level, of what belongs to no definition."""
        return self.code.nodes

    @property
    def after_init(self) -> bool:
        """Whether this is a module's code that can run after the module was moved."""
        if self.owner is None and self.inlined and self.caller is not None:
            # a helper that a method calls
            return self.caller.after_init
        return bool(self.owner and self.owner.is_module and self.info and not self.info.initialises and not self.silent)

    @property
    def outermost(self) -> Frame:
        """The frame from which the code that runs was entered, of a function or of the top level."""
        return self if self.caller is None else self.caller.outermost

    def at(self, node: ast.stmt | ast.expr) -> str:
        """Where a node stands, in keys that no other file has."""
        return f"{self.interpreter.index.label}{node.lineno}:{node.col_offset}"

    def binding(self, name: str) -> Value | None:
        """What the frame itself binds to a name."""
        return self.state.env.get(name)

    def component(self, kind: type[Part]) -> Part:
        """The state that a model or an observer has in the file."""
        found: Part | None = self.interpreter.components.get(kind)
        return self.interpreter.component(kind) if found is None else found

    def evaluate(self, node: ast.expr) -> Value:
        """The value of an expression, with the sites that it makes."""
        return self.interpreter.evaluate(self, node)

    def lookup(self, name: str) -> Value | None:
        """The value of a name: local, then closed over, then global."""
        state = self.state
        value = state.env.get(name)
        if value is None or self.interpreter.index.rebound:
            value = self._found(name, value)
            if value is None:
                return None
        kind = type(value)
        if kind is Named:
            return self.interpreter.imports.value(value, name)  # type: ignore[arg-type]  # it is a Named, seen above
        changing = kind in CONTAINERS or kind is Batches
        return state.seen(value) if changing or (state.facts and kind in PLACED) else value

    def _found(self, name: str, value: Value | None) -> Value | None:
        """What a name means of which the frame itself holds ``value``."""
        if (
            self.info is not None
            and name in self.interpreter.index.rebound
            and (value is None or name in self.info.shared)
        ):
            # a function inside of this one assigns it, or some function, nobody knows when
            return UNKNOWN
        if value is not None:
            return value
        for outer in self.closure:
            value = outer.binding(name)
            if value is not None:
                return value
        value = self.world.get(name) if self.world is not None else None
        value = self.interpreter.global_value(name) if value is None else value
        return UNKNOWN if self.info is not None and _is_setting(name, value) else value

    def emit(self, site: Site) -> None:
        """Hand a site to whoever judges it."""
        self.interpreter.record(site, self)

    def operand(self, node: ast.AST, value: Value, role: str = "") -> Operand:
        """The site's view of a tensor value."""
        tensor = as_tensor(value)
        origin = tensor.origin
        return Operand(
            node=node,
            text=self.interpreter.text(node),
            device=self.settled(tensor.device),
            many=self._sized(value) if tensor.many is None else tensor.many,
            certain=tensor.certain or self.interpreter.moves_batches(tensor.batch),
            story=origin.story or _story_of_argument(value),
            factory=origin.factory,
            factory_node=origin.node,
            blended=origin.blended,
            scattered=apart(self.interpreter.index, origin.node, origin.alternatives),
            attribute=origin.attribute,
            role=role,
            derived=tensor.derived,
            grad=tensor.grad,
            complex=tensor.complex,
            near=self.state.settled(tensor.near),
        )

    def place_of(self, module: Module) -> Device:
        """Where a module is now."""
        held = DEVICE.of(self.state.heap, module.oid)
        return UNKNOWN_DEVICE if held is None else self.state.settled(held)

    def settled(self, place: Device) -> Device:
        """A place as the known conditions leave it, and where they leave it open, as a run has seen it."""
        place, observed = self.state.settled(place), self.interpreter.observed
        return place if observed is None else observed.place(place, self.info, self.state)

    def _sized(self, value: Value) -> bool | None:
        """Whether an argument surely has dimensions, as a run has seen it."""
        observed = self.interpreter.observed
        sized = observed is not None and isinstance(value, Opaque) and observed.is_sized(value.key)
        return True if sized else None

    def own_place(self) -> Device:
        """Where the module is whose method runs, wherever that may be."""
        return symbol(self.owner.place, "self", Role.PLACE) if self.owner else UNKNOWN_DEVICE

    def put(self, module: Module, place: Device, step: Step | None, depth: int = 0) -> None:
        """Put a module, and the modules that it was made of, somewhere."""
        heap = self.state.heap
        heap.pop((module.oid, CHANGED), None)
        DEVICE.put(heap, module.oid, place)
        ORIGIN.put(heap, module.oid, Origin((step,)) if step else NO_ORIGIN)
        if depth < _DEEPEST_PART:
            for child in CHILDREN.of(heap, module.oid) or ():
                self.put(child, place, step, depth + 1)

    def origin_of(self, module: Module) -> Origin:
        """How a module came to its device, and with it what it makes or holds."""
        return ORIGIN.of(self.state.heap, module.oid) or NO_ORIGIN


def _story_of_argument(value: Value) -> tuple[Step, ...]:
    if isinstance(value, Opaque) and value.role is Role.INPUT and value.node is not None:
        return (Step(value.node, f"`{value.text}` is an argument here"),)
    return ()


def _is_setting(name: str, value: Value | None) -> bool:
    """Whether a name of the top level is the CPU as long as nobody writes something else there: not `CPU_DEVICE`."""
    if not is_device_name(name) or "cpu" in name.lower():
        return False
    if isinstance(value, Const):
        return value.value == "cpu"
    return isinstance(value, DeviceValue) and value.device.kind is Kind.CPU
