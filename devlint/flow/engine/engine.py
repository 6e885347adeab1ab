"""The machine: runs a file's definitions on what is known of their values, and collects the sites they make.

The top level runs first, as Python would run it.  Then every definition that mentions something device-related is run
on its own, with arguments of which only the identity is known; methods see what ``__init__`` left in ``self``.  Calls
within the file are entered.  Nothing is imported and nothing is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

from devlint import device
from devlint.device import Device, Role
from devlint.flow.catalog.libraries import BUILT_IN, Catalog
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.scope import at_hand, is_device
from devlint.flow.domain.export import scrubbed_heap
from devlint.flow.domain.heap import ANY, DEVICE, REGISTERED, Heap, attributes
from devlint.flow.domain.objects import Function, Instance, Module, mapped
from devlint.flow.domain.provenance import NO_ORIGIN
from devlint.flow.domain.state import State
from devlint.flow.domain.tensors import Loader, Tensor, may_be_away
from devlint.flow.domain.values import CONTAINERS, UNKNOWN, Const, Environment, Named, Value
from devlint.flow.engine.library import OBSERVERS
from devlint.flow.evaluation import conditions, expressions, statements
from devlint.flow.evaluation.attributes import attribute
from devlint.flow.interprocedural import activation, foreign_calls, instantiation
from devlint.flow.interprocedural.call_contexts import CallContexts, is_despite
from devlint.flow.interprocedural.imports import Family, Foreign, ProjectImports
from devlint.flow.interprocedural.inheritance import settled
from devlint.flow.interprocedural.instantiation import survives
from devlint.flow.models.data.loaders import Loaders
from devlint.flow.models.torch.rng import is_kept
from devlint.flow.models.torch.rng import is_one as is_distribution
from devlint.flow.observers.placement.unregistered_modules import UnregisteredModules
from devlint.flow.observers.placement.unregistered_tensors import UnregisteredTensors
from devlint.flow.program import mutations, release
from devlint.flow.program.def_use import inherits_deeply
from devlint.flow.program.module_classes import is_alone, left_later, made_later
from devlint.flow.program.mutations import is_set_up_elsewhere
from devlint.flow.program.project import Project
from devlint.flow.program.symbols import ClassInfo, FunctionInfo, Index
from devlint.flow.transfer import defaults, havoc
from devlint.flow.transfer.device_queue import DeviceQueue
from devlint.flow.transfer.escapes import Escapes
from devlint.immutable import replace
from devlint.sites.base import Site
from devlint.sites.distributed import Unforwarded
from devlint.sites.placement import Forward, Hint, HostRead, Operation
from devlint.sites.transfers import IndexCopy

_DEEPEST_CALL = 4
_LONGEST_INLINED = 120


class Engine(Interpreter):
    """One file being interpreted."""

    def __init__(
        self,
        tree: ast.Module,
        text: str,
        test: bool = False,
        project: Project | None = None,
        index: Index | None = None,
        host: Interpreter | None = None,
        foreign: Foreign | None = None,
        catalog: Catalog = BUILT_IN,
    ) -> None:
        super().__init__(
            Index(tree, text, catalog=catalog) if index is None else index, tree, text, test, host, OBSERVERS
        )
        self.observed = None if host is None else host.observed
        self._class_heaps: dict[ClassInfo, Heap] = {}
        self._device_attributes: dict[ClassInfo, tuple[int, list[str]]] = {}
        self._global_devices: list[str] | None = None
        self._pending: list[tuple[FunctionInfo | ClassInfo, tuple[Environment, ...]]] = []
        self._passed_by: list[FunctionInfo] = []
        # what the top level has when it calls a function, of which it calls no more later
        self._worlds: dict[FunctionInfo, dict[str, Value]] = {}
        self._top = Frame(self, State({name: Named(path) for name, path in self.index.imports.items()}))
        self.kept.append(self._top)
        self.evaluate, self.attribute, self.condition = expressions.evaluate, attribute, conditions.condition
        self.construct = instantiation.construct
        if project is not None and project.default_is_set:
            self.default_is_set = True
        if project is not None and foreign is not None:
            self.imports = imports = ProjectImports(self, project.filename, project, Family(self, project, foreign))
            self.index.elsewhere = imports.class_behind
            self.index.trigger_calls(imports.worth_calling(text))
            if self.catalog.stated:
                self.index.trigger_calls(imports.stated_calls(text))

    def hearers(self, quiet: bool, inlined: bool) -> dict[str, list[Any]]:
        """The observers of each event, found when it first happens."""
        return events.Hearers(self, quiet, inlined)

    @property
    def globals(self) -> dict[str, Value]:
        """The names of the top level, as they are where it has come to."""
        return self._top.state.env

    def run(self) -> Iterator[Site]:
        """Interpret the file; every site once it is complete."""
        frame = self._top
        # without CUDA a script that needs such a library does not come past its imports
        frame.state.accelerated = self.index.dedicated
        statements.run_body(frame, self.tree.body)
        self.finished, self.default_device = True, defaults.left(frame)
        self._global_devices = self.global_devices()
        for info in list(self.index.classes.values()):
            self._run_class(info)
        for function in list(self.index.functions.values()):
            if function.owner is None and function.triggered:
                self.run_alone(function)
            elif function.owner is None:
                self._passed_by.append(function)
        while self._pending:
            inner, closure = self._pending.pop()
            if isinstance(inner, FunctionInfo):
                self.run_alone(inner, closure)
            elif is_alone(inner):
                self._run_class(inner, closure)
        training = self.component(CallContexts).in_each_step()[1]
        for function in self._passed_by:
            # it may wait, whatever else it does
            if function in training:
                self.run_alone(function)
        sites = chain.from_iterable(self.component(kind).sites() for kind in self.observers)
        yield from sites if self.observed is None else map(self.observed.attested, sites)

    def global_value(self, name: str) -> Value | None:
        """What a name of the top level holds, ``None`` where it has no such name."""
        return self.globals.get(name)

    def moves_batches(self, loaders: tuple[int, ...]) -> bool:
        """Whether the file moves batches of these loaders."""
        return self.component(Loaders).moved(loaders)

    def record(self, site: Site, frame: Frame) -> None:
        """Keep a site, unless the code runs only to find a loop's fixpoint, or again for a caller."""
        claim = isinstance(site, (Operation, Hint, Forward, HostRead))
        if claim and frame.state.bare and not is_despite(site, frame.state):
            return
        if claim:
            self.component(CallContexts).claim(site, frame)
        alone = not claim and not isinstance(site, (IndexCopy, Unforwarded))
        if self.muted or (frame.inlined and alone) or (frame.silent and claim and not _is_of_facts(site, frame)):
            return
        self.component(CallContexts).keep(site, frame)

    def overhear(self, frame: Frame, info: ClassInfo, call: Call) -> list[Operation | Forward]:
        """What ``forward`` of a class would claim if it was called so; nothing if it is not followed."""
        method = info.method("forward")
        home = self if method is None else self.imports.home(method.index)
        if method is None or home.refuses(frame, method):
            return []
        outer = frame.state.heap
        frame.state.heap = {**outer, **self._kept(info)}
        with self.component(CallContexts).listen() as heard, self.quiet():
            home.run_call(frame, Function(method, (), self.self_value(info)), call)
        frame.state.heap = outer
        return [site for site in heard if not isinstance(site, Hint)]

    def defined(self, frame: Frame, info: FunctionInfo | ClassInfo, closure: tuple[Environment, ...]) -> None:
        """A nested definition is known to the frames around it, and runs on its own once they are done."""
        self.kept.append(frame)
        wanted = not frame.inlined and frame.info is not None and frame.info.triggered and not self.muted
        if wanted and all(info is not known for known, _ in self._pending):
            self._pending.append((info, closure))

    def dissolve(self) -> None:
        """Take the engine apart, and those that it had for other files, whose parts know each other in circles."""
        guests = self.imports.guests()
        release.definitions(self.index)
        for one in (self, *guests):
            for frame in one.kept:
                release.empty(frame)
            release.empty(one)

    # -- classes -----------------------------------------------------------------------------------------------------

    def _run_class(self, info: ClassInfo, closure: tuple[Environment, ...] = ()) -> None:
        called = {name for name, method in info.methods.items() if method in self._worlds}
        if not called and not self.index.triggered(info.node) and not self._inherits(info):
            self._passed_by += info.methods.values()
            return
        init = info.methods.get("__init__")
        if init is not None and init.triggered:
            self.class_heap(info)
        kept = self._followed(info)
        for name, method in info.methods.items():
            if name != "__init__" and (
                method.triggered
                or name in called
                or any(f"self.{attr}" in self.index.code(method.node) for attr in kept)
            ):
                self.run_alone(method, closure)
            else:
                self._passed_by.append(method)

    def _inherits(self, info: ClassInfo) -> bool:
        """Whether a base of the file keeps tensors that the class has to move."""
        known = self.component(UnregisteredTensors).any and info.is_module
        return known and any(self.component(UnregisteredTensors).names(base.name) for base in info.ancestors())

    def _followed(self, info: ClassInfo) -> list[str]:
        """The attributes of ``self`` which are worth a method's interpretation, although it mentions no device."""
        if info.is_module:
            lineage = info.linearization() if self.component(UnregisteredTensors).any else ()
            return [name for known in lineage for name in self.component(UnregisteredTensors).names(known.name)]
        kept = attributes(self._class_heaps.get(info, {}), info.oid)
        return [name for name, held in kept if isinstance(held, (Tensor, Module, Loader))]

    def class_heap(self, info: ClassInfo) -> Heap:
        """What ``__init__`` leaves in ``self``, as any method finds it later."""
        home = self.imports.home(info.index)
        if home is not self:
            return home.class_heap(info)
        known = self._class_heaps.get(info)
        if known is not None:
            return known
        heap = self._class_heaps[info] = {}
        for parent in () if inherits_deeply(info) else info.parents():
            inherited = settled(self.class_heap(parent), info, parent)
            if parent.index is not self.index:
                inherited = scrubbed_heap(inherited)
            source, target = parent.oid, info.oid
            heap.update({((target, key[1]) if key[0] == source else key): value for key, value in inherited.items()})
        init = info.methods.get("__init__")
        if init is not None and self.is_worth(init):
            frame = self._frame(init, State({}, dict(heap)), (), inlined=False)
            statements.run_body(frame, init.node.body)
            after = activation.after(frame)
            self.component(UnregisteredModules).settle(info, info.oid, after)
            heap.update(self._settle_self(info, after))
        place = device.symbol(info.place, "self", Role.PLACE)
        for name in made_later(info) if info.is_module else ():
            heap.setdefault((info.oid, name), Tensor(place, certain=True, buffer=True, grad="parameter"))
        for name, held in self._left_later(info, REGISTERED.of(heap, info.oid) or ()) if info.is_module else ():
            heap.setdefault((info.oid, name), held)
        self._class_heaps[info] = heap
        return heap

    def _left_later(self, info: ClassInfo, registered: Collection[str]) -> Iterator[tuple[str, Value]]:
        """The tensors that methods of a module leave in plain attributes, to which nobody else gives anything."""
        for name, node in left_later(info).items() if ANY not in registered else ():
            if name in registered or mutations.takes_along(info, name):
                continue
            method = next(one for one in info.methods.values() if node in one.nodes)
            given = re.findall(rf"(\w+)\.{name}\s*=[^=]", self.text_of_file)
            if method.name != "__init__" and set(given) <= {"self"}:
                frame = self._frame(method, State({}, {}), (), inlined=False)
                yield name, self.component(UnregisteredTensors).left(frame, name, node)

    def _kept(self, info: ClassInfo) -> Heap:
        """What a method finds in ``self``: what ``__init__`` leaves there, else what a run has seen there."""
        heap = self.class_heap(info)
        seen = activation.kept_as_seen(self.observed, info)
        return {**seen, **heap} if seen else heap

    def _settle_self(self, info: ClassInfo, state: State) -> Heap:
        """The heap after ``__init__``, as methods see it: moved with the module, unknown where they change it."""
        oid = info.oid
        place = device.symbol(info.place, "self", Role.PLACE)
        heap = dict(state.heap)
        if info.is_module:
            # whatever __init__ made moves with the module, but for what the module does not know of
            apart = self.component(UnregisteredModules).of(info)
            heap.update({k: device.UNKNOWN if k[0] in apart else place for k in state.heap if k[1] is DEVICE})
            heap.update(_taken_along(state.heap, oid, place))
            parts = ((key, held) for key, held in state.heap.items() if isinstance(held, Tensor) and held.buffer)
            given = {key: held for key, held in parts if key[0] != oid and key[0] not in apart}
            # the parameters that it has given its parts move with these
            heap.update({key: replace(held, device=place, origin=NO_ORIGIN) for key, held in given.items()})
        if info.is_open:
            # perhaps a module, whose attributes move with it: nothing is known of where they are
            heap.update({key: device.UNKNOWN for key in state.heap if key[1] is DEVICE})
        for key, held in state.heap.items():
            if key[0] != oid or not isinstance(key[1], str) or not isinstance(held, Value):
                continue
            change = mutations.changed(info).get(key[1], "")
            # of a distribution that was not seen to be kept, nothing says where its parameters are by then
            stale = info.is_module and is_distribution(held) and not is_kept(held)
            if stale or (change in ("assigned", "filled") and not survives(info, key[1], held, change)):
                del heap[key]
                continue
            if info.is_module:
                if isinstance(held, Tensor) and held.buffer:
                    heap[key] = replace(held, device=place, origin=NO_ORIGIN)
            elif info.is_open and isinstance(held, Tensor):
                heap[key] = held.placed(device.UNKNOWN, ())
            elif isinstance(held, Module) and (change == "moved" or is_set_up_elsewhere(info)):
                DEVICE.put(heap, held.oid, device.UNKNOWN)
        return heap

    def device_attributes(self, info: ClassInfo) -> list[str]:
        """The attributes of ``self`` that hold a device, unless it is the CPU."""
        heap = self._class_heaps.get(info, {})
        known = self._device_attributes.get(info)
        if known is None or known[0] != len(heap):  # it is filled when ``__init__`` has run
            found = [name for name, held in attributes(heap, info.oid) if may_be_away(held)]
            known = self._device_attributes[info] = len(heap), found
        return known[1]

    def global_devices(self) -> list[str]:
        """The names of the top level that hold a device."""
        if self._global_devices is not None:
            return self._global_devices
        return [name for name, value in at_hand(self.globals) if is_device(value)]

    # -- functions ---------------------------------------------------------------------------------------------------

    def run_alone(self, info: FunctionInfo, closure: tuple[Environment, ...] = ()) -> None:
        """Interpret a function with arguments of which nothing but the identity is known."""
        if info.owner is not None and info.name == "__init__":
            self.class_heap(info.owner)
            return
        heap = dict(self._kept(info.owner)) if info.owner else {}
        for own in (around.binding("self") for around in closure):
            if isinstance(own, (Module, Instance)) and own.cls is not None:
                heap.update(activation.kept_as_seen(self.observed, own.cls))
        frame = self._frame(info, State({}, heap), closure, inlined=False)
        # whoever calls it has given the device something to do
        self.component(DeviceQueue).unseen(frame, info.node)
        frame.world = self._worlds.get(info)
        statements.run_body(frame, info.node.body)

    def _frame(
        self, info: FunctionInfo, state: State, closure: tuple[Environment, ...], inlined: bool,
        call: Call | None = None, bound: Value | None = None, caller: Frame | None = None,
    ) -> Frame:  # fmt: skip
        frame = Frame(self, state, info, info.owner, closure, inlined, caller)
        frame.world = caller.world if caller is not None and caller.interpreter is self else None
        state.accelerated = info.guarded or (caller is not None and caller.state.accelerated)
        state.by_name = not info.guarded and caller is not None and caller.state.by_name
        frame.silent = bool(caller and caller.silent) or self._on_the_host(info)
        conditions.decorate(frame, info)
        activation.bind(frame, info, call, bound)
        if self.watch is not None:
            for parameter in info.parameters:
                self.watch(frame, parameter, state.env[parameter.arg])
        return frame

    def _on_the_host(self, info: FunctionInfo) -> bool:
        """Whether a function works before anything was moved: it makes batches, or sets up a module."""
        if info.name in self.index.host_functions or info.owner is None:
            return info.name in self.index.host_functions
        if info.owner.is_dataset or info.owner.is_collator or (info.initialises and _may_be_moved(info.owner)):
            return True
        callers = info.owner.callers.get(info.name, ()) if info.private else ()
        return bool(callers) and all(caller.name in self.index.host_functions for caller in callers)

    def enter(self, frame: Frame, function: Function, call: Call) -> Value:
        """The result of calling a function of the project; what it says beyond mismatches, it says when run alone."""
        home = self.imports.home(function.info.index)
        if home is not self:
            return foreign_calls.enter(home, frame, function, call)
        return activation.outcome(frame, function, call, self.run_call(frame, function, call))

    def refuses(self, frame: Frame, info: FunctionInfo) -> bool:
        """Whether a call is not worth being followed, or leads back to where it came from."""
        depth = 0
        outer: Frame | None = frame
        while outer is not None:
            if outer.info is info:
                return True
            depth, outer = depth + 1, outer.caller
        return self.exceeds(info, depth) or info.is_generator

    def exceeds(self, info: FunctionInfo, depth: int) -> bool:
        """Whether a function is too long, called too often, or too deep down."""
        long = (info.node.end_lineno or 0) - info.node.lineno > _LONGEST_INLINED and depth > 1
        return depth > _DEEPEST_CALL or long or self.component(CallContexts).exhausted(info)

    def run_call(self, frame: Frame, function: Function, call: Call) -> Value:
        """The result of calling a function of this file."""
        info = function.info
        self.component(CallContexts).called(frame, info)
        if self.refuses(frame, info):
            self.component(Escapes).into(call.values(), info)
            havoc.handed(frame, call, function.bound)
            return UNKNOWN
        heap = frame.state.heap
        state = State({}, dict(heap), dict(frame.state.facts), wholes=frame.state.wholes)
        own = info.owner
        if own is not None and isinstance(function.bound, (Module, Instance)):
            # a call that comes from the class itself finds what it has left there, if only the constructor so far
            complete = function.bound.oid == own.oid and frame.outermost.owner is not own
            for key, held in (self._kept(own) if complete else self.class_heap(own)).items():
                state.heap.setdefault(key, held)
        inner = self._frame(info, state, function.closure, True, call, function.bound, frame)
        self.component(CallContexts).entered(frame, info, inner.state.env)
        activation.tell(frame, inner)
        inner.default_device = frame.default_device
        inner.loops = list(frame.loops)
        if not self.finished:
            self._worlds[info] = dict(self.globals)
        statements.run_body(inner, info.node.body)
        left = activation.after(inner)
        frame.state.heap = left.heap
        if isinstance(info.node, ast.AsyncFunctionDef) or not inner.returns:
            return Const(None) if not inner.returns else UNKNOWN
        return activation.returned_to(inner, call, function.bound)


def _taken_along(heap: Heap, oid: object, place: Device) -> Heap:
    """What containers hold when a module moves whose parameters are in them, too: in place, as no buffer does."""
    kept = (held for _, held in attributes(heap, oid))
    own = [held for held in kept if isinstance(held, Tensor) and held.grad == "parameter"]
    held = ((key, value) for key, value in heap.items() if isinstance(value, Value) and type(value) in CONTAINERS)
    return {key: _moved(value, own, place) for key, value in held} if own else {}


def _moved(value: Value, own: list[Tensor], place: Device) -> Value:
    if isinstance(value, Tensor):
        return replace(value, device=place, origin=NO_ORIGIN) if value in own else value
    return mapped(value, lambda part: _moved(part, own, place)) if type(value) in CONTAINERS else value


def _may_be_moved(info: ClassInfo) -> bool:
    """Whether instances of a class are modules, or may be, which are moved once their constructor has run."""
    return info.is_module or info.is_open


def _is_of_facts(site: Site, frame: Frame) -> bool:
    """Whether a claim in a constructor rests on nothing that the caller, or a move of the module, decides."""
    info = frame.outermost.info
    if info is None or info.owner is None or not info.initialises or info.owner.is_dataset or info.owner.is_collator:
        return False
    if isinstance(site, Forward):
        places = [site.device, *(operand.device for operand in site.inputs)]
    elif isinstance(site, Operation):
        places = [operand.device for operand in site.operands]
    else:
        return False
    return all(leaf.role in (None, Role.DEVICE) for place in places for leaf in place.leaves())
