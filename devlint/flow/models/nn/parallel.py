"""Several devices: modules wrapped for them, the process groups of a file, and whether processes choose their own."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from devlint import device
from devlint.device import Device, Kind
from devlint.flow.catalog import modules
from devlint.flow.catalog.concepts import MAKES_GROUP
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.registry import CLASSES, MODELS, ObjectModel
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import CHILDREN, DEVICE, ORIGIN, WRAPPED
from devlint.flow.domain.objects import Module
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import UNKNOWN, Const, Opaque, Sequence, Unknown, Value, is_none
from devlint.flow.models.data.loaders import Loaders
from devlint.flow.models.torch.functions import function
from devlint.flow.program.def_use import Code
from devlint.flow.program.identity import identity
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.flow.syntax import names, nodes
from devlint.flow.syntax.nodes import derived
from devlint.immutable import immutable, replace
from devlint.sites.base import Scope, Step
from devlint.sites.distributed import Group, Unforwarded, Wrap

_IMPORT = r"(?m)^\s*(?:from|import)\s+([.\w]+)"
_KNOWN = frozenset("torch torchvision torchaudio numpy PIL tqdm matplotlib scipy sklearn pandas cv2 yaml".split())
"""Packages, besides Python's own, that set up no process group."""
_GROUP = r"init_process_group|init_device_mesh|init_distributed"
_MAKES_DISTRIBUTED = r"(?:^|_)DDP(?:_|$)|^(?:smart|wrap|prepare|make|build|setup)_ddp(?:_|$)|_to_ddp$"
"""The names of functions that wrap a module in the better wrapper, or set up what it needs."""
_SCRIPT = r"""(?m)^if\s+__name__\s*==\s*["']__main__["']"""
_ADDING = r"\.(?:add_module|register_module)\(\s*[\"']"
"""How a module is given another one by name."""
_COUNT = "device_count()"
_RANK = r"(?i)rank|gpu"
"""The names of what tells a process from another."""
_CHOSEN = (
    r"set_device(?:_index)?\(|CUDA_VISIBLE_DEVICES|cuda\.device\(|accelerator\.device_index\("
    # which choose for it when they are made
    r"|\w*TrainingArguments\b|\bPartialState\b|\bAccelerator\("
    # or has to be the only one of its machine
    r"|\bassert\b[^\n]*LOCAL_RANK[^\n]*==\s*[\"']?0\b"
)
"""How a process says which device is its own."""


def _wrap(frame: Frame, call: Call, path: str) -> Value:
    """The module that a wrapper for several devices makes of another."""
    inner = call.argument(0, "module")
    ids = call.argument(1, "device_ids")
    count = len(ids.items) if isinstance(ids, Sequence) and ids.items is not None else None
    beside = tuple(name for name in _wrappers_used(frame.code) if name != path)
    stateful = isinstance(inner, Module) and inner.has_state
    place = frame.place_of(inner) if stateful and isinstance(inner, Module) else device.UNKNOWN
    fixed = _fixed(call, ids) or (_placed_alike(frame, inner, ids) if isinstance(inner, Module) else None)
    # a part of a program wraps what it has not made
    script = frame.info is None and isinstance(inner, Module)
    group = False if grouped(frame.interpreter.text_of_file, script) is False else None
    site = Wrap(call.node, scope_of(frame), path, count, beside, place, group, fixed, beyond=_beyond(frame, call))
    frame.emit(site)
    last = ids.items[-1] if isinstance(ids, Sequence) and ids.items else None
    if count is not None and count > 1 and path != modules.DISTRIBUTED and isinstance(last, Const):
        spelled = f"device_ids={frame.interpreter.text(call.argument_node(1, 'device_ids') or call.node)}"
        for observer in events.heard(frame, "on_device_index"):
            observer.on_device_index(frame, call.node, last, spelled)
    if path == modules.DISTRIBUTED:
        frame.component(Loaders).sharing.wrap(frame, call.node)
    given = ids is not None and not is_none(ids)
    if path.endswith("data_parallel"):
        return UNKNOWN
    text = path.rpartition(".")[2]
    if not isinstance(inner, Module):
        outer = Module(identity(), path, text=text, spread=True, wraps=inner)
        WRAPPED.put(frame.state.heap, outer.oid, site)
        if isinstance(inner, Tensor):
            # what this is was not seen, and where it was moved was
            DEVICE.put(frame.state.heap, outer.oid, inner.device)
            ORIGIN.put(frame.state.heap, outer.oid, inner.origin)
        return outer
    spread = inner.spread or path != modules.DISTRIBUTED or given
    outer = replace(inner, oid=identity(), spread=spread, text=text, cls=None, path=path, wraps=inner)
    DEVICE.put(frame.state.heap, outer.oid, frame.place_of(inner))
    ORIGIN.put(frame.state.heap, outer.oid, frame.origin_of(inner))
    CHILDREN.put(frame.state.heap, outer.oid, (inner,))
    for module in (inner, outer):
        WRAPPED.put(frame.state.heap, module.oid, site)
    return outer


def _by_old_name(frame: Frame, call: Call, path: str) -> Value:
    """The wrapper by the name that it had for modules on the CPU."""
    return _wrap(frame, call, modules.DISTRIBUTED)


class Wrappers(Observer):
    """Modules that are moved after they were wrapped."""

    def on_relocation(self, frame: Frame, module: Module, place: Device, step: Step) -> None:
        """A module is moved which is, or is in, a wrapper."""
        wrapped = WRAPPED.of(frame.state.heap, module.oid)
        if wrapped is not None and not module.perhaps and not _is_wrapped_anew(frame, wrapped):
            frame.emit(replace(wrapped, moved_after=step))


def _is_wrapped_anew(frame: Frame, wrapped: Wrap) -> bool:
    """Whether each round of a loop wraps the module again, for which it moves it, and moves it back in the end."""
    return any(nodes.holds(loop.node, wrapped.node) for loop in frame.loops)


def _attach(frame: Frame, base: Module, target: ast.Attribute) -> None:
    """An attribute is set on a module, which may be a wrapper."""
    wrapped = WRAPPED.of(frame.state.heap, base.oid)
    if (
        wrapped is None
        or base.path not in modules.WRAPPERS
        or target.attr in modules.OWN_OF_WRAPPERS
        or frame.interpreter.muted
    ):
        return
    if wrapped.attached is None:
        wrapped = replace(wrapped, attached=Step(target, f"`{target.attr}` is set on the wrapper here"))
        WRAPPED.put(frame.state.heap, base.oid, wrapped)
        frame.emit(wrapped)


def _read(frame: Frame, node: ast.Attribute, base: Module) -> None:
    """An attribute of a wrapper is read, which hands none on to the module inside."""
    if node.attr in modules.OF_WRAPPERS or node.attr.startswith("_") or base.path not in modules.WRAPPERS:
        return
    wrapped = WRAPPED.of(frame.state.heap, base.oid)
    # under `n > 1` it was wrapped, and this is under `n == 1`
    settled = any(guard.subject in known.text for guard in base.perhaps for known in frame.state.facts)
    if wrapped is None or settled or frame.tried or frame.shim or _adds(frame, node):
        return
    inside = base.wraps.cls if isinstance(base.wraps, Module) else None
    if inside is not None and not _may_have(inside, node.attr):
        return
    made, text = Step(wrapped.node, "it is wrapped here"), frame.interpreter.text(node.value)
    frame.emit(Unforwarded(node, scope_of(frame), base.path, text, made, bool(base.perhaps), known=inside is not None))


def _may_have(info: ClassInfo, name: str) -> bool:
    """Whether a class may have an attribute: something in it has this name, or nothing is known of one of its bases."""
    asked = {name, "__getattr__", "setattr"}
    return not info.roots() <= {"torch.nn.Module"} or any(asked & _names(known) for known in info.linearization())


@derived
def _names(info: ClassInfo) -> frozenset[str]:
    """All that is named in a class, or spelled, as ``register_buffer`` has it."""
    fields = (getattr(node, key, None) for node in info.nodes for key in ("attr", "id", "name", "value"))
    return frozenset(field for field in fields if isinstance(field, str))


def _adds(frame: Frame, read: ast.Attribute) -> bool:
    """Whether the file itself, or a class that the object is one of, may give a wrapper an attribute.

    What the methods of a class give ``self``, they give the module inside.
    """
    text, name = frame.interpreter.text_of_file, read.attr
    given = re.search(rf"(?<!\bself)(?:\.{name}\s*(?::[^=\n]+)?=[^=]|{_ADDING}{name}\b)", text)
    known = frame.owner.linearization() if frame.owner is not None else ()
    added = (ast.unparse(call) for info in known for call in info.nodes if names.method(call) == "add_module")
    holder = re.escape(ast.unparse(read.value))
    inherited = any(re.match(rf"{holder}{_ADDING}{name}\b", call) for call in added)
    return given is not None or inherited or "__getattr__" in text or "setattr(" in text


def grouped(text: str, script: bool = False) -> bool | None:
    """Whether a process group is made: not in a script that says nothing of one, nor calls code that could.

    A part of a program, which imports nothing, may have been given one.
    """
    if re.search(_GROUP, text):
        return True
    imported = {name.partition(".")[0] for name in re.findall(_IMPORT, text)}
    whole = re.search(_SCRIPT, text) is not None or (script and "torch" in imported)
    return None if imported - _KNOWN - sys.stdlib_module_names or not whole else False


def _fixed(call: Call, ids: Value | None) -> Step | None:
    """The one device id, where the code gives it as a number."""
    node = call.argument_node(1, "device_ids")
    if node is None or not isinstance(ids, Sequence) or ids.items is None or len(ids.items) != 1:
        return None
    (only,) = ids.items
    number = isinstance(only, Const) and isinstance(only.value, int)
    return Step(node, "every process takes this one") if number else None


def _beyond(frame: Frame, call: Call) -> Step | None:
    """Where the function takes what it gives as the one device id modulo the GPUs that a machine has."""
    listed = call.argument_node(1, "device_ids")
    if not isinstance(listed, (ast.List, ast.Tuple)) or len(listed.elts) != 1:
        return None
    ways = _ways(frame.code, listed.elts[0])
    if any("%" in text for text in ways):
        return None
    for node in (part for part in frame.code.own if isinstance(part, ast.BinOp)):
        counted = any(_COUNT in text for text in _ways(frame.code, node.right))
        if isinstance(node.op, ast.Mod) and counted and ways & _ways(frame.code, node.left):
            return Step(node, "on each machine the GPUs are counted from 0 again")
    return None


def _ways(code: Code, node: ast.expr) -> set[str]:
    """How the code spells a value: by its name, and as what the name is given."""
    text = ast.unparse(node)
    given = (other for other in code.of(ast.Assign) if any(ast.unparse(target) == text for target in other.targets))
    changed = (part for part in code.own if isinstance(part, ast.AugAssign) and ast.unparse(part.target) == text)
    return {text, *(ast.unparse(other.value) for other in given), *map(ast.unparse, changed)}


def _placed_alike(frame: Frame, inner: Module, ids: Value | None) -> Step | None:
    """Where a module is put on an accelerator that is the same for every process."""
    listed = ids.items if isinstance(ids, Sequence) else None
    place, story = frame.place_of(inner), frame.origin_of(inner).story
    if place.kind is not Kind.ACCELERATOR or not story or not _shared(place, frame):
        return None
    if place.index is None and (_told_its_rank(frame) or isinstance(listed and listed[0], (Opaque, Unknown))):
        # where the process is told its own GPU, or has been, by what gives the number to the wrapper
        return None
    return replace(story[0], label=f"every process takes {place} here")


def _shared(place: Device, frame: Frame) -> bool:
    """Whether ``cuda`` is the same device in every process: it has a number, or nobody chooses one."""
    text = frame.interpreter.text_of_file
    return "CUDA_VISIBLE_DEVICES" not in text if place.index is not None else re.search(_CHOSEN, text) is None


def _told_its_rank(frame: Frame) -> bool:
    """Whether the function tells code of another file which process it is, or has it make the process group.

    Both may well choose the device.
    """
    for node in frame.code.own:
        if isinstance(node, ast.Call):
            given = nodes.given(node)
            root, _, rest = frame.interpreter.index.resolve(names.dotted(node.func)).partition(".")
            strange = rest and root not in _KNOWN and root not in sys.stdlib_module_names
            told = any(isinstance(part, ast.Name) and re.search(_RANK, part.id) for part in given)
            if strange and (told or re.search(_GROUP, rest)):
                return True
    return False


@derived
def _wrappers_used(code: Code) -> tuple[str, ...]:
    """The wrappers that a function (or the top level) uses."""
    found: dict[str, None] = {}
    for node in code.own:
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = node.id if isinstance(node, ast.Name) else node.attr
            path = code.index.resolve(names.dotted(node))
            if path in modules.WRAPPERS or name in ("DistributedDataParallel", "DDP"):
                found[path if path in modules.WRAPPERS else modules.DISTRIBUTED] = None
            elif re.search(_MAKES_DISTRIBUTED, name):
                found[modules.DISTRIBUTED] = None
    return tuple(found)


class _Wrapper(ObjectModel):
    def attribute(self, frame: Frame, node: ast.Attribute, value: Value) -> None:
        if isinstance(value, Module):
            _read(frame, node, value)

    def assigned(self, frame: Frame, target: ast.Attribute, value: Value) -> None:
        if isinstance(value, Module):
            _attach(frame, value, target)


_BARRIER = "torch.distributed.barrier"
_OBJECTS = frozenset(
    f"torch.distributed.{name}"
    for name in (
        "all_gather_object",
        "gather_object",
        "broadcast_object_list",
        "scatter_object_list",
        "monitored_barrier",
    )
)
_CHOOSE = frozenset({"torch.cuda.set_device", "torch.accelerator.set_device_index"})
_CALLS: frozenset[str] = _OBJECTS | _CHOOSE | {MAKES_GROUP, _BARRIER}
"""The functions that are looked at: those of ``torch.distributed`` and those that choose a process's device."""
_SET_UP = r"(?<!cuda\.)\b((?:get|set|set_?up|init|initialize|select|choose|prepare)_devices?)\("
"""The name of a function which may well make the device that it returns the current one."""
_ALONE = r"""(?m)^[ \t]*(?:os\.)?environ\[["']WORLD_SIZE["']\] *= *["']1["']"""
"""Where a file says to itself how many processes there are: this one."""
_ENTRY = r"""(?m)^if\s+__name__\s*==|mp\.spawn\(|multiprocessing\.spawn\("""


@immutable(frozen=True, slots=True)
class _Made:
    node: ast.AST
    scope: Scope
    backend: str
    info: FunctionInfo | None


@immutable(frozen=True, slots=True)
class _Order:
    """What a function has done so far: made a group of NCCL, met in it, chosen a device."""

    node: ast.Call
    waits: ast.Call | None = None
    inside: bool = True
    """Whether the function itself waits, not one that it calls."""
    chosen: bool = False


class ProcessGroups(Observer):
    """The process groups of a file."""

    wants_inlined = True
    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._text = interpreter.own_text
        self._chosen = False
        self._made: dict[ast.AST, _Made] = {}
        self._ranked: dict[FunctionInfo | None, ast.AST] = {}
        self._waits: Step | None = None
        self._order: dict[FunctionInfo | None, _Order] = {}
        self._late: dict[ast.AST, Group] = {}

    def note(self, frame: Frame, call: Call, path: str) -> None:
        """A call of one of the functions that matter."""
        if not frame.interpreter.muted:
            self._ordered(frame, call, path)
        if path in _CHOOSE:
            return
        if path == MAKES_GROUP:
            if "device_id" in call.keywords or call.open:
                self._chosen = True
            backend = call.argument(0, "backend")
            if backend == Const("nccl") and not frame.state.accelerated:
                # NCCL needs CUDA
                frame.state.required = True
            name = backend.value if isinstance(backend, Const) and isinstance(backend.value, str) else ""
            if not self._is_alone(call):
                self._made.setdefault(call.node, _Made(call.node, scope_of(frame), name, frame.info))
        elif self._waits is None and not _names_device(call):
            self._waits = Step(call.node, _does(path))

    def _ordered(self, frame: Frame, call: Call, path: str) -> None:
        """What a function and those that it calls do first: meet in a group, or choose a device."""
        root = frame.outermost
        order = self._order.get(root.info)
        if path == MAKES_GROUP:
            backend = call.argument(0, "backend")
            nccl = isinstance(backend, Const) and str(backend.value).lower() == "nccl"
            told = call.open or "device_id" in call.keywords
            if order is None and nccl and not told and not self._is_alone(call):
                self._order[root.info] = _Order(call.node)
        elif path in _CHOOSE:
            if order is not None and order.waits is not None and frame is root:
                self._too_late(frame, call, order, order.waits)
            self._order[root.info] = _Order(call.node, chosen=True)
        elif order is not None and not order.chosen and order.waits is None and not _names_device(call):
            self._order[root.info] = replace(order, waits=call.node, inside=frame is root)

    def _too_late(self, frame: Frame, call: Call, order: _Order, waits: ast.Call) -> None:
        """A process chooses its device after it has met others, unless one path does the one and one the other."""
        apart = _apart(frame, waits, call.node) if order.inside else frame.branches > 0
        if not apart and not isinstance(call.argument(0, "device"), Const):
            met = Step(waits, "the processes meet here")
            late = Step(call.node, "the process chooses its device here")
            self._late.setdefault(waits, Group(order.node, scope_of(frame), "nccl", None, met, True, late))

    def _is_alone(self, call: Call) -> bool:
        """Whether a group is one of a single process, which has nobody to share a device with."""
        size = call.argument(3, "world_size")
        return size == Const(1) or (size is None and not call.open and re.search(_ALONE, self._text) is not None)

    def on_device_index(self, frame: Frame, node: ast.AST, index: Value, spelled: str) -> None:
        """A device is named by a number that is computed, which may differ from process to process."""
        if re.search(_RANK, getattr(index, "text", "")):
            self._ranked.setdefault(frame.info, node)

    def sites(self) -> Iterator[Group]:
        """A site for each process group whose processes choose no device, or too late, as far as the file shows."""
        yield from self._late.values()
        if not self._made or self._chosen or re.search(_CHOSEN, self._text):
            return
        if any(f"def {name}(" not in self._text for name in re.findall(_SET_UP, self._text)):
            # code that cannot be seen from here may choose the device
            return
        entry = re.search(_ENTRY, self._text) is not None
        for made in self._made.values():
            named = self._ranked.get(made.info)
            whole = entry or made.info is None
            yield Group(made.node, made.scope, made.backend, named, self._waits, whole)


def _does(path: str) -> str:
    """What a collective does that is not told its device: NCCL guesses that of a barrier from the rank."""
    return "this opens a context on the current device" if path == _BARRIER else "this uses the current device"


def _names_device(call: Call) -> bool:
    """Whether a collective is told its device."""
    return "device" in call.keywords or "device_ids" in call.keywords


def _apart(frame: Frame, first: ast.AST, second: ast.AST) -> bool:
    """Whether two places stand on different sides of a branch."""
    for branch in frame.inside:
        if isinstance(branch, ast.If) and branch.orelse:
            sides = [any(nodes.covers(part, node) for part in branch.body) for node in (first, second)]
            others = [any(nodes.covers(part, node) for part in branch.orelse) for node in (first, second)]
            if (sides[0] and others[1]) or (others[0] and sides[1]):
                return True
    return False


def _called(frame: Frame, call: Call, path: str) -> Value:
    frame.component(ProcessGroups).note(frame, call, path)
    return function(frame, call, path)


MODELS.register({**dict.fromkeys(_CALLS, _called), **dict.fromkeys(modules.WRAPPERS, _wrap)})
MODELS.register({f"{modules.DISTRIBUTED}CPU": _by_old_name})
CLASSES.register(dict.fromkeys(modules.WRAPPERS, _Wrapper()))
