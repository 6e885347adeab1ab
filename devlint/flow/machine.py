"""The machine: runs a file's definitions on what is known of their values, and collects the sites they make.

The top level runs first, as Python would run it.  Then every definition that mentions something device-related is run
on its own, with arguments of which only the identity is known; methods see what ``__init__`` left in ``self``.  Calls
within the file are entered.  Nothing is imported and nothing is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from devlint import device
from devlint.device import Device, Role
from devlint.flow import draws, endings, expressions, guards, literals, mentions, names, overrides, statements
from devlint.flow.attributes import Attributes
from devlint.flow.callers import Callers, as_annotated
from devlint.flow.choosing import Choosing
from devlint.flow.evidence import DEVICE_NAME, defaults_of, is_numbers
from devlint.flow.frame import Call, Frame, at_hand, is_device
from devlint.flow.groups import Groups
from devlint.flow.index import ClassInfo, FunctionInfo, Index
from devlint.flow.loaders import Loaders
from devlint.flow.lookups import Lookups
from devlint.flow.optimizers import Optimizers
from devlint.flow.rounds import Rounds
from devlint.flow.samples import Samples
from devlint.flow.selections import Selections
from devlint.flow.state import ARGUMENTS, DEVICE, HeapKey, State
from devlint.flow.stepping import Steps
from devlint.flow.submodules import Submodules
from devlint.flow.values import (
    UNKNOWN,
    Class,
    Const,
    DeviceValue,
    Function,
    Instance,
    Loader,
    Module,
    Named,
    Opaque,
    Tensor,
    Unknown,
    Value,
    identity,
)
from devlint.flow.waits import Queue
from devlint.placing import HostRead
from devlint.sites import Forward, Operation, Site, Step

_DEEPEST_CALL = 4
_LONGEST_INLINED = 120
_DEFAULT_DEVICE = ("set_default_device", "set_default_tensor_type", "DeviceContext")


class Machine:
    """One file being interpreted."""

    def __init__(self, tree: ast.Module, text: str, test: bool = False) -> None:
        self.index = Index(tree, text)
        self.tree = tree
        self.lookups = Lookups(tree)
        self.sites: list[Site] = []
        self.text_of_file = text
        self.muted = 0
        self.foreign = names.are_of_another_library(self.index.imports.values())
        self.profiled = mentions.profiled(text)
        self.renames = "rename_privateuse1_backend" in text
        self.default_changed = any(word in text for word in _DEFAULT_DEVICE)
        self.test = test
        self.default_device: object = None
        self.loaders = Loaders(text)
        self.samples = Samples(text)
        self.groups = Groups(text)
        self.attributes = Attributes()
        self.submodules = Submodules()
        self.optimizers = Optimizers()
        self.steps = Steps(self.index)
        self.selections = Selections(self.index, text)
        self.choosing = Choosing(text)
        self.shims: set[str] = set()
        self.queue = Queue()
        self._rounds: dict[ast.AST, Rounds] = {}
        self._class_heaps: dict[ClassInfo, dict[HeapKey, object]] = {}
        self._device_attributes: dict[ClassInfo, tuple[int, list[str]]] = {}
        self._global_devices: list[str] | None = None
        self.callers = Callers()
        self._pending: list[tuple[FunctionInfo, tuple[Frame, ...]]] = []
        # what the top level has when it calls a function, of which it calls no more later
        self._worlds: dict[FunctionInfo, dict[str, Value]] = {}
        self._finished = False
        self._top = Frame(self, State({name: Named(path) for name, path in self.index.imports.items()}))

    @property
    def globals(self) -> dict[str, Value]:
        """The names of the top level, as they are where it has come to."""
        return self._top.state.env

    def run(self) -> Iterator[Site]:
        """Interpret the file; every site once it is complete."""
        frame = self._top
        statements.run_body(frame, self.tree.body)
        self._finished = True
        self._global_devices = self.global_devices()
        self.default_device = draws.left(frame)
        for info in list(self.index.classes.values()):
            self._run_class(info)
        for function in list(self.index.functions.values()):
            if function.owner is None and function.triggered:
                self._run_alone(function)
        while self._pending:
            function, closure = self._pending.pop()
            self._run_alone(function, closure)
        yield from self.steps.told([*self.sites, *self.callers.sites()])
        yield from self.loaders.sites(self.samples)
        yield from self.samples.sites(self.index)
        yield from self.groups.sites()
        yield from self.attributes.sites()
        yield from self.submodules.sites()
        yield from self.optimizers.sites()
        yield from self.selections.sites()
        yield from self.choosing.sites()
        yield from overrides.sites(self.index)

    def rounds(self, loop: ast.AST) -> Rounds:
        """What the text of a loop says."""
        found = self._rounds.get(loop)
        if found is None:
            found = self._rounds[loop] = Rounds(loop)
        return found

    def evaluate(self, frame: Frame, node: ast.expr) -> Value:
        """The value of an expression in a frame."""
        return expressions.evaluate(frame, node)

    def record(self, site: Site, frame: Frame) -> None:
        """Keep a site, unless the code runs only to find a loop's fixpoint, or again for a caller."""
        claim = isinstance(site, (Operation, Forward, HostRead))
        if self.muted or (frame.inlined and not claim) or (frame.silent and claim):
            return
        self.steps.made(frame, site)
        if not self.callers.holds_back(site, frame):
            self.sites.append(site)

    def text(self, node: ast.AST) -> str:
        """The code of a node on one line, short enough for a message."""
        try:
            text = ast.unparse(node)
        except (ValueError, RecursionError):
            return "..."
        return text if len(text) <= 60 else f"{text[:57]}..."

    def later(self, info: FunctionInfo, closure: tuple[Frame, ...], triggered: bool) -> None:
        """Run a nested function on its own once the functions around it are done."""
        if triggered and not self.muted and all(info is not known for known, _ in self._pending):
            self._pending.append((info, closure))

    # -- classes -----------------------------------------------------------------------------------------------------

    def _run_class(self, info: ClassInfo) -> None:
        if not self.index.triggered(info.node) and not self._inherits(info):
            return
        init = info.methods.get("__init__")
        if init is not None and init.triggered:
            self.class_heap(info)
        kept = self._followed(info)
        for name, method in info.methods.items():
            if name != "__init__" and (
                method.triggered or any(f"self.{attr}" in self.index.code(method.node) for attr in kept)
            ):
                self._run_alone(method)

    def _inherits(self, info: ClassInfo) -> bool:
        """Whether a base of the file keeps tensors that the class has to move."""
        return info.is_module and any(self.attributes.names(base.name) for base in info.ancestors())

    def _followed(self, info: ClassInfo) -> list[str]:
        """The attributes of ``self`` which are worth a method's interpretation, although it mentions no device."""
        if info.is_module:
            return [name for known in (info, *info.ancestors()) for name in self.attributes.names(known.name)]
        heap = self._class_heaps.get(info, {})
        return [
            key[1]
            for key, held in heap.items()
            if key[0] == self._oid(info) and isinstance(held, (Tensor, Module, Loader))
        ]

    def self_value(self, info: ClassInfo) -> Value:
        """``self`` in the methods of a class: one object, whoever made it."""
        oid = self._oid(info)
        return Module(oid, cls=info, text="self", has_state=True) if info.is_module else Instance(oid, info)

    def _oid(self, info: ClassInfo) -> int:
        return -info.node.lineno

    def class_heap(self, info: ClassInfo) -> dict[HeapKey, object]:
        """What ``__init__`` leaves in ``self``, as any method finds it later."""
        known = self._class_heaps.get(info)
        if known is not None:
            return known
        heap = self._class_heaps[info] = {}
        for parent in info.parents():
            inherited = self.class_heap(parent)
            source, target = self._oid(parent), self._oid(info)
            heap.update({((target, key[1]) if key[0] == source else key): value for key, value in inherited.items()})
        init = info.methods.get("__init__")
        if init is not None:
            frame = self._frame(init, State({}, dict(heap)), (), inlined=False)
            statements.run_body(frame, init.node.body)
            after = endings.after(frame)
            self.submodules.settle(info, self._oid(info), after)
            heap.update(self._settle_self(info, after))
        self._class_heaps[info] = heap
        return heap

    def _settle_self(self, info: ClassInfo, state: State) -> dict[HeapKey, object]:
        """The heap after ``__init__``, as methods see it: moved with the module, unknown where they change it."""
        oid = self._oid(info)
        place = device.symbol(f"place:{info.name}", "self", Role.PLACE)
        heap = dict(state.heap)
        if info.is_module:
            # whatever __init__ made moves with the module
            heap.update({key: place for key in state.heap if key[1] == DEVICE})
        if info.is_open:
            # perhaps a module, whose attributes move with it: nothing is known of where they are
            heap.update({key: device.UNKNOWN for key in state.heap if key[1] == DEVICE})
        for key, held in state.heap.items():
            if key[0] != oid or not isinstance(held, Value):
                continue
            change = info.changed.get(key[1], "")
            if change == "assigned" and not _survives(info, key[1], held):
                del heap[key]
                continue
            if info.is_module:
                heap[key] = _with_module(held, place)
            elif info.is_open and isinstance(held, Tensor):
                heap[key] = replace(held, device=device.UNKNOWN, factory="", factory_node=None, story=())
            elif change == "moved" and isinstance(held, Module):
                heap[(held.oid, DEVICE)] = device.UNKNOWN
        return heap

    def device_attributes(self, info: ClassInfo) -> list[str]:
        """The attributes of ``self`` that hold a device."""
        heap = self._class_heaps.get(info, {})
        known = self._device_attributes.get(info)
        if known is None or known[0] != len(heap):  # it is filled when ``__init__`` has run
            oid = self._oid(info)
            found = [key[1] for key, held in heap.items() if key[0] == oid and _is_device(held)]
            known = self._device_attributes[info] = len(heap), found
        return known[1]

    def global_devices(self) -> list[str]:
        """The names of the top level that hold a device."""
        if self._global_devices is not None:
            return self._global_devices
        return [name for name, value in at_hand(self.globals) if is_device(value)]

    # -- functions ---------------------------------------------------------------------------------------------------

    def _run_alone(self, info: FunctionInfo, closure: tuple[Frame, ...] = ()) -> None:
        """Interpret a function with arguments of which nothing but the identity is known."""
        if info.owner is not None and info.name == "__init__":
            self.class_heap(info.owner)
            return
        heap = dict(self.class_heap(info.owner)) if info.owner else {}
        frame = self._frame(info, State({}, heap), closure, inlined=False)
        # whoever calls it has given the device something to do
        self.queue.unseen(frame, info.node)
        frame.world = self._worlds.get(info)
        statements.run_body(frame, info.node.body)

    def _frame(
        self, info: FunctionInfo, state: State, closure: tuple[Frame, ...], inlined: bool, call: Call | None = None,
        bound: Value | None = None, caller: Frame | None = None,
    ) -> Frame:  # fmt: skip
        frame = Frame(self, state, info, info.owner, closure, inlined, caller)
        frame.world = caller.world if caller is not None else None
        if caller is not None and caller.state.accelerated:
            state.accelerated = True
        frame.silent = bool(caller and caller.silent) or self._on_the_host(info)
        guards.decorate(frame, info)
        self._bind(frame, info, call, bound)
        return frame

    def _on_the_host(self, info: FunctionInfo) -> bool:
        """Whether a function works before anything was moved: it makes batches, or sets up a module."""
        if info.name in self.index.host_functions or info.owner is None:
            return info.name in self.index.host_functions
        if info.owner.is_dataset or info.owner.is_collator or info.initialises:
            return True
        callers = info.owner.callers.get(info.name, ()) if info.private else ()
        return bool(callers) and all(caller.name in self.index.host_functions for caller in callers)

    def _bind(self, frame: Frame, info: FunctionInfo, call: Call | None, bound: Value | None) -> None:
        """Bind the parameters: to what the call passes, else to their defaults, else to what has only an identity."""
        arguments = info.node.args
        parameters = [*arguments.posonlyargs, *arguments.args]
        env = frame.state.env
        static = "staticmethod" in info.decorators
        if info.owner is not None and parameters and not static:
            env[parameters[0].arg] = bound if bound is not None else self._self_for(info)
            parameters = parameters[1:]
        defaults = defaults_of(arguments)
        positional = call.positional if call else ()
        for position, parameter in enumerate((*parameters, *arguments.kwonlyargs)):
            name = parameter.arg
            value: Value | None = None
            if call is not None and not (call.open or call.starred):
                value = (
                    positional[position]
                    if position < min(len(positional), len(parameters))
                    else call.keywords.get(name)
                )
                if value is None and isinstance(defaults.get(name), ast.Constant):
                    value = Const(defaults[name].value)  # type: ignore[attr-defined]  # an ast.Constant, seen above
            # the function's own word that it takes numbers outweighs what its caller seems to pass
            number = isinstance(value, Opaque) and info.hints.get(name) == "number"
            default = defaults.get(name)
            if value is None and call is not None and isinstance(default, (ast.Call, ast.Attribute, ast.Name)):
                value = self._default(frame, default)
            if value is None or number or isinstance(value, Unknown):
                value = self._argument(frame, info, parameter, defaults.get(name))
            env[name] = value
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                env[rest.arg] = Opaque(f"{info.qualname}:{rest.arg}", rest.arg, "", Role.INPUT, rest)

    def _default(self, frame: Frame, default: ast.expr) -> Value:
        """The value of a parameter's default; what it says of itself, it says where the function is defined."""
        self.muted += 1
        value = expressions.evaluate(frame, default)
        self.muted -= 1
        return value

    def _self_for(self, info: FunctionInfo) -> Value:
        if info.owner is None or "classmethod" in info.decorators:
            return UNKNOWN
        return self.self_value(info.owner)

    def _argument(self, frame: Frame, info: FunctionInfo, parameter: ast.arg, default: ast.expr | None) -> Value:
        name = parameter.arg
        hint = info.hints.get(name, "")
        literal = default.value if isinstance(default, ast.Constant) else None
        if isinstance(literal, str) and (place := device.parse(literal)) is not None:
            hint = "device"
            if place.kind is device.Kind.ACCELERATOR and default is not None:
                literals.default(frame, info, name, default, literal)
        elif isinstance(literal, (int, float)) or is_numbers(default):
            hint = "number"
        elif not hint and DEVICE_NAME.search(name):
            hint = "device"
        role = Role.DEVICE if hint == "device" else Role.INPUT
        optional = isinstance(default, ast.Constant) and default.value is None
        return Opaque(f"{info.qualname}:{name}", name, hint, role, parameter, optional=optional)

    def enter(self, frame: Frame, function: Function, call: Call) -> Value:
        """The result of calling a function of the file; what it says beyond mismatches, it says when run alone."""
        result = self._entered(frame, function, call)
        return as_annotated(function.info) if isinstance(result, Unknown) else result

    def _entered(self, frame: Frame, function: Function, call: Call) -> Value:
        info = function.info
        depth = 0
        outer: Frame | None = frame
        while outer is not None:
            if outer.info is info:
                return UNKNOWN
            depth, outer = depth + 1, outer.caller
        self.steps.called(frame, info)
        length = (info.node.end_lineno or 0) - info.node.lineno
        if (
            depth > _DEEPEST_CALL
            or self.callers.exhausted(info)
            or (length > _LONGEST_INLINED and depth > 1)
            or info.is_generator
        ):
            self.loaders.escape(call.values())
            self.callers.escape(call.values())
            return UNKNOWN
        heap = frame.state.heap
        state = State({}, dict(heap), dict(frame.state.facts), wholes=frame.state.wholes)
        if info.owner is not None and isinstance(function.bound, (Module, Instance)):
            for key, held in self.class_heap(info.owner).items():
                state.heap.setdefault(key, held)
        inner = self._frame(info, state, function.closure, True, call, function.bound, frame)
        self.callers.called(frame, info, inner.state.env)
        inner.default_device = frame.default_device
        inner.loops = list(frame.loops)
        if not self._finished:
            self._worlds[info] = dict(self.globals)
        statements.run_body(inner, info.node.body)
        left = endings.after(inner)
        frame.state.heap = left.heap
        if isinstance(info.node, ast.AsyncFunctionDef) or not inner.returns:
            return Const(None) if not inner.returns else UNKNOWN
        return endings.returned(inner)

    def construct(self, frame: Frame, cls: Class, call: Call) -> Value:
        """A new object of a class of the file."""
        info = cls.info
        self.loaders.escape(call.values())
        if not self._finished and info.is_module:
            # with the names of the top level as they are now
            self.class_heap(info)
        if info.is_module:
            module = Module(identity(), cls=info, text=info.name, has_state=info.has_state is not False)
            known = info.has_state is True and not self.default_changed and not info.moves_inputs
            place = (frame.default_device or device.IMPLIED_CPU) if known else device.UNKNOWN
            placed = any(_is_device(value) for value in call.values())
            frame.put(
                module,
                device.UNKNOWN if placed else place,
                Step(call.node, f"`{info.name}` is created on the CPU here"),
            )
            return replace(module, spread=info.moves_inputs)
        self.samples.transforms(call)
        instance = Instance(identity(), info)
        frame.state.heap[(instance.oid, ARGUMENTS)] = call.values()
        return instance


def _survives(info: ClassInfo, attribute: str, held: Value) -> bool:
    """Whether an attribute is what ``__init__`` made it although a method assigns it."""
    if isinstance(held, Loader):
        return _constructed(info, attribute)
    # nothing but another parameter can take the place of one
    return info.is_module and isinstance(held, Tensor) and held.buffer and held.grad == "parameter"


def _constructed(info: ClassInfo, attribute: str) -> bool:
    """Whether nothing but the constructor, and methods that only it calls, assigns an attribute of ``self``."""
    return all(
        method.initialises
        for method in info.methods.values()
        for node in method.nodes
        if isinstance(node, ast.Attribute) and node.attr == attribute and not isinstance(node.ctx, ast.Load)
    )


def _with_module(held: Value, place: Device) -> Value:
    """A value held by a module, after the caller moved the module."""
    if isinstance(held, Tensor) and held.buffer:
        return replace(held, device=place, factory="", factory_node=None, story=(), attribute=None)
    return held


def _is_device(held: object) -> bool:
    return isinstance(held, DeviceValue) or (isinstance(held, Opaque) and held.hint == "device")
